//! API services: which group versions there are, and who serves them. All that are served are
//! served here; what another server would serve is stored and nothing more.

use windlass_core::{Doc, Env, doc, names};

use crate::edit::edit;
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;

/// Hooks of API services.
#[derive(Debug)]
pub struct ApiServices;

const PORT: i64 = 443;
const GROUP_PRIORITY_LIMIT: i64 = 20_000;
const VERSION_PRIORITY_LIMIT: i64 = 1000;

impl Hooks for ApiServices {
    fn default(&self, service: Doc) -> Doc {
        edit(&service, |service| {
            service.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.inside("service", |at| edit(at, |at| at.default("port", PORT)));
                })
            });
        })
    }

    fn prepare_create(&self, service: Doc, env: &Env) -> Doc {
        if !service.at("/spec/service").is_null() {
            return service;
        }
        let condition = doc!({
            "type": "Available", "status": "True", "lastTransitionTime": (env.now().to_string()),
            "reason": "Local", "message": "Local APIServices are always available"
        });
        crate::edit::put(service, "/status", doc!({ "conditions": [condition] }))
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        crate::edit::put(new, "/metadata", old.at("/metadata"))
    }

    fn status_resets(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }

    fn validate(&self, service: &Doc, errors: &mut FieldErrors) {
        let (spec, path) = (service.at("/spec"), FieldPath::new("spec"));
        validate_name(service, errors);
        let (group, version) = (spec.str_at("/group"), spec.str_at("/version"));
        match group {
            "" if version != "v1" => errors.required(
                &path.child("group"),
                "only v1 may have an empty group and it better be legacy kube",
            ),
            "" => {}
            group => {
                let complaints = names::dns1123_subdomain(group);
                errors.invalid_each(&path.child("group"), group, complaints);
            }
        }
        errors.invalid_each(
            &path.child("version"),
            version,
            names::dns1035_label(version),
        );
        for (key, limit) in [
            ("groupPriorityMinimum", GROUP_PRIORITY_LIMIT),
            ("versionPriority", VERSION_PRIORITY_LIMIT),
        ] {
            let priority = spec.get(key).and_then(Doc::as_i64).unwrap_or(0);
            if !(1..=limit).contains(&priority) {
                let detail = format!("must be positive and less than {limit}");
                errors.invalid(&path.child(key), priority, detail);
            }
        }
        match spec.at("/service").is_null() {
            true => validate_local(spec, &path, errors),
            false => validate_remote(spec, &path, errors),
        }
    }

    fn validate_status(&self, new: &Doc, _: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("status").child("conditions");
        for (at, condition) in new.at("/status/conditions").items().iter().enumerate() {
            let status = condition.str_at("/status");
            if !matches!(status, "True" | "False" | "Unknown") {
                let field = path.index(at).child("status");
                errors.not_supported(&field, status, &["True", "False", "Unknown"]);
            }
        }
    }
}

/// The name says the version and the group.
fn validate_name(service: &Doc, errors: &mut FieldErrors) {
    let name = service.meta().name();
    let (group, version) = (
        service.str_at("/spec/group"),
        service.str_at("/spec/version"),
    );
    let wanted = format!("{version}.{group}");
    if name != wanted && !name.is_empty() && names::path_segment(name).is_empty() {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.invalid(&FieldPath::new("metadata").child("name"), name, detail);
    }
}

fn validate_local(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    if *spec.at("/insecureSkipTLSVerify") == true {
        let detail = "local APIServices may not have insecureSkipTLSVerify";
        errors.invalid(&path.child("insecureSkipTLSVerify"), true, detail);
    }
}

fn validate_remote(spec: &Doc, path: &FieldPath, errors: &mut FieldErrors) {
    let at = path.child("service");
    for key in ["namespace", "name"] {
        let value = spec.at("/service").get(key).and_then(Doc::as_str);
        if value.unwrap_or_default().is_empty() {
            errors.required(&at.child(key), "");
        }
    }
    let port = spec.at("/service/port").as_i64().unwrap_or(0);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(&at.child("port"), port, detail);
    }
    let is_blind = *spec.at("/insecureSkipTLSVerify") == true;
    if is_blind && !spec.str_at("/caBundle").is_empty() {
        let detail = "may not be true if caBundle is present";
        errors.invalid(&path.child("insecureSkipTLSVerify"), true, detail);
    }
}
