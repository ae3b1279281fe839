//! The admission plug-ins that only some kinds need. The registry row of a kind lists them.

use windlass_core::Doc;

use super::{
    Charge, Limited, Request, limits, node, priority, protection, service_account, signing,
    tolerations,
};
use crate::status::Status;

/// An admission plug-in, under upstream's name where it has one. The variants stand in upstream's
/// order, and so do the lists of the registry rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Plugin {
    /// Defaults and bounds of what objects ask for.
    LimitRanger(Limited),
    /// The account that a pod runs as, and its token.
    ServiceAccount,
    /// The taint of a new node.
    TaintNodesByCondition,
    /// The priority of a pod.
    Priority,
    /// The one class that is the default.
    PriorityClassDefault,
    /// The seconds that a pod stays on a node that does not answer.
    DefaultTolerationSeconds,
    /// The finalizer that keeps what is in use.
    StorageObjectInUseProtection(&'static str),
    /// Users, signers and subjects of requests for certificates.
    CertificateSigning,
    /// The namespaces in which a claim may have devices for administrators.
    DeviceAdminAccess,
    /// What a change costs.
    ResourceQuota(Charge),
}

impl Plugin {
    /// A new object with what the plug-in fills in.
    pub(super) fn create(self, request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
        match self {
            Self::LimitRanger(Limited::Pod) => Ok(limits::default_pod(request, object)),
            Self::ServiceAccount => service_account::admit(request, object),
            Self::TaintNodesByCondition => Ok(node::admit(request, object)),
            Self::Priority => priority::admit(request, &object),
            Self::DefaultTolerationSeconds => Ok(tolerations::admit(object)),
            Self::StorageObjectInUseProtection(finalizer) => {
                Ok(protection::admit(request, object, finalizer))
            }
            Self::CertificateSigning => Ok(signing::admit(request, &object)),
            Self::LimitRanger(Limited::Claim)
            | Self::PriorityClassDefault
            | Self::DeviceAdminAccess
            | Self::ResourceQuota(_) => Ok(object),
        }
    }

    /// A changed object with what the plug-in fills in.
    pub(super) fn update(self, object: Doc, old: &Doc) -> Doc {
        match self {
            Self::Priority => priority::keep(object, old),
            Self::DefaultTolerationSeconds => tolerations::admit(object),
            _ => object,
        }
    }

    /// An object of which a part changed, with what the plug-in fills in.
    pub(super) fn update_part(self, request: &Request<'_>, object: Doc, old: &Doc) -> Doc {
        match self {
            Self::CertificateSigning => signing::date(request, &object, old),
            _ => object,
        }
    }

    /// Refuses a valid object because of others; `old` is absent for a new object.
    pub(super) fn validate(
        self,
        request: &Request<'_>,
        object: &Doc,
        old: Option<&Doc>,
    ) -> Result<(), Status> {
        match (self, old) {
            // A pod keeps what it was admitted with.
            (Self::LimitRanger(Limited::Pod), Some(_)) => Ok(()),
            (Self::LimitRanger(limited), _) => limits::validate(request, limited, object, old),
            (Self::PriorityClassDefault, _) => priority::validate(request, object, old),
            (Self::CertificateSigning, None) => signing::check_subject(request, object),
            _ => Ok(()),
        }
    }

    /// Refuses a valid change of a part because of others.
    pub(super) fn validate_part(
        self,
        request: &Request<'_>,
        new: &Doc,
        old: &Doc,
    ) -> Result<(), Status> {
        match (self, request.subresource) {
            (Self::CertificateSigning, _) => signing::check_signer(request, new, old),
            (Self::DeviceAdminAccess, "status") => {
                crate::kinds::check_admin_allocation(new, old, request.storage)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::Registry;

    #[test]
    fn rows_list_their_plugins_in_the_order_of_upstream() {
        let table = Registry::built_in().table();
        let versions = table.groups().iter().flat_map(|group| &group.versions);
        for row in versions.flat_map(|version| version.resources.values()) {
            let plugins = row.needs.admission;
            assert!(plugins.is_sorted(), "{}: {plugins:?}", row.group_resource());
        }
    }
}
