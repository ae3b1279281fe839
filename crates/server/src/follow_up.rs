//! The work that a write leaves behind.

use crate::server::{Boxed, FollowUp, Server};
use crate::{crd, dangling};

/// Does what a write left to do; the request is answered afterwards.
pub(crate) fn run(server: Server, work: FollowUp) -> Boxed<()> {
    match work {
        FollowUp::Definition => Box::pin(crd::follow_up(server, false)),
        FollowUp::Removal => Box::pin(crd::follow_up(server, true)),
        FollowUp::FlowControl => {
            // Nobody waits for it.
            drop(tokio::spawn(dangling::tell(server)));
            Box::pin(std::future::ready(()))
        }
    }
}
