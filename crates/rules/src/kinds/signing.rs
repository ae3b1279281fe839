//! Requests for certificates.

use std::collections::{BTreeSet, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::Doc;

use crate::edit::put;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of requests for certificates.
#[derive(Debug)]
pub struct SigningRequests;

/// The types of conditions that decide, once and for all.
const DECISIONS: [&str; 3] = ["Approved", "Denied", "Failed"];
/// The signer of requests that named none, before they had to.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const SECONDS_MIN: i64 = 600;
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

impl Hooks for SigningRequests {
    /// What is asked for, and by whom, never changes.
    fn prepare_update(&self, new: Doc, old: &Doc) -> Doc {
        put(new, "/spec", old.at("/spec"))
    }

    /// Whoever signs leaves the decision as it is, if it sends all of it.
    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        let mut conditions = new.at("/status/conditions").items().to_vec();
        for sort in ["Approved", "Denied"] {
            let before = of_type(old, sort);
            let is_one = |condition: &Doc| condition.str_at("/type") == sort;
            let places: Vec<usize> = (0..conditions.len())
                .filter(|at| is_one(&conditions[*at]))
                .collect();
            if places.len() == before.len() {
                for (at, known) in places.into_iter().zip(before) {
                    conditions[at] = known.clone();
                }
            }
        }
        match conditions.is_empty() {
            true => new,
            false => put(new, "/status/conditions", conditions),
        }
    }

    fn validate(&self, request: &Doc, errors: &mut FieldErrors) {
        let (spec, path) = (request.at("/spec"), FieldPath::new("spec"));
        let bytes = BASE64.decode(spec.str_at("/request")).unwrap_or_default();
        if !is_request(&bytes) {
            let detail = "PEM block type must be CERTIFICATE REQUEST";
            errors.invalid(&path.child("request"), spec.at("/request"), detail);
        }
        let usages = spec.at("/usages").items();
        if usages.is_empty() {
            errors.required(&path.child("usages"), "");
        }
        let mut seen = HashSet::new();
        for (at, usage) in usages.iter().enumerate() {
            let field = path.child("usages").index(at);
            let usage = usage.as_str().unwrap_or_default();
            if !USAGES.contains(&usage) {
                errors.not_supported(&field, usage, &USAGES);
            }
            if !seen.insert(usage) {
                errors.duplicate(&field, usage);
            }
        }
        match spec.str_at("/signerName") {
            "" => errors.required(&path.child("signerName"), ""),
            LEGACY_SIGNER => {
                let detail = "the legacy signerName is not allowed via this API version";
                errors.invalid(&path.child("signerName"), LEGACY_SIGNER, detail);
            }
            _ => {}
        }
        let seconds = spec.at("/expirationSeconds");
        if seconds
            .as_i64()
            .is_some_and(|seconds| seconds < SECONDS_MIN)
        {
            let detail = "may not specify a duration less than 600 seconds (10 minutes)";
            errors.invalid(&path.child("expirationSeconds"), seconds, detail);
        }
    }

    /// Approval changes conditions; none that decided is taken back.
    fn validate_part(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        check_conditions(new, old, errors);
        check_removed(new, old, errors);
    }

    /// Whoever signs does not approve, and a certificate is set once.
    fn validate_status(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        check_conditions(new, old, errors);
        check_removed(new, old, errors);
        let path = FieldPath::new("status.conditions");
        for sort in ["Approved", "Denied"] {
            let (before, after) = (of_type(old, sort), of_type(new, sort));
            if after.len() > before.len() {
                let detail = format!("updates may not add a condition of type {sort:?}");
                errors.forbidden(&path, detail);
            } else if after.len() == before.len() && after != before {
                let detail = format!("updates may not modify a condition of type {sort:?}");
                errors.forbidden(&path, detail);
            }
        }
        let (before, after) = (old.at("/status/certificate"), new.at("/status/certificate"));
        if before != after && !before.as_str().unwrap_or_default().is_empty() {
            let detail = "updates may not modify existing certificate content";
            errors.forbidden(&FieldPath::new("status.certificate"), detail);
        }
    }
}

/// Returns true if the first PEM block of a text is a request for a certificate. Text may stand
/// before it.
fn is_request(pem: &[u8]) -> bool {
    const BEGIN: &str = "-----BEGIN ";
    let text = String::from_utf8_lossy(pem);
    let mut lines = text.lines();
    let first = lines.find_map(|line| line.strip_prefix(BEGIN));
    first.is_some_and(|rest| rest.trim_end() == "CERTIFICATE REQUEST-----")
}

/// The conditions of one type.
fn of_type<'a>(request: &'a Doc, sort: &str) -> Vec<&'a Doc> {
    let conditions = request.at("/status/conditions").items().iter();
    conditions
        .filter(|condition| condition.str_at("/type") == sort)
        .collect()
}

fn check_removed(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    for sort in DECISIONS {
        if of_type(new, sort).len() < of_type(old, sort).len() {
            let detail = format!("updates may not remove a condition of type {sort:?}");
            errors.forbidden(&FieldPath::new("status.conditions"), detail);
        }
    }
}

/// Conditions have a type, once each, and decisions are true. What was wrong before may stay.
fn check_conditions(new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    let path = FieldPath::new("status.conditions");
    let both = |request: &Doc| {
        !of_type(request, "Approved").is_empty() && !of_type(request, "Denied").is_empty()
    };
    let types = |request: &Doc| -> Vec<String> {
        let conditions = request.at("/status/conditions").items().iter();
        conditions
            .map(|condition| condition.str_at("/type").to_owned())
            .collect()
    };
    let is_twice = |types: &[String]| {
        let once: BTreeSet<&String> = types.iter().collect();
        once.len() < types.len()
    };
    let known = types(old);
    let mut seen = BTreeSet::new();
    for (at, condition) in new.at("/status/conditions").items().iter().enumerate() {
        let path = path.index(at);
        let (sort, status) = (condition.str_at("/type"), condition.str_at("/status"));
        if sort.is_empty() && !known.iter().any(String::is_empty) {
            errors.required(&path.child("type"), "");
        }
        let allowed: &[&str] = match DECISIONS.contains(&sort) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        if status.is_empty() {
            errors.required(&path.child("status"), "");
        } else if !allowed.contains(&status) {
            errors.not_supported(&path.child("status"), status, allowed);
        }
        if !seen.insert(sort) && !is_twice(&known) {
            errors.duplicate(&path.child("type"), sort);
        }
    }
    if both(new) && !both(old) {
        let last = types(new).into_iter().rev();
        let mut last = last.filter(|sort| sort == "Approved" || sort == "Denied");
        let detail = "Approved and Denied conditions are mutually exclusive";
        errors.invalid(&path, last.next().unwrap_or_default(), detail);
    }
}
