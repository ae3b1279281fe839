//! A past that the server no longer knows.
//!
//! Servers forget after minutes or many thousand changes. Cases cannot wait for either, so the
//! real server's store is told to compact, and the embedded server is given more changes than it
//! keeps. Both is done once per process, with events: they are what the real server reads from its
//! store each time, without a cache that would remember longer.

use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Method, header};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use windlass_core::{Doc, doc};
use windlass_server::User;

use crate::objects;
use crate::reading::revision;
use crate::scope::Scope;

/// More changes than the embedded server keeps.
const CHANGES: usize = 17_000;
/// More pages than the embedded server keeps the moments of.
const PAGES: usize = 20;
/// Writers at a time.
const WRITERS: usize = 50;

/// How a server is made to forget.
#[derive(Debug)]
pub(crate) enum History {
    /// By changes, sent to it in process.
    Embedded(windlass_server::Server),
    /// By its store, which listens on this socket.
    Real(PathBuf),
}

/// What a server has forgotten: a namespace with the events `a`, `b` and `c`, of which `b` has
/// been deleted since.
#[derive(Debug)]
pub struct Forgotten {
    /// The namespace.
    pub scope: Scope,
    /// A revision of which nothing is known any more.
    pub revision: String,
    /// A token for what followed `a` at that revision.
    pub token: String,
}

/// Makes a server forget.
pub(crate) async fn forget(any: &Scope, history: &History) -> Forgotten {
    let scope = any.in_namespace("forgotten");
    scope
        .made("namespaces", &objects::namespace(scope.namespace()))
        .await;
    for name in ["a", "b", "c"] {
        scope
            .made("events", &objects::event(name, scope.namespace()))
            .await;
    }
    let page = scope.get("events?limit=1").await.is(200);
    scope.delete("events/b").await.is(200);
    // A store may still tell of the change to the first revision that it keeps.
    let patch = doc!({ "count": 1 });
    let changed = scope.merge("events/c", &patch).await.is(200);
    match history {
        History::Real(socket) => compact(socket, revision(&changed)).await,
        History::Embedded(server) => overflow(&scope, server).await,
    }
    Forgotten {
        revision: revision(&page).to_owned(),
        token: page.str_at("/metadata/continue").to_owned(),
        scope,
    }
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
async fn compact(socket: &Path, revision: &str) {
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

/// Gives the embedded server more changes than it keeps.
async fn overflow(scope: &Scope, server: &windlass_server::Server) {
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let name = format!("d-{writer}");
        scope
            .made("events", &objects::event(&name, scope.namespace()))
            .await;
        let (server, path) = (server.clone(), scope.path(&format!("events/{name}")));
        writers.spawn(async move {
            for count in 0..CHANGES / WRITERS {
                change(&server, &path, count).await;
            }
        });
    }
    writers.join_all().await;
    for count in 0..PAGES {
        let patch = doc!({ "count": (count + CHANGES) });
        scope.merge("events/d-0", &patch).await.is(200);
        scope.get("events?limit=1").await.is(200);
    }
    for writer in 0..WRITERS {
        scope.delete(&format!("events/d-{writer}")).await.is(200);
    }
}

async fn change(server: &windlass_server::Server, path: &str, count: usize) {
    let patch: Doc = doc!({ "count": (count + 1) });
    let request = http::Request::builder()
        .method(Method::PATCH)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/merge-patch+json")
        .extension(User::admin())
        .body(Full::new(Bytes::from(patch.to_json())))
        .expect("a request");
    assert_eq!(server.handle(request).await.status(), 200);
}
