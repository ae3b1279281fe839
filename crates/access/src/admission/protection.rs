//! Storage object in use protection: what is in use is not deleted.

use windlass_core::Doc;

use super::Request;
use super::plugin::Admit;
use windlass_rules::status::Status;

/// Gives new objects the finalizer that keeps them while they are in use.
pub(super) struct StorageObjectInUseProtection(pub(super) &'static str);

impl Admit for StorageObjectInUseProtection {
    fn create(&self, request: &Request<'_>, object: Doc) -> Result<Doc, Status> {
        Ok(admit(request, object, self.0))
    }
}

fn admit(request: &Request<'_>, object: Doc, finalizer: &str) -> Doc {
    match request.rules.storage_protection {
        true => object.with_finalizer(finalizer),
        false => object,
    }
}
