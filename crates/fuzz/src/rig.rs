//! A server in this process, and requests to it.

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::runtime::{Builder, Runtime};
use windlass_core::{Doc, Env};
use windlass_server::{Server, ServerOptions, User};

/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// A request that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Faults of clients that upstream answers with 500 or above, by the beginnings of their messages.
const UPSTREAM_FAILURES: &[&str] = &[
    "resourceVersion: Invalid value",
    "failed to create typed patch object",
    "Timeout: Too large resource version",
];

/// A runtime on this thread, so that its CPU time is the work of a request.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

/// A server and the runtime that it lives on.
pub(crate) struct Rig {
    runtime: Runtime,
    server: Server,
}

/// An answer that is there as a whole. Of a watch there is only the head.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A request, and who sends it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The administrator without one.
    pub(crate) user: Option<User>,
    /// Nobody vouches for the sender; credentials are in the headers.
    pub(crate) is_anonymous: bool,
}

thread_local! {
    /// The server of this thread, and the revision at which it was fresh.
    static RIG: RefCell<Option<(Rig, String)>> = const { RefCell::new(None) };
}

/// Runs a task on a server to which nothing was written since `prepare`. The same input so meets
/// the same state.
pub(crate) fn on_fresh_server<T>(prepare: fn(&Rig), task: impl FnOnce(&Rig) -> T) -> T {
    RIG.with_borrow_mut(|kept| {
        let (rig, revision) = kept.take().unwrap_or_else(|| {
            let rig = Rig::open();
            prepare(&rig);
            let revision = rig.revision();
            (rig, revision)
        });
        let result = task(&rig);
        if rig.revision() == revision {
            *kept = Some((rig, revision));
        }
        result
    })
}

impl Rig {
    pub(crate) fn open() -> Self {
        let runtime = runtime();
        let options = ServerOptions::memory(Env::seeded(1));
        let server = runtime
            .block_on(Server::open(options))
            .expect("a server in memory");
        Self { runtime, server }
    }

    /// The revision of the last write.
    fn revision(&self) -> String {
        let answer = self.get("/api/v1/namespaces/default/configmaps?limit=1");
        answer.doc().str_at("/metadata/resourceVersion").to_owned()
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        let call = Call {
            target: target.to_owned(),
            ..Call::default()
        };
        self.send(call).expect("a sound target")
    }

    pub(crate) fn write(&self, method: Method, target: &str, body: &Doc) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let call = Call {
            method,
            target: target.to_owned(),
            headers,
            body: body.to_json().into(),
            ..Call::default()
        };
        self.send(call).expect("a sound target")
    }

    /// Sends a request. `None` if HTTP has no such request.
    pub(crate) fn send(&self, call: Call) -> Option<Answer> {
        let uri: Uri = call.target.parse().ok()?;
        let is_watch = uri.query().is_some_and(|query| query.contains("watch"))
            || uri.path().contains("/watch/");
        let mut request = Request::new(Full::new(call.body));
        *request.method_mut() = call.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = call.headers;
        if !call.is_anonymous {
            let user = call.user.unwrap_or_else(User::admin);
            request.extensions_mut().insert(user);
        }
        let answering = async {
            let (head, body) = self.server.handle(request).await.into_parts();
            let body = if is_watch && head.status.is_success() {
                Bytes::new()
            } else {
                let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
                body.expect("a bounded body").to_bytes()
            };
            Answer {
                code: head.status.as_u16(),
                headers: head.headers,
                body,
            }
        };
        let waited = async { tokio::time::timeout(PATIENCE, answering).await };
        Some(self.runtime.block_on(waited).expect("an answer in time"))
    }
}

impl Answer {
    /// The body as a document; `null` if it is none.
    pub(crate) fn doc(&self) -> Doc {
        Doc::parse(&self.body).unwrap_or_default()
    }

    pub(crate) fn is_ok(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Panics if the server has failed. Upstream answers some faults of clients with 500, and so
    /// do we; a handler that panics is never meant.
    #[track_caller]
    pub(crate) fn check(&self, is_strategic: bool) {
        let doc = self.doc();
        let message = doc.str_at("/message");
        assert!(
            !message.contains("the request handler failed"),
            "a handler panicked"
        );
        let is_upstreams = UPSTREAM_FAILURES.iter().any(|one| message.starts_with(one));
        let is_meant = self.code < 500 || is_upstreams || (self.code == 500 && is_strategic);
        assert!(
            is_meant,
            "{}: {}",
            self.code,
            String::from_utf8_lossy(&self.body)
        );
    }
}

/// Headers from lines such as `accept: text/plain`. Lines that HTTP has not are left out.
pub(crate) fn headers(lines: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}
