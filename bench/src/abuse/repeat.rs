//! Requests that are sent without a pause, each when the one before it was answered.

use std::sync::Arc;
use std::time::Duration;

use super::attack::Counts;
use crate::server::wire::{Target, Wire};

/// Requests that are sent in turn.
pub(super) type Script = Vec<Arc<[u8]>>;

/// Time before a lost connection is made again.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends a script again and again.
pub(super) async fn run(script: Script, mut wire: Option<Wire>, target: Target, counts: Counts) {
    for request in script.iter().cycle() {
        let mut connection = match wire.take() {
            Some(wire) => wire,
            None => match target.connect().await {
                Ok(wire) => wire,
                Err(_) => {
                    counts.lost();
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        counts.sent(1);
        match connection.exchange(request).await {
            Ok((status, _)) => {
                counts.answered(status);
                wire = Some(connection);
            }
            Err(_) => {
                counts.lost();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
