//! A watch for a client in the same process.

use windlass_wire::{Events, Status as WireStatus, WatchError};

use super::DocWatch;
use windlass_rules::status::Status;

impl DocWatch {
    /// The events as a client takes them.
    pub(crate) fn into_events(self) -> Events {
        Events::new(futures_util::stream::unfold(self, async |mut watch| {
            let event = watch.next().await?;
            Some((event.map_err(|status| refusal(&status)), watch))
        }))
    }
}

fn refusal(status: &Status) -> WatchError {
    let status = status.to_doc().decode::<WireStatus>();
    WatchError::Status(Box::new(status.unwrap_or_else(|error| {
        WireStatus::failure(500, "InternalError", error.to_string())
    })))
}
