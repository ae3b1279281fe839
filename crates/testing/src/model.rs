//! A model of the API server.

mod answer;
mod patch;
mod request;
mod state;
mod watch;
mod write;

use std::{
    convert::Infallible,
    fmt,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Response};
use parking_lot::Mutex;
use tokio::{sync::watch as channel, time::Instant};
use tower::Service;
use windlass_client::{Content, Payload, RestClient, RestOptions, Transport};
use windlass_core::{Doc, Env, Key};

use answer::{failure, object};
use request::{Parsed, Query};
use state::State;

/// An API server in memory. Clones are the same server.
///
/// It answers at once and in documents. Objects of every resource are kept alike, in the order of
/// their keys, under one revision counter.
#[derive(Clone)]
pub struct ModelServer {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    state: Mutex<State>,
    /// How many events have happened; watches wait on it.
    happened: channel::Sender<usize>,
}

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When it came.
    pub at: Instant,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub uri: String,
    /// What the client called itself.
    pub user_agent: String,
    /// What it carried.
    pub payload: Doc,
    /// The status code of the answer.
    pub code: u16,
}

impl ModelServer {
    /// A server without objects, whose time and ids come from `env`.
    #[must_use]
    pub fn new(env: Env) -> Self {
        let (state, happened) = (Mutex::default(), channel::Sender::new(0));
        Self {
            shared: Arc::new(Shared {
                env,
                state,
                happened,
            }),
        }
    }

    /// A transport to this server.
    #[must_use]
    pub fn transport(&self) -> Transport {
        Transport::new(self.clone())
    }

    /// A client of this server, without a rate limit.
    #[must_use]
    pub fn client(&self) -> RestClient {
        RestClient::new(self.transport(), RestOptions::default())
    }

    /// Every request so far, but for watches.
    #[must_use]
    pub fn log(&self) -> Vec<Logged> {
        self.shared.state.lock().log.clone()
    }

    /// The requests so far that would change something.
    #[must_use]
    pub fn writes(&self) -> Vec<Logged> {
        let log = self.log().into_iter();
        log.filter(|logged| !logged.method.is_safe()).collect()
    }

    /// The objects of a resource, such as `pods`, in the order of their keys.
    #[must_use]
    pub fn objects(&self, resource: &str) -> Vec<Doc> {
        let state = self.shared.state.lock();
        let objects = state
            .objects
            .iter()
            .filter(|(at, _)| at.resource.resource() == resource);
        objects.map(|(_, object)| object.clone()).collect()
    }

    /// One object of a resource.
    #[must_use]
    pub fn find(&self, resource: &str, key: &str) -> Option<Doc> {
        let key: Key = key.parse().ok()?;
        self.objects(resource)
            .into_iter()
            .find(|object| object.meta().key() == key)
    }

    /// Stores an object as its client would: by a POST to the path of the collection. Returns it
    /// as it was stored, or the status.
    #[expect(clippy::must_use_candidate, reason = "storing is what matters")]
    pub fn create(&self, path: &str, object: &Doc) -> Doc {
        self.call_doc(Method::POST, path, Payload::Doc(object.clone()))
    }

    /// Replaces an object.
    #[expect(clippy::must_use_candidate, reason = "storing is what matters")]
    pub fn update(&self, path: &str, object: &Doc) -> Doc {
        self.call_doc(Method::PUT, path, Payload::Doc(object.clone()))
    }

    /// Deletes an object.
    pub fn delete(&self, path: &str) -> Doc {
        self.call_doc(Method::DELETE, path, Payload::Empty)
    }

    fn call_doc(&self, method: Method, path: &str, payload: Payload) -> Doc {
        let mut request = http::Request::new(payload);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap_or_default();
        match self.answer(request).into_body() {
            Content::Doc(doc) => doc,
            Content::Body(_) | Content::List(_) | Content::Events(_) => Doc::NULL,
        }
    }

    /// From now on, watches of a resource such as `pods` bring each event so much later. Lists and
    /// initial events are not affected.
    pub fn lag(&self, resource: &str, by: Duration) {
        self.shared
            .state
            .lock()
            .lags
            .insert(resource.to_owned(), by);
    }

    /// Forgets the history, so that watches from an older revision are answered with 410.
    pub fn compact(&self) {
        self.shared.state.lock().compact();
    }

    fn answer(&self, request: http::Request<Payload>) -> Response<Content> {
        let (head, payload) = request.into_parts();
        let query = Query::parse(head.uri.query().unwrap_or(""));
        let Some(parsed) = Parsed::parse(head.uri.path()) else {
            return failure(
                404,
                "NotFound",
                "the server could not find the requested resource",
            );
        };
        if head.method == Method::GET && query.is_watch {
            return self.watch(&parsed, &query);
        }
        let body = document(payload);
        let content_type = header(&head.headers, http::header::CONTENT_TYPE);
        let env = &self.shared.env;
        let mut state = self.shared.state.lock();
        let response = match (head.method.as_str(), &parsed.name) {
            ("GET", Some(_)) => state
                .get(&parsed)
                .map_or_else(|| missing(&parsed), |it| object(200, it)),
            ("GET", None) => state.list(&parsed, &query),
            ("POST", _) => state.create(&parsed, &body, env),
            ("PUT", Some(_)) => state.update(&parsed, &body),
            ("PATCH", Some(_)) => state.patch(&parsed, &body, &content_type, env),
            ("DELETE", Some(_)) => state.delete(&parsed, &body, env),
            _ => failure(
                405,
                "MethodNotAllowed",
                "the server does not allow this method",
            ),
        };
        state.log.push(Logged {
            at: Instant::now(),
            method: head.method,
            uri: head.uri.to_string(),
            user_agent: header(&head.headers, http::header::USER_AGENT),
            payload: body,
            code: response.status().as_u16(),
        });
        let happened = state.happened();
        drop(state);
        self.shared.happened.send_replace(happened);
        response
    }
}

fn missing(parsed: &Parsed) -> Response<Content> {
    let name = parsed.name.as_deref().unwrap_or("");
    let resource = parsed.resource.group_resource();
    failure(404, "NotFound", &format!("{resource} \"{name}\" not found"))
}

fn document(payload: Payload) -> Doc {
    match payload {
        Payload::Doc(doc) => doc,
        Payload::Empty => Doc::NULL,
        Payload::Bytes(bytes) => Doc::parse(&bytes).unwrap_or(Doc::NULL),
    }
}

fn header(headers: &http::HeaderMap, name: http::HeaderName) -> String {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
        .to_owned()
}

impl Service<http::Request<Payload>> for ModelServer {
    type Response = Response<Content>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Content>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Payload>) -> Self::Future {
        ready(Ok(self.answer(request)))
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("ModelServer")
            .field("objects", &state.objects.len())
            .field("revision", &state.revision)
            .finish_non_exhaustive()
    }
}
