//! The last step of a write: what is brought in line after a request that wrote, once, whatever
//! became of it.

use super::Call;
use crate::crd;
use crate::dangling;
use crate::registry::AfterWrite;
use crate::request::Verb;
use crate::server::Server;

/// The work that a request leaves behind.
pub(super) enum FollowUp {
    Nothing,
    /// The registry is brought in line with the definitions before the request is answered.
    Definitions(crd::FollowUp),
    /// Flow schemas are told of their priority levels; nobody waits for it.
    FlowControl,
}

impl FollowUp {
    /// What a request may leave to do. Its registry row says so.
    pub(super) fn of(call: &Call) -> Self {
        let Some(verb) = call.path.verb.filter(|verb| !verb.is_read()) else {
            return Self::Nothing;
        };
        let custom = call.resource.custom.as_ref();
        match call.resource.needs.after_write {
            AfterWrite::SyncDefinitions => Self::Definitions(crd::FollowUp::of_definition()),
            AfterWrite::TellFlowSchemas if call.path.subresource.is_empty() => Self::FlowControl,
            AfterWrite::TellFlowSchemas | AfterWrite::Nothing => {
                // One object less may be the last that a deleted definition waits for.
                match custom.is_some_and(|it| it.is_terminating) && verb != Verb::Create {
                    true => Self::Definitions(crd::FollowUp::of_removal()),
                    false => Self::Nothing,
                }
            }
        }
    }

    pub(super) async fn run(self, server: &Server) {
        match self {
            Self::Nothing => {}
            Self::Definitions(work) => work.run(server).await,
            Self::FlowControl => drop(tokio::spawn(dangling::tell(server.clone()))),
        }
    }
}
