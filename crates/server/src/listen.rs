//! Connections: accepting, TLS, HTTP/1.1 and HTTP/2, an orderly end.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;

use crate::auth::certificate_user;
use crate::body::{Body, arriving};
use crate::certs::Certificates;
use crate::server::{Boxed, Server};
use crate::{bootstrap, compress, respond, tls};

/// Connections at a time; further ones wait to be accepted.
const CONNECTIONS_LIMIT: usize = 4096;
/// How long a client may take to finish the TLS handshake or to send its headers.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Requests at a time on one HTTP/2 connection. Each watch is one.
const STREAMS_LIMIT: u32 = 1000;
/// Bytes of headers that are read.
const HEADER_BYTES_LIMIT: usize = 64 << 10;
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
    if let Err(error) = bootstrap::publish(&server, address, &certificates.authority).await {
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
        let connections = GracefulShutdown::new();
        let room = Arc::new(Semaphore::new(CONNECTIONS_LIMIT));
        loop {
            let accepted = tokio::select! {
                biased;
                _ = &mut stopped => break,
                accepted = self.accept(&room) => accepted,
            };
            let Some((stream, permit)) = accepted else {
                continue;
            };
            let connection = Connection {
                server: self.server.clone(),
                acceptor: self.acceptor.clone(),
                hosts: Arc::clone(&self.hosts),
                watcher: connections.watcher(),
            };
            tokio::spawn(async move {
                connection.run(stream).await;
                drop(permit);
            });
        }
        drop(self.listener);
        let server = self.server;
        // Closing ends the watches, without which no connection would come to its end. It blocks
        // until the disk has everything.
        let closing = tokio::task::spawn_blocking(move || server.close());
        if closing.await.is_err() {
            tracing::error!("closing the store failed");
        }
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, connections.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("connections were still open when the server ended");
        }
    }

    async fn accept(&self, room: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let permit = Arc::clone(room).acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => Some((stream, permit)),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Out of file descriptors, most likely: trying at once would only spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
        }
    }
}

/// What one connection needs.
struct Connection {
    server: Server,
    acceptor: TlsAcceptor,
    hosts: Arc<HashSet<String>>,
    watcher: hyper_util::server::graceful::Watcher,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        // Events are small and must not wait for more of them.
        let _ = stream.set_nodelay(true);
        let handshake = self.acceptor.accept(stream);
        let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        };
        let certificate = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(|chain| chain.first());
        let user = certificate.and_then(|certificate| certificate_user(certificate));
        let (server, hosts) = (self.server, self.hosts);
        let service = service_fn(move |mut request: Request<Incoming>| {
            // A good certificate comes before any token, as upstream has it.
            if let Some(user) = &user {
                request.extensions_mut().insert(user.clone());
            }
            let (server, hosts) = (server.clone(), Arc::clone(&hosts));
            async move { Ok::<_, Infallible>(answer(&server, &hosts, request).await) }
        });
        let builder = builder();
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        if let Err(error) = self.watcher.watch(connection.into_owned()).await {
            tracing::debug!(%error, "connection ended early");
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE_TIMEOUT)
        .max_buf_size(HEADER_BYTES_LIMIT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_LIMIT)
        .max_header_list_size(HEADER_BYTES_LIMIT as u32)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

async fn answer(
    server: &Server,
    hosts: &HashSet<String>,
    request: Request<Incoming>,
) -> Response<Body> {
    let host = request
        .uri()
        .authority()
        .map(http::uri::Authority::as_str)
        .or_else(|| {
            request
                .headers()
                .get(header::HOST)
                .and_then(|value| value.to_str().ok())
        });
    if !host.is_some_and(|host| hosts.contains(&without_port(host))) {
        let text = "the Host header names another server\n";
        return respond::text(StatusCode::MISDIRECTED_REQUEST, text);
    }
    let accepts_gzip = compress::is_accepted(request.headers());
    let response = server.handle_request(request.map(arriving)).await;
    compress::compress(accepts_gzip, response).await
}

/// The host of an authority, in lower case.
fn without_port(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host.to_ascii_lowercase()
}
