//! The admission plug-ins that only some kinds need. The registry row of a kind lists them.

use windlass_core::Doc;

use windlass_schema::needs::{Limited, Plugin};

use super::{Request, limits, node, priority, protection, service_account, signing, tolerations};
use windlass_rules::status::Status;

/// The work of a plug-in.
pub(super) trait Admit: Copy {
    /// A new object with what the plug-in fills in.
    fn create(self, request: &Request<'_>, object: Doc) -> Result<Doc, Status>;

    /// A changed object with what the plug-in fills in.
    fn update(self, object: Doc, old: &Doc) -> Doc;

    /// An object of which a part changed, with what the plug-in fills in.
    fn update_part(self, request: &Request<'_>, object: Doc, old: &Doc) -> Doc;

    /// Refuses a valid object because of others; `old` is absent for a new object.
    fn validate(self, request: &Request<'_>, object: &Doc, old: Option<&Doc>)
    -> Result<(), Status>;

    /// Refuses a valid change of a part because of others.
    fn validate_part(self, request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status>;
}

impl Admit for Plugin {
    fn create(self, request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
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

    fn update(self, object: Doc, old: &Doc) -> Doc {
        match self {
            Self::Priority => priority::keep(object, old),
            Self::DefaultTolerationSeconds => tolerations::admit(object),
            _ => object,
        }
    }

    fn update_part(self, request: &Request<'_>, object: Doc, old: &Doc) -> Doc {
        match self {
            Self::CertificateSigning => signing::date(request, &object, old),
            _ => object,
        }
    }

    fn validate(
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

    fn validate_part(self, request: &Request<'_>, new: &Doc, old: &Doc) -> Result<(), Status> {
        match (self, request.subresource) {
            (Self::CertificateSigning, _) => signing::check_signer(request, new, old),
            (Self::DeviceAdminAccess, "status") => {
                windlass_rules::kinds::check_admin_allocation(new, old, request.objects)
            }
            _ => Ok(()),
        }
    }
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
