//! The server behind TLS on a socket.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use windlass_core::{Doc, Env, doc};
use windlass_server::{Certificates, Server, ServerOptions, serve};

pub(super) const TOKEN: &str = "a-token-for-tests";

/// A server that listens until this is dropped or told to end.
pub(super) struct Running {
    address: SocketAddr,
    certificates: Certificates,
    pub(super) stop: Arc<Notify>,
    pub(super) done: tokio::task::JoinHandle<()>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Show {
    Nothing,
    Certificate,
}

pub(super) async fn run() -> Running {
    let env = Env::real();
    let mut options = ServerOptions::memory(env.clone());
    options.admin_token = Some(TOKEN.to_owned());
    let server = Server::open(options).await.unwrap();
    let certificates = Certificates::in_memory(&[], &env).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listening = serve(server, any, &certificates, &[]).await.unwrap();
    let address = listening.address();
    let stop = Arc::new(Notify::new());
    let stopped = stop.clone();
    let done = tokio::spawn(listening.run(async move { stopped.notified().await }));
    Running {
        address,
        certificates,
        stop,
        done,
    }
}

impl Running {
    fn config(&self, show: Show, protocol: &[u8]) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots
            .add(certificate(&self.certificates.authority))
            .unwrap();
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let admin = &self.certificates.admin;
        let key = || PrivateKeyDer::from_pem_slice(admin.key.as_bytes()).unwrap();
        let mut config = match show {
            Show::Nothing => builder.with_no_client_auth(),
            Show::Certificate => builder
                .with_client_auth_cert(vec![certificate(&admin.certificate)], key())
                .unwrap(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }

    pub(super) async fn get(
        &self,
        show: Show,
        protocol: &str,
        request: Request<Full<Bytes>>,
    ) -> (u16, String) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let connector = TlsConnector::from(self.config(show, protocol.as_bytes()));
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TokioIo::new(connector.connect(name, stream).await.unwrap());
        let response = if protocol == "h2" {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        };
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn request(
        &self,
        path: &str,
        host: &str,
        token: Option<&str>,
    ) -> Request<Full<Bytes>> {
        let port = self.address.port();
        let mut request = Request::builder().uri(format!("https://{host}:{port}{path}"));
        request = request.header("host", format!("{host}:{port}"));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.body(Full::default()).unwrap()
    }
}

#[tokio::test]
async fn both_protocols_and_both_credentials_are_served() {
    let running = run().await;
    for protocol in ["h2", "http/1.1"] {
        let request = running.request("/api/v1/namespaces/default", "localhost", Some(TOKEN));
        let (code, body) = running.get(Show::Nothing, protocol, request).await;
        assert_eq!(code, 200, "{body}");
        assert_eq!(
            Doc::parse(body.as_bytes())
                .unwrap()
                .str_at("/metadata/name"),
            "default"
        );
        let request = running.request("/api/v1/secrets", "127.0.0.1", None);
        let (code, body) = running.get(Show::Certificate, protocol, request).await;
        assert_eq!(code, 200, "{body}");
    }
}

#[tokio::test]
async fn strangers_and_bad_tokens_are_kept_out() {
    let running = run().await;
    let request = running.request("/api/v1/secrets", "localhost", None);
    assert_eq!(running.get(Show::Nothing, "h2", request).await.0, 403);
    let request = running.request("/api/v1/secrets", "localhost", Some("wrong"));
    assert_eq!(running.get(Show::Nothing, "h2", request).await.0, 401);
    let request = running.request("/api/v1/secrets", "localhost", Some("wrong"));
    let (code, _) = running.get(Show::Certificate, "h2", request).await;
    assert_eq!(code, 200, "a good certificate comes before a bad token");
    let request = running.request("/readyz", "localhost", None);
    assert_eq!(
        running.get(Show::Nothing, "h2", request).await,
        (200, "ok".to_owned())
    );
}

#[tokio::test]
async fn requests_for_another_host_are_not_answered() {
    let running = run().await;
    for protocol in ["h2", "http/1.1"] {
        let request = running.request("/readyz", "evil.example.com", Some(TOKEN));
        assert_eq!(running.get(Show::Nothing, protocol, request).await.0, 421);
    }
}

#[tokio::test]
async fn large_answers_are_compressed_for_who_accepts_it() {
    let running = run().await;
    let plain = running.request("/apis", "localhost", Some(TOKEN));
    let (_, text) = running.get(Show::Nothing, "h2", plain).await;
    assert!(text.starts_with('{'), "a small answer is sent as it is");
    let data = "x".repeat(200 * 1024);
    let object = doc!({ "metadata": { "name": "big" }, "data": { "k": data } });
    let path = "/api/v1/namespaces/default/configmaps";
    let mut create = running.request(path, "localhost", Some(TOKEN));
    *create.method_mut() = http::Method::POST;
    create
        .headers_mut()
        .insert("accept-encoding", "gzip, br".parse().unwrap());
    *create.body_mut() = Full::new(object.to_json().into());
    let (code, text) = running.get(Show::Nothing, "h2", create).await;
    assert_eq!(code, 201);
    assert!(text.len() < 10 * 1024, "{} bytes", text.len());
}

/// A body of which nothing comes, and no end.
struct Unfinished;

impl http_body::Body for Unfinished {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test]
async fn a_stranger_whose_requests_do_not_arrive_does_not_disturb_a_reader() {
    let running = run().await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let connector = TlsConnector::from(running.config(Show::Nothing, b"h2"));
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TokioIo::new(connector.connect(name, stream).await.unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
            .await
            .unwrap();
    tokio::spawn(connection);
    let mut unfinished = Vec::new();
    for _ in 0..1000 {
        let request = running.request("/version", "localhost", None);
        unfinished.push(sender.send_request(request.map(|_| Unfinished)));
    }
    let mut answered = 0;
    for request in unfinished {
        // The server may reset a stream whose body it does not want.
        answered += usize::from(request.await.is_ok_and(|answer| answer.status() == 200));
    }
    assert!(answered > 0);
    for _ in 0..10 {
        let request = running.request("/api/v1/namespaces/default", "localhost", Some(TOKEN));
        assert_eq!(running.get(Show::Nothing, "h2", request).await.0, 200);
    }
}

#[tokio::test]
async fn the_server_ends_with_a_watch_open() {
    let running = run().await;
    let stream = TcpStream::connect(running.address).await.unwrap();
    let connector = TlsConnector::from(running.config(Show::Nothing, b"h2"));
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TokioIo::new(connector.connect(name, stream).await.unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = running.request("/api/v1/pods?watch=1", "localhost", Some(TOKEN));
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(
        response.status().as_u16(),
        200,
        "headers come before any event"
    );
    running.stop.notify_one();
    assert!(
        response.into_body().collect().await.is_ok(),
        "the stream ends in order"
    );
    drop(sender);
    running.done.await.unwrap();
}
