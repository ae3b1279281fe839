//! What stands between a valid request and its object: defaults that follow from other objects,
//! and refusals because of them.
//!
//! These are the rules of upstream's default plug-ins, in upstream's order. Those that lean on
//! controllers are switched with [`Admission`]. What is filled in here belongs to no field manager.

mod limits;
mod namespace;
mod node;
mod node_restriction;
mod plugin;
mod priority;
mod protection;
mod quota;
mod service_account;
mod signing;
mod tolerations;

pub(crate) use limits::Limited;
pub(crate) use node_restriction::NodeRule;
pub(crate) use plugin::Plugin;
pub(crate) use quota::{Charge, Charged};
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
    /// The plug-ins that look at the object, in their order.
    fn plugins(&self) -> impl Iterator<Item = Plugin> {
        self.resource.needs.admission.iter().copied()
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
    for plugin in request.plugins() {
        if plugin == Plugin::ServiceAccount && namespace::check(request, object).is_ok() {
            service_account::wait(request, object).await;
        }
    }
}

/// Fills in what follows from other objects, or refuses a new object because of them.
pub(crate) fn create(request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
    namespace::check(request, &object)?;
    node_restriction::check_create(request, &object)?;
    let mut plugins = request.plugins();
    plugins.try_fold(object, |object, plugin| plugin.create(request, object))
}

/// Fills in what an update left out, or refuses it because of its author.
pub(crate) fn update(request: &Request<'_>, object: Doc, old: &Doc) -> Result<Doc, Status> {
    node_restriction::check_update(request, &object, old)?;
    let plugins = request.plugins();
    Ok(plugins.fold(object, |object, plugin| plugin.update(object, old)))
}

/// Fills in what an update of a part left out, or refuses it because of its author.
pub(crate) fn update_part(request: &Request<'_>, object: Doc, old: &Doc) -> Result<Doc, Status> {
    node_restriction::check_update(request, &object, old)?;
    let plugins = request.plugins();
    Ok(plugins.fold(object, |object, plugin| {
        plugin.update_part(request, object, old)
    }))
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
    let mut plugins = request.plugins();
    plugins.try_for_each(|plugin| plugin.validate_part(request, new, old))
}

/// Refuses a valid object because of others; `old` is absent for a new object.
pub(crate) fn validate(
    request: &Request<'_>,
    object: &Doc,
    old: Option<&Doc>,
) -> Result<(), Status> {
    let mut plugins = request.plugins();
    plugins.try_for_each(|plugin| plugin.validate(request, object, old))
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

/// Returns true if a change can make an object count for more than before. The main path is that of
/// the whole object.
pub(crate) fn is_charged_for(request: &Request<'_>, is_main: bool, new: &Doc, old: &Doc) -> bool {
    request.plugins().any(|plugin| match plugin {
        Plugin::ResourceQuota(charge) => charge.is_due(is_main, new, old),
        _ => false,
    })
}
