//! A webhook in the process of a test: HTTPS on loopback, with a certificate of its own.
//!
//! It answers reviews of admission and of conversion as a closure says, and remembers what it was
//! sent. Both servers under test reach it, because both are on this machine.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use windlass_core::{Doc, Object, doc};

/// A call that a webhook received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path.
    pub path: String,
    /// The query.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub review: Doc,
}

impl Received {
    /// The request of the review.
    #[must_use]
    pub fn request(&self) -> &Doc {
        self.review.at("/request")
    }
}

/// The answer of a webhook.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A review whose `response` this is; the uid is filled in unless it is given.
    Response(Doc),
    /// Anything else.
    Raw(u16, String),
    /// None, ever.
    Hang,
}

impl Reply {
    /// Allows the request.
    #[must_use]
    pub fn allow() -> Self {
        Self::Response(doc!({ "allowed": true }))
    }

    /// Denies the request with a message.
    #[must_use]
    pub fn deny(message: &str) -> Self {
        Self::Response(doc!({ "allowed": false, "status": { "message": message } }))
    }

    /// Allows the request with a JSON patch.
    #[must_use]
    pub fn patch(patch: &Doc) -> Self {
        let patch = BASE64.encode(patch.to_json());
        Self::Response(doc!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }))
    }
}

/// A webhook that serves as long as the process lives.
#[derive(Clone, Debug)]
pub struct Webhook {
    address: SocketAddr,
    authority: String,
    leaf: String,
    received: Arc<Mutex<Vec<Received>>>,
}

type Answer = dyn Fn(&Received) -> Reply + Send + Sync;

impl Webhook {
    /// Starts a webhook.
    pub async fn start(answer: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let (config, authority, leaf) = identity();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port on loopback");
        let webhook = Self {
            address: listener.local_addr().expect("an address"),
            authority,
            leaf,
            received: Arc::default(),
        };
        let received = Arc::clone(&webhook.received);
        let answer: Arc<Answer> = Arc::new(answer);
        tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(config);
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, received) = (acceptor.clone(), Arc::clone(&received));
                tokio::spawn(serve(acceptor, stream, Arc::clone(&answer), received));
            }
        });
        webhook
    }

    /// The port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The authority that has signed the certificate, as a `caBundle`.
    #[must_use]
    pub fn bundle(&self) -> String {
        BASE64.encode(&self.authority)
    }

    /// The certificate itself, as a `caBundle`.
    #[must_use]
    pub fn leaf_bundle(&self) -> String {
        BASE64.encode(&self.leaf)
    }

    /// A `clientConfig` for a path.
    #[must_use]
    pub fn client_config(&self, path: &str) -> Doc {
        let url = format!("https://{}{path}", self.address);
        doc!({ "url": url, "caBundle": (self.bundle()) })
    }

    /// All calls so far.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic before").clone()
    }

    /// The requests of all calls to a path so far.
    #[must_use]
    pub fn requests(&self, path: &str) -> Vec<Doc> {
        let received = self.received();
        let calls = received.iter().filter(|call| call.path == path);
        calls.map(|call| call.request().clone()).collect()
    }
}

fn identity() -> (Arc<ServerConfig>, String, String) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("an authority");
    let names = ["127.0.0.1", "localhost", "hook.default.svc"].map(str::to_owned);
    let mut params = CertificateParams::new(names).expect("names");
    params.is_ca = IsCa::ExplicitNoCa;
    let key = KeyPair::generate().expect("a key");
    let leaf = params.signed_by(&key, &authority).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(leaf.der().to_vec())], private)
        .expect("the key belongs to the certificate");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (Arc::new(config), authority.pem(), leaf.pem())
}

async fn serve(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    answer: Arc<Answer>,
    received: Arc<Mutex<Vec<Received>>>,
) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let handle = service_fn(|request: http::Request<Incoming>| {
        let (answer, received) = (Arc::clone(&answer), Arc::clone(&received));
        async move { Ok::<_, Infallible>(handle(request, &*answer, &received).await) }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    // The client may go whenever it likes.
    let _ = server.serve_connection(TokioIo::new(stream), handle).await;
}

async fn handle(
    request: http::Request<Incoming>,
    answer: &Answer,
    received: &Mutex<Vec<Received>>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let call = Received {
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        review: Doc::parse(&body.unwrap_or_default()).unwrap_or_default(),
    };
    received.lock().expect("no panic before").push(call.clone());
    let (code, body) = match answer(&call) {
        Reply::Response(response) => (200, answered(&call.review, &response)),
        Reply::Raw(code, body) => (code, body),
        Reply::Hang => std::future::pending().await,
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = http::StatusCode::from_u16(code).expect("a code");
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

/// A review with a response, of the kind and version that was asked in.
fn answered(review: &Doc, response: &Doc) -> String {
    let response = response.as_object().cloned().unwrap_or_else(Object::empty);
    let response = match response.get("uid") {
        Some(_) => response,
        None => response.with("uid", review.at("/request/uid").clone()),
    };
    let response = Doc::from(response);
    doc!({
        "kind": (review.at("/kind")), "apiVersion": (review.at("/apiVersion")),
        "response": response
    })
    .to_string()
}
