//! The limit on the size of a stored object.
//!
//! Upstream's is that of etcd: a write of more than 1.5 MiB is refused there, and the answer of the
//! API server is etcd's.

use windlass_core::Doc;

use super::{Call, fields};
use crate::object_size::{OBJECT_BYTES_LIMIT, TOO_LARGE, is_within};
use crate::registry::Resource;
use windlass_rules::status::Status;

/// A create with a smaller body is not measured, which would be four percent of its cost. Defaults
/// and managed fields make some ten bytes of one, not the 48 that it would take.
const SMALL_BODY_BYTES: usize = OBJECT_BYTES_LIMIT / 48;

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
