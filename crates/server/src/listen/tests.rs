//! Connections on virtual time, without TLS.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use windlass_core::{Env, doc};

use super::connection::{ConnectionContext, STREAMS_LIMIT, Version};
use super::connections::Connections;
use super::fair::FairScheduler;
use super::progress::{IDLE_PERIODS, PERIOD, STALLED_PERIODS};
use crate::certs::Certificates;
use crate::open::ServerOptions;
use crate::server::Server;
use crate::tls;
use windlass_access::User;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// No deadline of a connection is later.
const LONG: Duration = Duration::from_secs(600);

struct Listener {
    context: ConnectionContext,
    connections: Arc<Connections>,
    _shutdown: watch::Sender<bool>,
}

type Sender = http2::SendRequest<Full<Bytes>>;

impl Listener {
    async fn new() -> Self {
        let env = Env::seeded(1);
        let server = Server::open(ServerOptions::memory(env.clone()))
            .await
            .unwrap();
        let certificates = Certificates::in_memory(&[], &env).unwrap();
        let (shutdown, is_shut_down) = watch::channel(false);
        let metrics = Arc::clone(&server.inner().metrics.connections);
        Self {
            context: ConnectionContext {
                server,
                acceptor: TlsAcceptor::from(tls::config(&certificates).unwrap()),
                hosts: Arc::new(HashSet::from(["localhost".to_owned()])),
                pool: crate::work::WorkPool::start().unwrap(),
                scheduler: FairScheduler::new(),
                shutdown: is_shut_down,
            },
            connections: Connections::new(metrics),
            _shutdown: shutdown,
        }
    }

    /// The client's end of a connection of the administrator.
    fn connect(&self, version: Version) -> DuplexStream {
        let (client, socket) = tokio::io::duplex(16 << 10);
        let member = self.connections.admit(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let context = self.context.clone();
        let user = Some(User::admin());
        tokio::spawn(async move { context.serve(socket, version, user, member).await });
        client
    }

    /// An HTTP/2 client that takes so many bytes of an answer before it is asked for more, and a
    /// task that ends with the connection.
    async fn http2(&self, window: u32) -> (Sender, tokio::task::JoinHandle<()>) {
        let stream = TokioIo::new(self.connect(Version::Http2));
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(stream)
            .await
            .unwrap();
        let done = tokio::spawn(async move {
            let _ = connection.await;
        });
        (sender, done)
    }

    /// Config maps of about a megabyte.
    async fn fill(&self) {
        for number in 0..20 {
            let object = doc!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": (format!("c{number}")), "namespace": "default" },
                "data": { "k": ("x".repeat(50 << 10)) }
            });
            self.context.server.import(&object).await.unwrap();
        }
    }

    fn metric(&self, row: &str) -> f64 {
        let page = crate::metrics_page::page(&self.context.server);
        let line = page.lines().find(|line| line.starts_with(row));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    fn open_watches(&self) -> f64 {
        self.metric("apiserver_longrunning_requests")
    }

    fn open_connections(&self) -> f64 {
        self.metric("windlass_connections{authenticated=\"true\"}")
            + self.metric("windlass_connections{authenticated=\"false\"}")
    }
}

fn get(path: &str) -> Request<Full<Bytes>> {
    let uri = format!("https://localhost{path}");
    Request::builder().uri(uri).body(Full::default()).unwrap()
}

/// Waits until the server closes the connection, and says how long that took.
async fn until_closed(stream: &mut DuplexStream) -> Duration {
    let before = Instant::now();
    let mut bytes = Vec::new();
    timeout(LONG, stream.read_to_end(&mut bytes))
        .await
        .expect("the connection stays open")
        .unwrap();
    before.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_first_request_ends() {
    let listener = Listener::new().await;
    let half_headers = b"GET / HTTP/1.1\r\nHost: local";
    for (version, sent) in [
        (Version::Http1, &b""[..]),
        (Version::Http1, half_headers),
        (Version::Http2, b""),
        (Version::Http2, &PREFACE[..12]),
        (Version::Http2, PREFACE),
    ] {
        let mut stream = listener.connect(version);
        stream.write_all(sent).await.unwrap();
        let took = until_closed(&mut stream).await;
        assert!(took <= 2 * PERIOD, "{version:?} {sent:?}: {took:?}");
    }
    assert_eq!(listener.open_connections(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends() {
    let listener = Listener::new().await;
    let mut stream = listener.connect(Version::Http1);
    let request = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let took = until_closed(&mut stream).await;
    assert!(took <= (IDLE_PERIODS + 2) * PERIOD, "{took:?}");
    let (mut sender, done) = listener.http2(1 << 20).await;
    let response = sender.send_request(get("/version")).await.unwrap();
    response.into_body().collect().await.unwrap();
    let before = Instant::now();
    timeout(LONG, done).await.expect("it stays open").unwrap();
    let took = before.elapsed();
    assert!(took >= (IDLE_PERIODS - 1) * PERIOD, "{took:?}");
    assert!(took <= (IDLE_PERIODS + 2) * PERIOD, "{took:?}");
    assert_eq!(listener.open_connections(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_quiet_watch_stays() {
    let listener = Listener::new().await;
    let (mut sender, done) = listener.http2(1 << 20).await;
    let watch = get(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=3600"));
    let mut body = sender.send_request(watch).await.unwrap().into_body();
    tokio::time::sleep(LONG).await;
    assert!(!done.is_finished());
    listener.fill().await;
    let frame = body.frame().await.unwrap().unwrap();
    let bytes = frame.into_data().unwrap();
    assert!(bytes.starts_with(b"{\"type\":\"ADDED\""), "{bytes:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_ends_its_connection() {
    let listener = Listener::new().await;
    listener.fill().await;
    let deadline = (STALLED_PERIODS + 2) * PERIOD;
    let (mut sender, done) = listener.http2(1024).await;
    let _unread = sender.send_request(get(CONFIG_MAPS)).await.unwrap();
    timeout(deadline, done)
        .await
        .expect("it stays open")
        .unwrap();
    let mut stream = listener.connect(Version::Http1);
    let request = format!("GET {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(deadline).await;
    assert_eq!(listener.open_connections(), 0.0);
    let ended = listener.metric("windlass_connections_ended_total{reason=\"unread\"}");
    assert_eq!(ended, 2.0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_read_slowly_does_not_end() {
    let listener = Listener::new().await;
    listener.fill().await;
    let (mut sender, _done) = listener.http2(64 << 10).await;
    let mut body = sender
        .send_request(get(CONFIG_MAPS))
        .await
        .unwrap()
        .into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.unwrap().into_data().unwrap().len();
        tokio::time::sleep(PERIOD / 4).await;
    }
    assert!(bytes > 1_000_000, "{bytes} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_nobody_reads_ends() {
    let listener = Listener::new().await;
    let (mut sender, done) = listener.http2(1024).await;
    let watch = get(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=3600"));
    let _unread = sender.send_request(watch).await.unwrap();
    tokio::time::sleep(LONG / 10).await;
    assert_eq!(listener.open_watches(), 1.0, "no event waits");
    listener.fill().await;
    let deadline = (STALLED_PERIODS + 2) * PERIOD;
    timeout(deadline, done)
        .await
        .expect("it stays open")
        .unwrap();
    assert_eq!(listener.open_watches(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_its_connection() {
    let listener = Listener::new().await;
    let (mut sender, done) = listener.http2(1 << 20).await;
    let watch = get(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=3600"));
    let response = sender.send_request(watch).await.unwrap();
    let mut stream = listener.connect(Version::Http1);
    let request = format!("GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.read_u8().await.unwrap();
    assert_eq!(listener.open_watches(), 2.0);
    done.abort();
    drop((response, stream));
    // Before any timer.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(listener.open_watches(), 0.0);
    assert_eq!(listener.open_connections(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_no_more_streams_than_upstreams() {
    let listener = Listener::new().await;
    let (mut sender, _done) = listener.http2(1 << 16).await;
    let watch = || get(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=3600"));
    // The client learns the limit with the settings, which come with the first answer.
    let mut open = vec![sender.send_request(watch()).await.unwrap()];
    for _ in 1..STREAMS_LIMIT {
        open.push(sender.send_request(watch()).await.unwrap());
    }
    let mut more = std::pin::pin!(sender.send_request(watch()));
    assert!(timeout(PERIOD, &mut more).await.is_err());
    assert_eq!(listener.open_watches(), f64::from(STREAMS_LIMIT));
    open.pop();
    assert!(timeout(PERIOD, &mut more).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_to_make_way_ends_at_once() {
    let listener = Listener::new().await;
    let (client, socket) = tokio::io::duplex(1024);
    let mut client = client;
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let member = listener.connections.admit(address);
    let context = listener.context.clone();
    tokio::spawn(context.serve(socket, Version::Http1, None, member));
    tokio::task::yield_now().await;
    listener.connections.shed_for_descriptors();
    assert_eq!(until_closed(&mut client).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_reset_at_once_leave_nothing_running() {
    let listener = Listener::new().await;
    let (mut sender, _done) = listener.http2(1 << 16).await;
    for _ in 0..2000 {
        let watch = get(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=3600"));
        if sender.ready().await.is_err() {
            // The server has had enough of it.
            break;
        }
        // Answered or not, it is given up.
        tokio::select! {
            biased;
            _ = sender.send_request(watch) => {}
            () = tokio::task::yield_now() => {}
        }
    }
    let (mut other, _done) = listener.http2(1 << 16).await;
    let answer = other.send_request(get("/version")).await.unwrap();
    assert_eq!(answer.status(), 200);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(listener.open_watches(), 0.0);
    assert_eq!(listener.context.server.in_flight(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_gets_no_further_answers() {
    let listener = Listener::new().await;
    let object = doc!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "large", "namespace": "default" },
        "data": { "k": ("x".repeat(1 << 20)) }
    });
    listener.context.server.import(&object).await.unwrap();
    let (mut sender, _done) = listener.http2(1024).await;
    let path = format!("{CONFIG_MAPS}/large");
    let mut unread = Vec::new();
    for _ in 0..20 {
        unread.push(sender.send_request(get(&path)).await.unwrap());
    }
    let codes: Vec<u16> = unread
        .iter()
        .map(|answer| answer.status().as_u16())
        .collect();
    assert_eq!((codes[0], codes[19]), (200, 429), "{codes:?}");
    drop(unread);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answer = sender.send_request(get(&path)).await.unwrap();
    assert_eq!(answer.status(), 200, "what is given up does not count");
}
