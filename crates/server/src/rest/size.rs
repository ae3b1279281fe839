//! The limit on the size of a stored object.
//!
//! Upstream's is that of etcd: a write of more than 1.5 MiB is refused there, and the answer of the
//! API server is etcd's.

use windlass_atlas::ProtobufEncoder;
use windlass_core::Doc;
use windlass_store::Change;

use super::{Call, fields};
use crate::registry::Resource;
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

/// Knowledge of the size of an object before it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// None: it is measured.
    Any,
    /// It comes from a body that is too small to make an object that is too large.
    Small,
}

impl Measure {
    /// What the body of a create tells. The schema of a custom resource may have defaults of any
    /// size; a patch, an update or a request of this process has more to bring than its body.
    pub(super) fn of_create(call: &Call) -> Self {
        let is_small = !call.resource.is_custom
            && !call.body.is_empty()
            && call.body.len() <= SMALL_BODY_BYTES;
        match is_small {
            true => Self::Small,
            false => Self::Any,
        }
    }
}

/// An object whose stored form is not too large, or else the object without its managed fields.
pub(super) fn checked(resource: &Resource, object: Doc, growth: Growth) -> Result<Doc, Status> {
    if is_within(&resource.to_storage(&object)) {
        return Ok(object);
    }
    let bare = fields::without_managers(object);
    match growth {
        Growth::Plain if is_within(&resource.to_storage(&bare)) => Ok(bare),
        _ => Err(Status::plain(TOO_LARGE)),
    }
}

/// The change to an object that the server writes itself, as it is stored: a status, mostly.
pub(crate) fn put(stored: Doc) -> Result<Change, Status> {
    if is_within(&stored) {
        return Ok(Change::put(stored));
    }
    let bare = fields::without_managers(stored);
    match is_within(&bare) {
        true => Ok(Change::put(bare)),
        false => Err(Status::plain(TOO_LARGE)),
    }
}

/// Nearly all objects are far below the limit, which a walk without a look at their texts tells.
/// Near it the form counts: upstream stores built-in kinds as protobuf.
fn is_within(stored: &Doc) -> bool {
    if stored.is_json_within(OBJECT_BYTES_LIMIT) {
        return true;
    }
    let mut bytes = Vec::new();
    // Twice the limit in JSON is above it in protobuf, too, for all but the emptiest of objects.
    stored.is_json_within(4 * OBJECT_BYTES_LIMIT)
        && ProtobufEncoder::new().write(stored, &mut bytes)
        && bytes.len() <= OBJECT_BYTES_LIMIT
}
