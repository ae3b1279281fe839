//! Storage object in use protection: what is in use is not deleted.

use windlass_core::Doc;

use super::Request;

pub(super) fn admit(request: &Request<'_>, object: Doc) -> Doc {
    let finalizer = match request.resource.plural.as_ref() {
        "persistentvolumes" => "kubernetes.io/pv-protection",
        "persistentvolumeclaims" => "kubernetes.io/pvc-protection",
        _ => return object,
    };
    let is_core = request.resource.gvk.group().is_empty();
    match is_core && request.rules.storage_protection {
        true => object.with_finalizer(finalizer),
        false => object,
    }
}
