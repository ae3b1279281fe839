//! Admission: defaults that follow from other objects,
//! and refusals because of them.
//!
//! These are the rules of upstream's default plug-ins, in upstream's order. Those that lean on
//! controllers are switched with [`Admission`]. What is filled in here belongs to no field manager.

mod disabled;
mod limits;
mod namespace;
mod node;
mod node_restriction;
mod plugin;
mod pod_resize;
pub mod policy;
mod priority;
mod protection;
pub mod quota;
mod runtime_class;
mod service_account;
mod signing;
mod tolerations;

use windlass_core::{Doc, Env};

pub use disabled::{DisabledPlugins, PluginNameError};

use crate::objects::Objects;
use crate::user::User;
use plugin::try_fold;
use windlass_rules::status::Status;
use windlass_schema::needs::Plugin;
use windlass_schema::resource::Resource;

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
    /// The plug-ins that are switched off.
    pub disabled: DisabledPlugins,
}

/// A write that asks to be admitted.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The plug-ins that are switched on.
    pub rules: Admission,
    /// The kind that is written.
    pub resource: &'a Resource,
    /// The user who asks.
    pub user: &'a User,
    /// Empty outside of namespaces.
    pub namespace: &'a str,
    /// The part of the object that is written; empty for the object itself.
    pub subresource: &'a str,
    /// The other objects.
    pub objects: &'a dyn Objects,
    /// The source of time and names.
    pub env: &'a Env,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Request({})", self.resource.group_resource())
    }
}

impl Request<'_> {
    /// The plug-ins that look at the object, in their order.
    fn plugins(&self) -> impl Iterator<Item = Plugin> {
        let plugins = self.resource.needs.admission.iter().copied();
        plugins.filter(|plugin| !self.rules.disabled.contains(plugin.name()))
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

/// Returns true if a new pod lacks the account that a controller makes for each namespace, and so is
/// about to make.
#[must_use]
pub fn lacks_account(request: &Request<'_>, object: &Doc) -> bool {
    let mut plugins = request.plugins();
    plugins.any(|plugin| plugin == Plugin::ServiceAccount)
        && namespace::check(request, object).is_ok()
        && service_account::lacks_default(request, object)
}

/// Fills in what follows from other objects, or refuses a new object because of them.
pub fn create(request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
    try_fold(request, object, |plugin, object| {
        plugin.create(request, object)
    })
}

/// Fills in what an update left out, or refuses it because of its author.
pub fn update(request: &Request<'_>, object: Doc, old: &Doc) -> Result<Doc, Status> {
    try_fold(request, object, |plugin, new| {
        plugin.update(request, new, old)
    })
}

/// Fills in what an update of a part left out, or refuses it because of its author.
pub fn update_part(request: &Request<'_>, object: Doc, old: &Doc) -> Result<Doc, Status> {
    try_fold(request, object, |plugin, new| {
        plugin.update_part(request, new, old)
    })
}

/// Refuses a deletion because of its author.
pub fn delete(request: &Request<'_>, object: &Doc) -> Result<(), Status> {
    try_fold(request, (), |plugin, ()| plugin.delete(request, object))
}

/// Refuses an eviction because of its author.
pub fn evict(request: &Request<'_>, pod: &Doc) -> Result<(), Status> {
    try_fold(request, (), |plugin, ()| plugin.evict(request, pod))
}

/// Refuses a token for a service account because of its author.
pub fn token(request: &Request<'_>, account: &str, wanted: &Doc) -> Result<(), Status> {
    try_fold(request, (), |plugin, ()| {
        plugin.token(request, account, wanted)
    })
}

/// Refuses a valid status, or another part with its own path, because of other objects.
pub fn validate_status(request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
    try_fold(request, (), |plugin, ()| {
        plugin.validate_part(request, new, old)
    })
}

/// Refuses a valid object because of others; `old` is absent for a new object.
pub fn validate(request: &Request<'_>, object: &Doc, old: Option<&Doc>) -> Result<(), Status> {
    try_fold(request, (), |plugin, ()| {
        plugin.validate(request, object, old)
    })
}

/// Returns true if a change can make an object count for more than before. The main path is that of
/// the whole object.
#[must_use]
pub fn is_charged_for(request: &Request<'_>, is_main: bool, new: &Doc, old: &Doc) -> bool {
    request.plugins().any(|plugin| match plugin {
        Plugin::ResourceQuota(charge) => quota::is_due(charge, is_main, new, old),
        _ => false,
    })
}
