//! Storage object in use protection: what is in use is not deleted.

use windlass_core::Doc;

use super::Request;

pub(super) fn admit(request: &Request<'_>, object: Doc, finalizer: &str) -> Doc {
    match request.rules.storage_protection {
        true => object.with_finalizer(finalizer),
        false => object,
    }
}
