//! The interface of admission plug-ins, and which type is which plug-in.

use windlass_core::Doc;
use windlass_rules::kinds::check_admin_allocation;
use windlass_rules::status::Status;
use windlass_schema::needs::Plugin;

use super::Request;
use super::limits::LimitRanger;
use super::namespace::NamespaceLifecycle;
use super::node::TaintNodesByCondition;
use super::node_restriction::NodeRestriction;
use super::pod_resize::PodResizeValidator;
use super::priority::{Priority, PriorityClassDefault};
use super::protection::StorageObjectInUseProtection;
use super::runtime_class::RuntimeClass;
use super::service_account::ServiceAccount;
use super::signing::CertificateSigning;
use super::tolerations::DefaultTolerationSeconds;

/// An admission plug-in. Every method has a default that changes and refuses nothing.
pub(super) trait Admit {
    /// A new object with what the plug-in fills in.
    fn create(&self, _: &Request<'_>, object: Doc) -> Result<Doc, Status> {
        Ok(object)
    }

    /// A changed object with what the plug-in fills in.
    fn update(&self, _: &Request<'_>, new: Doc, _old: &Doc) -> Result<Doc, Status> {
        Ok(new)
    }

    /// An object of which a part changed, with what the plug-in fills in.
    fn update_part(&self, _: &Request<'_>, new: Doc, _old: &Doc) -> Result<Doc, Status> {
        Ok(new)
    }

    /// Refuses a valid object because of others; `old` is absent for a new object.
    fn validate(&self, _: &Request<'_>, _object: &Doc, _old: Option<&Doc>) -> Result<(), Status> {
        Ok(())
    }

    /// Refuses a valid change of a part because of others.
    fn validate_part(&self, _: &Request<'_>, _new: &Doc, _old: &Doc) -> Result<(), Status> {
        Ok(())
    }

    /// Refuses a deletion.
    fn delete(&self, _: &Request<'_>, _object: &Doc) -> Result<(), Status> {
        Ok(())
    }

    /// Refuses an eviction.
    fn evict(&self, _: &Request<'_>, _pod: &Doc) -> Result<(), Status> {
        Ok(())
    }

    /// Refuses a token for a service account.
    fn token(&self, _: &Request<'_>, _account: &str, _wanted: &Doc) -> Result<(), Status> {
        Ok(())
    }
}

/// Refuses devices for administrators in namespaces that are not theirs.
struct DeviceAdminAccess;

impl Admit for DeviceAdminAccess {
    fn validate_part(&self, request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
        match request.subresource {
            "status" => check_admin_allocation(new, old, request.objects),
            _ => Ok(()),
        }
    }
}

/// Quotas are charged last, by whoever stores them, with the [`Bill`](super::quota::Bill).
struct ResourceQuota;

impl Admit for ResourceQuota {}

/// The plug-ins that look at every kind; they come first.
const GENERAL: [(&str, &dyn Admit); 2] = [
    ("NamespaceLifecycle", &NamespaceLifecycle),
    ("NodeRestriction", &NodeRestriction),
];

/// Shows a value to all plug-ins of a request, one after the other: the general ones, then those
/// that the registry row of the kind lists.
pub(super) fn try_fold<T>(
    request: &Request<'_>,
    value: T,
    mut work: impl FnMut(&dyn Admit, T) -> Result<T, Status>,
) -> Result<T, Status> {
    let disabled = request.rules.disabled;
    let mut general = GENERAL
        .into_iter()
        .filter(|(name, _)| !disabled.contains(name));
    let value = general.try_fold(value, |value, (_, plugin)| work(plugin, value))?;
    let mut plugins = request.plugins();
    plugins.try_fold(value, |value, plugin| match plugin {
        Plugin::LimitRanger(limited) => work(&LimitRanger(limited), value),
        Plugin::ServiceAccount => work(&ServiceAccount, value),
        Plugin::TaintNodesByCondition => work(&TaintNodesByCondition, value),
        Plugin::Priority => work(&Priority, value),
        Plugin::PriorityClassDefault => work(&PriorityClassDefault, value),
        Plugin::DefaultTolerationSeconds => work(&DefaultTolerationSeconds, value),
        Plugin::StorageObjectInUseProtection(finalizer) => {
            work(&StorageObjectInUseProtection(finalizer), value)
        }
        Plugin::RuntimeClass => work(&RuntimeClass, value),
        Plugin::CertificateSigning => work(&CertificateSigning, value),
        Plugin::PodResizeValidator => work(&PodResizeValidator, value),
        Plugin::DeviceAdminAccess => work(&DeviceAdminAccess, value),
        Plugin::ResourceQuota(_) => work(&ResourceQuota, value),
    })
}

#[cfg(test)]
mod tests {
    use windlass_schema::built_in;

    #[test]
    fn rows_list_their_plugins_in_the_order_of_upstream() {
        for row in built_in::all() {
            let plugins = row.needs.admission;
            assert!(plugins.is_sorted(), "{}: {plugins:?}", row.group_resource());
        }
    }
}
