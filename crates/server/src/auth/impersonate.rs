//! Impersonation: acting as another user, for those who may.
//!
//! Upstream knows four modes that are constrained to what a request does, and the older one that
//! is not. They are tried in its order; the first that allows decides who the user is, and the
//! first refusal is the answer if none does.

mod headers;
mod modes;

use http::HeaderMap;

use self::headers::Impersonated;
use self::modes::Mode;
use super::User;
use super::rbac::Attributes;
use crate::status::Status;
use crate::storage::Storage;

/// The user that a request is to be judged by: the one that its headers name, if the sender may
/// act as them, or else the sender.
pub(crate) fn effective_user(
    sender: User,
    headers: &HeaderMap,
    target: &Attributes,
    storage: &Storage,
) -> Result<User, Status> {
    let Some(wanted) = Impersonated::read(headers)? else {
        return Ok(sender);
    };
    let mut first = None;
    for mode in Mode::ALL {
        if !mode.applies(&wanted, &sender) {
            continue;
        }
        match mode.check(&wanted, &sender, target, storage) {
            Ok(user) => return Ok(user),
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    Err(first.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}
