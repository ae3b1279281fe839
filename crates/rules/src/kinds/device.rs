//! Resource claims, their templates, device classes and resource slices.
//!
//! A claim asks for devices (`claim`), and gets them in its status (`allocation`); a template is a
//! claim to be; a class is what claims ask by; a slice (`slice`) is what a driver offers. What they
//! have in common, expressions and settings, is in `common`.

mod allocation;
mod claim;
mod common;
mod slice;
mod uses;

use windlass_core::{Doc, Env};

use crate::edit::{Fields, edit};
use crate::edit::{cut, put};
use crate::field::{FieldErrors, FieldPath};
use crate::hooks::Hooks;
use crate::labels;
use crate::reader::Reader;
use crate::status::Status;
pub(super) use uses::validate_uses;

/// The label of namespaces whose users may have administrative access to devices.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// What users elsewhere are told.
const ADMIN_REFUSAL: &str = "admin access to devices requires the \
                             `resource.kubernetes.io/admin-access: true` label on the containing \
                             namespace";

/// Hooks of resource claims.
#[derive(Debug)]
pub struct ResourceClaims;

/// Hooks of resource claim templates.
#[derive(Debug)]
pub struct ResourceClaimTemplates;

/// Hooks of device classes.
#[derive(Debug)]
pub struct DeviceClasses;

/// Hooks of resource slices.
#[derive(Debug)]
pub struct ResourceSlices;

fn default_claim_spec(spec: &mut Fields) {
    spec.inside("devices", |devices| {
        edit(devices, |devices| {
            devices.each("requests", |request| {
                edit(request, |request| {
                    request.inside("exactly", default_request);
                    request.each("firstAvailable", default_request);
                })
            });
        })
    });
}

fn default_request(request: &Doc) -> Doc {
    edit(request, |request| {
        request.default("allocationMode", "ExactCount");
        if request.text("allocationMode") == "ExactCount"
            && request.get("count").and_then(Doc::as_i64).unwrap_or(0) == 0
        {
            request.set("count", 1);
        }
        request.each("tolerations", |toleration| {
            edit(toleration, |toleration| {
                toleration.default("operator", "Equal")
            })
        });
    })
}

/// Refuses requests for administrative access outside of the namespaces that allow it.
fn check_admin_access(
    kind: &str,
    object: &Doc,
    spec: (&Doc, &FieldPath),
    storage: &dyn Reader,
) -> Result<(), Status> {
    let requests = spec.0.at("/devices/requests").items().iter().enumerate();
    let mut asking = requests
        .filter(|(_, request)| request.at("/exactly/adminAccess").as_bool() == Some(true))
        .peekable();
    if asking.peek().is_none() || is_admin_namespace(object.meta().namespace(), storage) {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    let path = spec.1.child("devices").child("requests");
    for (index, _) in asking {
        let path = path.index(index).child("adminAccess");
        errors.forbidden(&path, ADMIN_REFUSAL.to_owned());
    }
    let kind = windlass_core::GroupKind::new("resource.k8s.io", kind.to_owned());
    Err(Status::invalid(&kind, object.meta().name(), &errors))
}

/// Refuses a status that gives administrative access outside of the namespaces that allow it. What
/// was given before stays.
pub fn check_admin_allocation(claim: &Doc, old: &Doc, storage: &dyn Reader) -> Result<(), Status> {
    let is_admin = |result: &Doc| result.at("/adminAccess").as_bool() == Some(true);
    let results = |claim: &'_ Doc| claim.at("/status/allocation/devices/results").clone();
    let (given, before) = (results(claim), results(old));
    let given = given.items().iter().enumerate();
    let mut given = given.filter(|(_, result)| is_admin(result)).peekable();
    if given.peek().is_none()
        || before.items().iter().any(is_admin)
        || is_admin_namespace(claim.meta().namespace(), storage)
    {
        return Ok(());
    }
    let mut errors = FieldErrors::default();
    let path = ["allocation", "devices", "results"];
    let path = path
        .iter()
        .fold(FieldPath::new("status"), |path, part| path.child(part));
    for (index, _) in given {
        let path = path.index(index).child("adminAccess");
        errors.forbidden(&path, ADMIN_REFUSAL.to_owned());
    }
    let kind = windlass_core::GroupKind::new("resource.k8s.io", "ResourceClaim".to_owned());
    Err(Status::invalid(&kind, claim.meta().name(), &errors))
}

fn is_admin_namespace(namespace: &str, storage: &dyn Reader) -> bool {
    let found = storage.find("", "namespaces", "", namespace);
    found.is_some_and(|found| found.meta().label(ADMIN_LABEL) == Some("true"))
}

impl Hooks for ResourceClaims {
    fn admit(&self, claim: Doc, storage: &dyn Reader) -> Result<Doc, Status> {
        let path = FieldPath::new("spec");
        check_admin_access("ResourceClaim", &claim, (claim.at("/spec"), &path), storage)?;
        Ok(claim)
    }

    fn default(&self, claim: Doc) -> Doc {
        edit(&claim, |claim| {
            claim.inside("spec", |spec| edit(spec, default_claim_spec))
        })
    }

    fn prepare_status(&self, new: Doc, old: &Doc) -> Doc {
        let kept = put(new, "/metadata", old.at("/metadata"));
        allocation::without_stale_devices(kept, old)
    }

    fn validate(&self, claim: &Doc, errors: &mut FieldErrors) {
        claim::validate_spec(claim.at("/spec"), &FieldPath::new("spec"), errors);
    }

    fn validate_change(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        validate_unless_stored(self, new, old, errors);
    }

    fn validate_status(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        allocation::validate_status(new, old, &FieldPath::new("status"), errors);
    }
}

impl Hooks for ResourceClaimTemplates {
    fn admit(&self, template: Doc, storage: &dyn Reader) -> Result<Doc, Status> {
        let path = FieldPath::new("spec").child("spec");
        let spec = (template.at("/spec/spec"), &path);
        check_admin_access("ResourceClaimTemplate", &template, spec, storage)?;
        Ok(template)
    }

    fn default(&self, template: Doc) -> Doc {
        edit(&template, |template| {
            template.inside("spec", |spec| {
                edit(spec, |spec| {
                    spec.inside("spec", |spec| edit(spec, default_claim_spec))
                })
            });
        })
    }

    fn validate(&self, template: &Doc, errors: &mut FieldErrors) {
        let (metadata, path) = (
            template.at("/spec/metadata"),
            FieldPath::new("spec").child("metadata"),
        );
        labels::annotations(
            &path.child("annotations"),
            metadata.at("/annotations"),
            errors,
        );
        labels::labels(&path.child("labels"), metadata.at("/labels"), errors);
        let path = FieldPath::new("spec").child("spec");
        claim::validate_spec(template.at("/spec/spec"), &path, errors);
    }

    fn validate_change(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        validate_unless_stored(self, new, old, errors);
    }
}

/// A spec that cannot change is looked at only if it does: what an earlier version of the rules has
/// let in stays.
fn validate_unless_stored(hooks: &impl Hooks, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
    if new.at("/spec") != old.at("/spec") {
        hooks.validate(new, errors);
        errors.immutable(&FieldPath::new("spec"), new.at("/spec"), old.at("/spec"));
    }
}

impl Hooks for DeviceClasses {
    fn validate(&self, class: &Doc, errors: &mut FieldErrors) {
        let (spec, path) = (class.at("/spec"), FieldPath::new("spec"));
        common::validate_selectors(spec, &path, errors);
        common::validate_configs(spec, &path, common::CONFIG_MAX, None, errors);
    }

    fn validate_change(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        // Settings that were let in before there was a limit to their size stay as they are.
        match new.at("/spec/config") == old.at("/spec/config") {
            true => self.validate(&cut(new.clone(), "/spec/config"), errors),
            false => self.validate(new, errors),
        }
    }
}

impl Hooks for ResourceSlices {
    fn prepare_create(&self, slice: Doc, env: &Env) -> Doc {
        slice::with_taint_times(&slice, env)
    }

    fn validate(&self, slice: &Doc, errors: &mut FieldErrors) {
        slice::validate(slice.at("/spec"), &FieldPath::new("spec"), errors);
    }

    fn validate_update(&self, new: &Doc, old: &Doc, errors: &mut FieldErrors) {
        let path = FieldPath::new("spec");
        for (pointer, child) in [
            ("/spec/driver", "driver"),
            ("/spec/nodeName", "nodeName"),
            ("/spec/pool/name", "pool.name"),
        ] {
            errors.immutable(&path.child(child), new.at(pointer), old.at(pointer));
        }
    }

    fn warnings(&self, slice: &Doc) -> Vec<String> {
        let driver = slice.str_at("/spec/driver");
        let text = format!(
            "spec.driver: driver names should be lowercase; {driver:?} contains uppercase \
             characters"
        );
        let is_upper = driver.chars().any(char::is_uppercase);
        is_upper.then_some(text).into_iter().collect()
    }
}
