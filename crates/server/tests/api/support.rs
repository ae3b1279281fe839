//! A server in memory and a client that speaks plain HTTP to it.

use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;
use windlass_core::{Doc, Env, doc};
use windlass_server::{Body, Server, ServerOptions, User};

pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// A server and who asks it.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) server: Server,
    user: Option<User>,
}

/// An answer that is there as a whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) body: Doc,
}

/// A watch that goes on.
pub(crate) struct Watching {
    body: Pin<Box<Body>>,
    pending: Vec<u8>,
}

impl Api {
    /// A fresh server, asked by its administrator.
    pub(crate) async fn new() -> Self {
        let server = Server::open(ServerOptions::memory(Env::seeded(1)))
            .await
            .unwrap();
        Self {
            server,
            user: Some(User::admin()),
        }
    }

    /// A server that is open already.
    pub(crate) fn of(server: Server, user: User) -> Self {
        Self {
            server,
            user: Some(user),
        }
    }

    /// The server itself.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// A fresh server whose pods need service accounts.
    pub(crate) async fn with_accounts() -> Self {
        let mut options = ServerOptions::memory(Env::seeded(1));
        options.admission.service_accounts = true;
        let server = Server::open(options).await.unwrap();
        Self {
            server,
            user: Some(User::admin()),
        }
    }

    /// A fresh server that keeps few events.
    pub(crate) async fn forgetful(history_limit: usize) -> Self {
        let mut options = ServerOptions::memory(Env::seeded(1));
        options.history_limit = Some(history_limit);
        let server = Server::open(options).await.unwrap();
        Self {
            server,
            user: Some(User::admin()),
        }
    }

    /// The same server, asked by somebody else.
    pub(crate) fn asked_by(&self, user: User) -> Self {
        Self {
            server: self.server.clone(),
            user: Some(user),
        }
    }

    /// The same server, asked by nobody in particular.
    pub(crate) fn asked_by_nobody(&self) -> Self {
        Self {
            server: self.server.clone(),
            user: None,
        }
    }

    pub(crate) async fn respond(&self, mut request: Request<Full<Bytes>>) -> http::Response<Body> {
        if let Some(user) = &self.user {
            request.extensions_mut().insert(user.clone());
        }
        self.server.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let (parts, body) = self.respond(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            code: parts.status,
            headers: parts.headers,
            body: Doc::parse(&bytes).unwrap_or_default(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, "", Bytes::new()))
            .await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let mut request = request(Method::GET, path, "", Bytes::new());
        request
            .headers_mut()
            .insert("accept", accept.parse().unwrap());
        self.send(request).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Doc) -> Answer {
        self.send(request(
            Method::POST,
            path,
            "application/json",
            body.to_json(),
        ))
        .await
    }

    pub(crate) async fn post_text(&self, path: &str, media_type: &str, body: &str) -> Answer {
        self.send(request(Method::POST, path, media_type, body.to_owned()))
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &Doc) -> Answer {
        self.send(request(
            Method::PUT,
            path,
            "application/json",
            body.to_json(),
        ))
        .await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Doc) -> Answer {
        self.patch(path, MERGE_PATCH, &body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, media_type: &str, body: &str) -> Answer {
        self.send(request(Method::PATCH, path, media_type, body.to_owned()))
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, "", Bytes::new()))
            .await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Doc) -> Answer {
        self.send(request(
            Method::DELETE,
            path,
            "application/json",
            options.to_json(),
        ))
        .await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watching {
        self.watch_as(path, "application/json").await
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str) -> Watching {
        let mut request = request(Method::GET, path, "", Bytes::new());
        request
            .headers_mut()
            .insert("accept", accept.parse().unwrap());
        let response = self.respond(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        Watching {
            body: Box::pin(response.into_body()),
            pending: Vec::new(),
        }
    }
}

impl Answer {
    /// The answer, which must have this code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Self {
        assert_eq!(self.code.as_u16(), code, "{}", self.text);
        self
    }

    /// The refusal, which must have this code and reason, and its message.
    #[track_caller]
    pub(crate) fn refused(self, code: u16, reason: &str) -> String {
        let answer = self.expect(code);
        assert_eq!(answer.body.str_at("/kind"), "Status");
        assert_eq!(answer.body.str_at("/status"), "Failure");
        assert_eq!(answer.body.str_at("/reason"), reason);
        assert_eq!(*answer.body.at("/code"), i64::from(code));
        answer.body.str_at("/message").to_owned()
    }

    pub(crate) fn str_at(&self, pointer: &str) -> &str {
        self.body.str_at(pointer)
    }

    /// The revision of the object or list.
    pub(crate) fn revision(&self) -> u64 {
        self.str_at("/metadata/resourceVersion").parse().unwrap()
    }

    /// The names of the objects of a list.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.body
            .at("/items")
            .items()
            .iter()
            .map(|item| item.str_at("/metadata/name"))
            .collect()
    }
}

impl Watching {
    /// The next event: its type and its object. `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<(String, Doc)> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                let event = Doc::parse(&line).unwrap();
                return Some((
                    event.str_at("/type").to_owned(),
                    event.at("/object").clone(),
                ));
            }
            let frame = std::future::poll_fn(|cx| self.body.as_mut().poll_frame(cx)).await?;
            self.pending
                .extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }

    /// The next event as `TYPE name`.
    pub(crate) async fn short(&mut self) -> String {
        match self.next().await {
            Some((kind, object)) => format!("{kind} {}", object.str_at("/metadata/name")),
            None => "end".to_owned(),
        }
    }
}

pub(crate) fn request(
    method: Method,
    path: &str,
    media_type: &str,
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path);
    if !media_type.is_empty() {
        request = request.header("content-type", media_type);
    }
    request.body(Full::new(body.into())).unwrap()
}

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

pub(crate) fn pod(name: &str) -> Doc {
    doc!({
        "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "image": "nginx" }] }
    })
}

pub(crate) fn config_map(name: &str) -> Doc {
    doc!({ "metadata": { "name": name }, "data": { "a": "b" } })
}

pub(crate) fn labelled(name: &str, key: &str, value: &str) -> Doc {
    doc!({ "metadata": { "name": name, "labels": { key: value } } })
}

/// A deployment or replica set.
pub(crate) fn workload(name: &str) -> Doc {
    doc!({
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "nginx:1" }] }
            }
        }
    })
}
