//! Impersonation: acting as another user, for those who may.
//!
//! Upstream knows four modes that are constrained to what a request does, and the older one that
//! is not. They are tried in its order; the first that allows decides who the user is, and the
//! first refusal is the answer if none does.

mod headers;
mod modes;

use self::headers::Impersonated;
use self::modes::Mode;
use crate::attributes::Attributes;
use crate::objects::Objects;
use crate::user::User;
use windlass_rules::status::Status;

/// The user that a request is to be judged by: the one that its headers name, if the sender may
/// act as them, or else the sender. Of the headers, in lower case, only those that begin with
/// `impersonate-` count.
pub fn effective_user(
    sender: User,
    headers: &[(&str, &[u8])],
    target: &Attributes,
    objects: &dyn Objects,
) -> Result<User, Status> {
    let Some(wanted) = Impersonated::read(headers)? else {
        return Ok(sender);
    };
    let mut first = None;
    for mode in Mode::ALL {
        if !mode.applies(&wanted, &sender) {
            continue;
        }
        match mode.check(&wanted, &sender, target, objects) {
            Ok(user) => return Ok(user),
            Err(refusal) => first = first.or(Some(refusal)),
        }
    }
    Err(first.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}
