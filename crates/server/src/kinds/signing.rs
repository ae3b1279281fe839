//! Requests for certificates. Nobody signs them here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::Doc;

use crate::field::{FieldErrors, FieldPath};
use crate::registry::Hooks;
use crate::rest::put;

/// Hooks of requests for certificates.
#[derive(Debug)]
pub(crate) struct SigningRequests;

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

    fn validate(&self, request: &Doc, errors: &mut FieldErrors) {
        let (spec, path) = (request.at("/spec"), FieldPath::new("spec"));
        let bytes = BASE64.decode(spec.str_at("/request")).unwrap_or_default();
        if !bytes.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----") {
            let detail = "PEM block type must be CERTIFICATE REQUEST";
            errors.invalid(&path.child("request"), spec.at("/request"), detail);
        }
        let usages = spec.at("/usages").items();
        if usages.is_empty() {
            errors.required(&path.child("usages"), "");
        }
        for (at, usage) in usages.iter().enumerate() {
            let field = path.child("usages").index(at);
            let usage = usage.as_str().unwrap_or_default();
            if !USAGES.contains(&usage) {
                errors.not_supported(&field, usage, &USAGES);
            }
            if usages[..at].iter().any(|known| *known == usage) {
                errors.duplicate(&field, usage);
            }
        }
        if spec.str_at("/signerName").is_empty() {
            errors.required(&path.child("signerName"), "");
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
}
