//! The limit on the size of a stored object.
//!
//! Upstream's is that of etcd: a write of more than 1.5 MiB is refused there, and the answer of the
//! API server is etcd's.

use windlass_atlas::ProtobufEncoder;
use windlass_core::Doc;

use super::{Call, fields};
use crate::registry::Resource;
use crate::request::Verb;
use crate::status::Status;

/// The most bytes that an object may have in the form in which upstream stores it.
pub(crate) const OBJECT_BYTES_LIMIT: usize = 3 << 19;

/// A create with a smaller body is not measured, which would be four percent of its cost. Defaults
/// and managed fields make some ten bytes of one, not the 48 that it would take.
const SMALL_BODY_BYTES: usize = OBJECT_BYTES_LIMIT / 48;

/// Upstream's words, which are those of etcd.
const TOO_LARGE: &str = "etcdserver: request is too large";

/// What to do about an object that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// It may do without its managed fields, as upstream has it.
    Plain,
    /// It comes from an apply, whose managed fields are its purpose.
    Applied,
}

/// Returns true if a request cannot make an object that is too large. The schema of a custom
/// resource may have defaults of any size; a patch, an update or a request of this process has more
/// to bring than its body.
pub(super) fn is_small_create(call: &Call) -> bool {
    call.path.verb == Some(Verb::Create)
        && !call.resource.is_custom
        && !call.body.is_empty()
        && call.body.len() <= SMALL_BODY_BYTES
}

/// An object in its stored form that is not too large, or else without its managed fields.
pub(super) fn checked(resource: &Resource, stored: Doc, growth: Growth) -> Result<Doc, Status> {
    if is_within(resource, &stored) {
        return Ok(stored);
    }
    let bare = fields::without_managers(stored);
    match growth {
        Growth::Plain if is_within(resource, &bare) => Ok(bare),
        _ => Err(Status::plain(TOO_LARGE)),
    }
}

/// Nearly all objects are far below the limit, which a walk without a look at their texts tells.
/// Near it the form counts: upstream stores built-in kinds as protobuf.
fn is_within(resource: &Resource, stored: &Doc) -> bool {
    if stored.is_json_within(OBJECT_BYTES_LIMIT) {
        return true;
    }
    let mut bytes = Vec::new();
    // Twice the limit in JSON is above it in protobuf, too, for all but the emptiest of objects.
    !resource.is_custom
        && stored.is_json_within(4 * OBJECT_BYTES_LIMIT)
        && ProtobufEncoder::new().write(stored, &mut bytes)
        && bytes.len() <= OBJECT_BYTES_LIMIT
}
