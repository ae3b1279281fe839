//! The store behind each server, past its API: what cases need to make a server forget, and to
//! store what an older version may have accepted.

use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::header;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use windlass_core::{Doc, doc};

/// The store of a server.
#[derive(Debug)]
pub(crate) enum History {
    /// The embedded server, changed in process.
    Embedded(windlass_server::Server),
    /// The etcd of the real server, which listens on this socket.
    Real(PathBuf),
}

/// A namespace with the events `a`, `b` and `c`, of which `b` has been deleted since, at a revision
/// that the server has forgotten.
#[derive(Debug)]
pub(crate) struct Compacted {
    pub(crate) namespace: String,
    /// The forgotten revision.
    pub(crate) revision: String,
    /// The continue token behind `a` at that revision.
    pub(crate) token: String,
}

/// Stores an object as an older version may have accepted it.
pub(crate) async fn store(history: &History, key: &str, object: &Doc) {
    match history {
        History::Real(socket) => {
            let text = |bytes: &[u8]| STANDARD.encode(bytes);
            let body = doc!({
                "key": (text(key.as_bytes())), "value": (text(&object.to_json()))
            });
            ask(socket, "/v3/kv/put", &body).await;
        }
        History::Embedded(server) => server.import(object).await.expect("it is stored"),
    }
}

/// Tells etcd to forget everything before a revision.
pub(crate) async fn compact(socket: &Path, revision: &str) {
    let body = doc!({ "revision": revision, "physical": true });
    ask(socket, "/v3/kv/compaction", &body).await;
}

/// Asks etcd for something.
async fn ask(socket: &Path, path: &str, body: &Doc) {
    let stream = UnixStream::connect(socket).await.expect("etcd listens");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("etcd speaks HTTP");
    tokio::spawn(connection);
    let request = http::Request::post(path)
        .header(header::HOST, "etcd")
        .body(Full::new(Bytes::from(body.to_json())))
        .expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    assert_eq!(response.status(), 200, "etcd does {path}");
    response
        .into_body()
        .collect()
        .await
        .expect("the whole answer");
}
