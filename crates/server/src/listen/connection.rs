//! One connection: TLS, HTTP/1.1 or HTTP/2, deadlines, an orderly end.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_rustls::TlsAcceptor;

use super::connections::{Member, Peer};
use super::fair::{FairScheduler, StreamExecutor};
use super::faults::{self, Broken, CutAfter};
use super::progress::{AnswerSize, Overdue, PERIOD, SentBody};
use crate::body::arriving;
use crate::metrics::{EndReason, Labels};
use crate::peer::Connection as _;
use crate::server::Server;
use crate::work::WorkPool;
use crate::{compress, flow, respond};
use windlass_access::{User, certificate_user};

/// The deadline of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The deadline of the headers of an HTTP/1.1 request, from the end of the one before: upstream's.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(32);
/// Requests at a time on one HTTP/2 connection, upstream's. Each watch is one.
pub(super) const STREAMS_LIMIT: u32 = 250;
/// Bytes of headers that are read.
const HEADER_BYTES_LIMIT: usize = 64 << 10;
/// Bytes of one request body that are on the way before the server has read them, as upstream.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// The same for all streams of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Bytes of one answer that wait for the socket.
const SEND_BUFFER_BYTES: usize = 128 << 10;
/// Streams that a client has opened and reset before the server has looked at them.
const RESET_STREAMS_LIMIT: usize = 20;
/// Streams that the server itself has reset, for what the client did wrong on them.
const ERROR_STREAMS_LIMIT: usize = 1024;
/// The period in which an HTTP/2 client is asked for a sign of life.
const PING_PERIOD: Duration = Duration::from_secs(30);
/// The deadline of that sign.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The parts of a server that one connection needs.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    pub(super) server: Server,
    pub(super) acceptor: TlsAcceptor,
    /// The hosts that requests may name.
    pub(super) hosts: Arc<HashSet<String>>,
    /// The threads for requests that take their time.
    pub(super) pool: WorkPool,
    /// The order in which ready connections are served.
    pub(super) scheduler: Arc<FairScheduler>,
    /// True when the server ends.
    pub(super) shutdown: watch::Receiver<bool>,
}

/// The versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

impl ConnectionContext {
    /// Secures a connection and starts to serve it. `alive` is held until it ends.
    pub(super) async fn run(
        self,
        stream: TcpStream,
        member: Member,
        alive: mpsc::Sender<Infallible>,
    ) {
        // Events are small and must not wait for more of them.
        let _ = stream.set_nodelay(true);
        let handshake = self.pool.handshake(self.acceptor.accept(stream));
        let handshake = timeout(HANDSHAKE_TIMEOUT, handshake);
        let stream = tokio::select! {
            biased;
            stream = handshake => stream,
            () = member.0.until_shed() => return,
        };
        let stream = match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => {
                self.server
                    .inner()
                    .metrics
                    .connections
                    .ended(EndReason::Handshake);
                return;
            }
        };
        let session = stream.get_ref().1;
        let version = match session.alpn_protocol() {
            Some(b"h2") => Version::Http2,
            _ => Version::Http1,
        };
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let user = certificate.and_then(|certificate| certificate_user(certificate));
        let (scheduler, peer) = (Arc::clone(&self.scheduler), Arc::clone(&member.0));
        scheduler.spawn(&peer, async move {
            self.serve(stream, version, user, member).await;
            drop(alive);
        });
    }

    /// Serves the requests of a connection.
    pub(super) async fn serve<S>(
        self,
        stream: S,
        version: Version,
        user: Option<User>,
        member: Member,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = Arc::clone(&member.0);
        if let Some(user) = &user {
            peer.authenticated(user);
        }
        let (server, hosts) = (self.server.clone(), Arc::clone(&self.hosts));
        let pool = self.pool.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            // A good certificate comes before any token, as upstream has it.
            if let Some(user) = &user {
                request.extensions_mut().insert(user.clone());
            }
            request
                .extensions_mut()
                .insert(crate::peer::Peer(peer.clone()));
            request.extensions_mut().insert(pool.clone());
            let (server, hosts, peer) = (server.clone(), Arc::clone(&hosts), Arc::clone(&peer));
            async move { answer(&server, &hosts, &peer, request).await }
        });
        let builder = builder(
            version,
            StreamExecutor {
                scheduler: Arc::clone(&self.scheduler),
                peer: Arc::clone(&member.0),
            },
        );
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = std::pin::pin!(connection);
        let end = |connection: Pin<&mut _>| auto::Connection::graceful_shutdown(connection);
        self.supervise(connection, end, &member.0).await;
    }

    /// Drives a connection until it ends, has to make way, or a deadline passes.
    async fn supervise<C, E>(
        mut self,
        mut connection: Pin<&mut C>,
        end: impl Fn(Pin<&mut C>),
        peer: &Peer,
    ) where
        C: Future<Output = Result<(), E>>,
        E: std::fmt::Display,
    {
        let mut looks = interval_at(Instant::now() + PERIOD, PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A connection that was told to end has until the next look.
        let (mut is_ending, mut is_shutdown) = (false, false);
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended early");
                    }
                    return;
                }
                () = peer.until_shed() => return,
                _ = self.shutdown.wait_for(|ends| *ends), if !is_shutdown => {
                    is_shutdown = true;
                    end(connection.as_mut());
                }
                _ = looks.tick() => match peer.progress.look() {
                    None => {}
                    Some(Overdue::Idle) if !is_ending => {
                        is_ending = true;
                        end(connection.as_mut());
                        self.server.inner().metrics.connections.ended(EndReason::Idle);
                    }
                    Some(Overdue::Idle) => return,
                    Some(Overdue::Unread) => {
                        return self.server.inner().metrics.connections.ended(EndReason::Unread);
                    }
                }
            }
        }
    }
}

fn builder(version: Version, executor: StreamExecutor) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .max_buf_size(HEADER_BYTES_LIMIT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_LIMIT)
        .max_header_list_size(HEADER_BYTES_LIMIT as u32)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(RESET_STREAMS_LIMIT)
        .max_local_error_reset_streams(ERROR_STREAMS_LIMIT)
        .keep_alive_interval(PING_PERIOD)
        .keep_alive_timeout(PING_TIMEOUT);
    // The protocol is known from the handshake, and so half a preface is not waited for.
    match version {
        Version::Http1 => builder.http1_only(),
        Version::Http2 => builder.http2_only(),
    }
}

async fn answer(
    server: &Server,
    hosts: &HashSet<String>,
    peer: &Peer,
    request: Request<Incoming>,
) -> Result<Response<SentBody>, Broken> {
    let (running, version) = (peer.progress.begin(), request.version());
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
    let mut response = if !host.is_some_and(|host| hosts.contains(&without_port(host))) {
        let text = "the Host header names another server\n";
        respond::text(StatusCode::MISDIRECTED_REQUEST, text)
    } else if peer.progress.is_full() {
        respond::status(&flow::overloaded())
    } else {
        let accepts_gzip = compress::is_accepted(request.headers());
        let request = request.map(arriving);
        let response = match &server.inner().faults {
            None => server.handle_request(request).await,
            Some(plan) => faults::answer(server, plan, request).await?,
        };
        compress::compress(accepts_gzip, response).await
    };
    let labels = response.extensions_mut().remove::<Labels>();
    let size = labels.map(|labels| AnswerSize::new(server, labels));
    let cut = response.extensions_mut().remove::<CutAfter>();
    let body = |body| {
        SentBody::new(body, running, version)
            .measured_by(size)
            .cut(cut)
    };
    Ok(response.map(body))
}

/// The host of an authority, in lower case.
fn without_port(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host.to_ascii_lowercase()
}
