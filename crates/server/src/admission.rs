//! What stands between a valid request and its object: defaults that follow from other objects,
//! and refusals because of them.
//!
//! These are the rules of upstream's default plug-ins, in upstream's order. Those that lean on
//! controllers are switched with [`Admission`]. What is filled in here belongs to no field manager.

mod limits;
mod namespace;
mod node;
mod node_restriction;
mod priority;
mod protection;
mod quota;
mod service_account;
mod signing;
mod tolerations;

pub(crate) use quota::Charged;
use windlass_core::{Doc, Env};

use crate::auth::User;
use crate::registry::Resource;
use crate::status::Status;
use crate::storage::Storage;

/// The rules of admission that only make sense where certain controllers run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Pods run as a service account that exists, `default` unless they say, and mount its token.
    /// Every namespace then needs its `default` service account, which a controller makes; those
    /// of the first namespaces are there from the start.
    pub service_accounts: bool,
    /// New nodes are tainted as not ready. A controller takes the taint away.
    pub node_taints: bool,
    /// New persistent volumes and claims get the finalizers that keep them while they are in use.
    /// Two controllers take them away: without those, nothing that has one can be deleted.
    pub storage_protection: bool,
}

/// A write that asks to be admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) rules: Admission,
    pub(crate) resource: &'a Resource,
    /// Who asks.
    pub(crate) user: &'a User,
    /// Empty outside of namespaces.
    pub(crate) namespace: &'a str,
    /// The part of the object that is written; empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) storage: &'a Storage,
    pub(crate) env: &'a Env,
}

impl Request<'_> {
    fn is_of(&self, group: &str, plural: &str) -> bool {
        self.resource.plural == plural && self.resource.gvk.group() == group
    }

    /// 403 for a reason given as the end of the sentence.
    fn forbid(&self, object: &Doc, why: &str) -> Status {
        let meta = object.meta();
        let name = match (meta.name(), meta.generate_name()) {
            ("", "") => "Unknown",
            ("", base) => base,
            (name, _) => name,
        };
        Status::forbidden(&self.resource.group_resource(), name, why)
    }
}

/// Waits for what a new object needs and a controller is about to make.
pub(crate) async fn wait(request: &Request<'_>, object: &Doc) {
    if request.is_of("", "pods") && namespace::check(request, object).is_ok() {
        service_account::wait(request, object).await;
    }
}

/// Fills in what follows from other objects, or refuses a new object because of them.
pub(crate) fn create(request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
    namespace::check(request, &object)?;
    node_restriction::check_create(request, &object)?;
    if request.is_of("", "pods") {
        let pod = limits::default_pod(request, object);
        let pod = service_account::admit(request, pod)?;
        let pod = priority::admit(request, &pod)?;
        return Ok(tolerations::admit(pod));
    }
    if request.is_of("", "nodes") {
        return Ok(node::admit(request, object));
    }
    if request.is_of(signing::GROUP, signing::PLURAL) {
        return Ok(signing::admit(request, &object));
    }
    Ok(protection::admit(request, object))
}

/// Fills in what an update left out, or refuses it because of its author.
pub(crate) fn update(request: &Request<'_>, object: Doc, old: &Doc) -> Result<Doc, Status> {
    node_restriction::check_update(request, &object, old)?;
    if request.is_of("", "pods") {
        return Ok(tolerations::admit(priority::keep(object, old)));
    }
    Ok(object)
}

/// Fills in what an update of a part left out, or refuses it because of its author.
pub(crate) fn update_part(request: &Request<'_>, object: Doc, old: &Doc) -> Result<Doc, Status> {
    node_restriction::check_update(request, &object, old)?;
    if request.is_of(signing::GROUP, signing::PLURAL) {
        return Ok(signing::date(request, &object, old));
    }
    Ok(object)
}

/// Refuses a deletion because of its author.
pub(crate) fn delete(request: &Request<'_>, object: &Doc) -> Result<(), Status> {
    node_restriction::check_delete(request, object)
}

/// Refuses an eviction because of its author.
pub(crate) fn evict(request: &Request<'_>, pod: &Doc) -> Result<(), Status> {
    node_restriction::check_eviction(request, pod)
}

/// Refuses a token for a service account because of its author.
pub(crate) fn token(request: &Request<'_>, account: &str, wanted: &Doc) -> Result<(), Status> {
    node_restriction::check_token(request, account, wanted)
}

/// Refuses a valid status, or another part with its own path, because of other objects.
pub(crate) fn validate_status(request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
    if request.is_of(signing::GROUP, signing::PLURAL) {
        return signing::check_signer(request, new, old);
    }
    if request.is_of("resource.k8s.io", "resourceclaims") && request.subresource == "status" {
        return crate::kinds::check_admin_allocation(new, old, request.storage);
    }
    Ok(())
}

/// Refuses a valid object because of others; `old` is absent for a new object.
pub(crate) fn validate(
    request: &Request<'_>,
    object: &Doc,
    old: Option<&Doc>,
) -> Result<(), Status> {
    match (request.resource.plural.as_ref(), old) {
        ("pods", None) | ("persistentvolumeclaims", _) => limits::validate(request, object, old),
        ("priorityclasses", _) => priority::validate(request, object, old),
        (signing::PLURAL, None) => signing::check_subject(request, object),
        _ => Ok(()),
    }
}

/// Charges the quotas of a namespace for a valid object, which is to be made, or to replace another
/// one. This comes last: what is charged for is refused for no other reason.
pub(crate) async fn charge(
    request: &Request<'_>,
    object: &Doc,
    old: Option<&Doc>,
    is_trial: bool,
) -> Result<Charged, Status> {
    quota::charge(request, object, old, is_trial).await
}

/// Whether a change can make an object count for more than before.
pub(crate) fn is_charged_for(request: &Request<'_>, is_main: bool, new: &Doc, old: &Doc) -> bool {
    let ends = |pod: &Doc| pod.at("/spec/activeDeadlineSeconds").as_i64() >= Some(0);
    match (
        request.resource.gvk.group(),
        request.resource.plural.as_ref(),
    ) {
        ("", "services" | "persistentvolumeclaims") => is_main,
        // The main path changes the scopes of a pod, the other one its containers.
        ("", "pods") => !is_main || ends(new) != ends(old),
        _ => false,
    }
}
