//! A client that sends exactly what a case says, and a request in the making.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use windlass_core::Doc;
use windlass_server::Identity;

use crate::answer::Answer;

/// How long a server may take to answer, or to send the next event that a case waits for. Far
/// more than either needs, for machines that do much else at the same time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// No case expects a longer answer.
const ANSWER_BYTES_LIMIT: usize = 32 << 20;

type Transport = legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Asks one server as one user.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    transport: Transport,
    host: String,
}

/// A request in the making. Nothing is added that the case did not ask for, except `Host`.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    pub(crate) fn new(host: &str, authority: &str, identity: Option<&Identity>) -> Self {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(authority, identity))
            .https_only()
            .enable_http1()
            .build();
        Self {
            transport: legacy::Client::builder(TokioExecutor::new()).build(connector),
            host: host.to_owned(),
        }
    }

    /// Sends a request and returns when the headers of the answer are there.
    pub(crate) async fn start(&self, request: Request) -> http::Response<Incoming> {
        let what = format!("{} {}", request.method, request.path);
        let uri: Uri = format!("https://{}{}", self.host, request.path)
            .parse()
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut sent = http::Request::new(Full::new(request.body));
        *sent.method_mut() = request.method;
        *sent.uri_mut() = uri;
        *sent.headers_mut() = request.headers;
        match tokio::time::timeout(PATIENCE, self.transport.request(sent)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => panic!("{what}: {error:?}"),
            Err(_) => panic!("{what}: no answer"),
        }
    }

    /// Sends a request and returns the whole answer.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        let what = format!("{} {}", request.method, request.path);
        let (head, body) = self.start(request).await.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_LIMIT).collect();
        match tokio::time::timeout(PATIENCE, body).await {
            Ok(Ok(body)) => Answer::new(what, head.status, head.headers, body.to_bytes()),
            Ok(Err(error)) => panic!("{what}: {error}"),
            Err(_) => panic!("{what}: the answer does not end"),
        }
    }
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).expect("the case names a header");
        let value = HeaderValue::try_from(value).expect("the case gives a header value");
        self.headers.append(name, value);
        self
    }

    /// A body of a media type, which may be anything at all.
    #[must_use]
    pub fn body(mut self, media_type: &str, bytes: impl Into<Bytes>) -> Self {
        self.body = bytes.into();
        self.header(header::CONTENT_TYPE.as_str(), media_type)
    }

    /// A JSON body.
    #[must_use]
    pub fn json(self, doc: &Doc) -> Self {
        self.body("application/json", doc.to_json())
    }
}

fn tls(authority: &str, identity: Option<&Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate");
    roots.add(authority).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows the default versions")
        .with_root_certificates(roots);
    let Some(identity) = identity else {
        return config.with_no_client_auth();
    };
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("a key");
    config
        .with_client_auth_cert(vec![certificate.expect("a certificate")], key)
        .expect("the key belongs to the certificate")
}
