//! The last step of a write: what is brought in line after a request that wrote, once, whatever
//! became of it.

use super::Call;
use crate::registry::AfterWrite;
use crate::request::Verb;
use crate::server::FollowUp;

/// The work that a request leaves behind. Its registry row says so.
pub(super) fn of(call: &Call) -> Option<FollowUp> {
    let verb = call.path.verb.filter(|verb| !verb.is_read())?;
    let custom = call.resource.custom.as_ref();
    match call.resource.needs.after_write {
        AfterWrite::SyncDefinitions => Some(FollowUp::Definition),
        AfterWrite::TellFlowSchemas if call.path.subresource.is_empty() => {
            Some(FollowUp::FlowControl)
        }
        AfterWrite::TellFlowSchemas | AfterWrite::Nothing => {
            // One object less may be the last that a deleted definition waits for.
            let is_removal = custom.is_some_and(|it| it.is_terminating) && verb != Verb::Create;
            is_removal.then_some(FollowUp::Removal)
        }
    }
}
