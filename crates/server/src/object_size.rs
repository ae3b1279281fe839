//! The limit on the size of a stored object.
//!
//! Upstream's is that of etcd: a write of more than 1.5 MiB is refused there, and the answer of the
//! API server is etcd's.

use windlass_atlas::ProtobufEncoder;
use windlass_core::Doc;
use windlass_rules::edit::cut;
use windlass_rules::status::Status;
use windlass_store::Change;

/// The most bytes that an object may have in the form in which upstream stores it.
pub(crate) const OBJECT_BYTES_LIMIT: usize = 3 << 19;

/// Upstream's words, which are those of etcd.
pub(crate) const TOO_LARGE: &str = "etcdserver: request is too large";

/// The change to an object that the server writes itself, as it is stored: a status, mostly.
pub(crate) fn put_checked(stored: Doc) -> Result<Change, Status> {
    if is_within(&stored) {
        return Ok(Change::put(stored));
    }
    let bare = cut(stored, "/metadata/managedFields");
    match is_within(&bare) {
        true => Ok(Change::put(bare)),
        false => Err(Status::plain(TOO_LARGE)),
    }
}

/// Nearly all objects are far below the limit, which a walk without a look at their texts tells.
/// Near it the form counts: upstream stores built-in kinds as protobuf.
pub(crate) fn is_within(stored: &Doc) -> bool {
    if stored.is_json_within(OBJECT_BYTES_LIMIT) {
        return true;
    }
    let mut bytes = Vec::new();
    // Twice the limit in JSON is above it in protobuf, too, for all but the emptiest of objects.
    stored.is_json_within(4 * OBJECT_BYTES_LIMIT)
        && ProtobufEncoder::new().write(stored, &mut bytes)
        && bytes.len() <= OBJECT_BYTES_LIMIT
}
