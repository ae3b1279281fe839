//! Listening: accepting connections, an orderly end.

mod connection;
mod connections;
mod fair;
mod faults;
mod progress;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_rustls::TlsAcceptor;

use crate::certs::Certificates;
use crate::server::{Boxed, Server};
use crate::work::WorkPool;
use crate::{bootstrap, tls};
use connection::ConnectionContext;
use connections::{Connections, Member};
use fair::FairScheduler;

/// How long requests in flight may take to end when the server ends. Watches end at once.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A server could not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address could not be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A server that listens, and does not answer before it is run.
pub struct Listening {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    server: Server,
    /// The hosts that requests may name, without ports, in lower case.
    hosts: Arc<HashSet<String>>,
    address: SocketAddr,
    pool: WorkPool,
}

/// Opens a socket for a server.
///
/// Requests must name one of the hosts, or the address itself or this machine: a page in a
/// browser that got an address of its own to point here names another.
///
/// # Errors
/// When the address cannot be had, or the certificates are no use.
pub async fn serve(
    server: Server,
    address: SocketAddr,
    certificates: &Certificates,
    hosts: &[String],
) -> Result<Listening, ServeError> {
    opening(server, address, certificates.clone(), hosts.to_vec()).await
}

fn opening(
    server: Server,
    address: SocketAddr,
    certificates: Certificates,
    hosts: Vec<String>,
) -> Boxed<Result<Listening, ServeError>> {
    Box::pin(async move { listen(server, address, &certificates, &hosts).await })
}

async fn listen(
    server: Server,
    address: SocketAddr,
    certificates: &Certificates,
    hosts: &[String],
) -> Result<Listening, ServeError> {
    let listen = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let config = tls::config(certificates).map_err(|error| ServeError::Tls(Box::new(error)))?;
    // A server whose disk fails still reads, and its clients know where it is.
    if let Err(error) = bootstrap::publish(&server, address, certificates).await {
        tracing::warn!(%error, "the address of the server is not published");
    }
    let local = [
        "localhost",
        "127.0.0.1",
        "[::1]",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ];
    let hosts = hosts
        .iter()
        .map(|host| host.to_ascii_lowercase())
        .chain(local.map(str::to_owned))
        .chain([address.ip().to_string()])
        .collect();
    let acceptor = TlsAcceptor::from(config);
    Ok(Listening {
        listener,
        acceptor,
        server,
        hosts: Arc::new(hosts),
        address,
        pool: WorkPool::start().map_err(listen)?,
    })
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Listening {
    /// The address, with the port that was chosen if none was given.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `shutdown` is ready, then ends what is in flight and closes the
    /// server.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let (stop, stopped) = oneshot::channel();
        let mut serving = self.serving(stopped);
        tokio::select! {
            () = shutdown => drop(stop),
            () = &mut serving => return,
        }
        serving.await;
    }

    fn serving(self, stopped: oneshot::Receiver<()>) -> Boxed<()> {
        Box::pin(self.accept_until(stopped))
    }

    async fn accept_until(self, mut stopped: oneshot::Receiver<()>) {
        let (shutdown, is_shut_down) = watch::channel(false);
        // Each connection holds a sender, and so the receiver learns when all have ended.
        let (alive, mut all_ended) = mpsc::channel::<Infallible>(1);
        let context = ConnectionContext {
            server: self.server.clone(),
            acceptor: self.acceptor.clone(),
            hosts: Arc::clone(&self.hosts),
            pool: self.pool.clone(),
            scheduler: FairScheduler::new(),
            shutdown: is_shut_down,
        };
        let metrics = Arc::clone(&self.server.inner().metrics.connections);
        let connections = Connections::new(metrics);
        loop {
            let accepted = tokio::select! {
                biased;
                _ = &mut stopped => break,
                accepted = self.accept(&connections) => accepted,
            };
            let Some((stream, member)) = accepted else {
                continue;
            };
            let (context, alive) = (context.clone(), alive.clone());
            tokio::spawn(async move {
                context.run(stream, member, alive).await;
            });
        }
        drop((self.listener, alive));
        self.pool.close();
        let server = self.server;
        // Closing ends the watches, without which no connection would come to its end. It blocks
        // until the disk has everything.
        let closing = tokio::task::spawn_blocking(move || server.close());
        if closing.await.is_err() {
            tracing::error!("closing the store failed");
        }
        shutdown.send_replace(true);
        let ended = tokio::time::timeout(SHUTDOWN_TIMEOUT, all_ended.recv()).await;
        if ended.is_err() {
            tracing::warn!("connections were still open when the server ended");
        }
    }

    async fn accept(&self, connections: &Arc<Connections>) -> Option<(TcpStream, Member)> {
        match self.listener.accept().await {
            Ok((stream, address)) => Some((stream, connections.admit(address.ip()))),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Out of file descriptors, most likely: trying at once would only spin.
                connections.shed_for_descriptors();
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
        }
    }
}
