//! Making a server forget its past.
//!
//! Servers forget after minutes or many thousand changes. Cases cannot wait for either, so the
//! real server's store is told to compact, and the embedded server is given more changes than it
//! keeps. Both is done once per process, with events: they are what the real server reads from its
//! store each time, without a cache that would remember longer.

use bytes::Bytes;
use http::{Method, header};
use http_body_util::Full;
use windlass_core::{Doc, doc};
use windlass_server::User;

use super::Scope;
use crate::history::{Compacted, History, compact};
use crate::objects;
use crate::reading::revision;

/// More changes than the embedded server keeps.
const CHANGES: usize = 17_000;
/// More pages than the embedded server keeps the moments of.
const PAGES: usize = 20;
/// Writers at a time.
const WRITERS: usize = 50;

/// Makes a server forget.
pub(super) async fn forget(any: &Scope, history: &History) -> Compacted {
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
    Compacted {
        namespace: scope.namespace().to_owned(),
        revision: revision(&page).to_owned(),
        token: page.str_at("/metadata/continue").to_owned(),
    }
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
