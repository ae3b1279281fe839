//! What a case works with: a server, a namespace of its own, and a user.

mod forget;

use std::sync::atomic::{AtomicU32, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use windlass_core::Doc;

use crate::answer::Answer;
use crate::history;
use crate::http::{Client, Request};
use crate::objects;
use crate::paths;
use crate::server::{self, Server};
use crate::watch::Watch;

/// A namespace with the events `a`, `b` and `c`, of which `b` has been deleted since, at a revision
/// that the server has forgotten.
#[derive(Debug)]
pub struct Forgotten<'a> {
    /// The namespace.
    pub scope: Scope,
    /// The forgotten revision.
    pub revision: &'a str,
    /// The continue token behind `a` at that revision.
    pub token: &'a str,
}

/// JSON Patch, RFC 6902.
const JSON_PATCH: &str = "application/json-patch+json";
/// JSON Merge Patch, RFC 7386.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Strategic merge patch.
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
/// Server-side apply.
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A path with the manager of a write in its query.
fn with_manager(short: &str, manager: &str) -> String {
    let joint = if short.contains('?') { '&' } else { '?' };
    format!("{short}{joint}fieldManager={manager}")
}

/// A namespace of a server, as one user sees it.
///
/// Paths are given in short, `pods/a/status?dryRun=All`, and mean the namespace of the scope; a
/// path that starts with a slash is sent as it is.
#[derive(Clone, Debug)]
pub struct Scope {
    server: &'static Server,
    client: Client,
    namespace: String,
    /// Sent with every request.
    headers: HeaderMap,
}

/// Runs a case on the embedded server.
pub fn run_on_embedded(name: &str, case: impl AsyncFnOnce(&Scope)) {
    run(server::embedded(), name, case);
}

/// Runs a case on the real server, if it is installed.
pub fn run_on_real(name: &str, case: impl AsyncFnOnce(&Scope)) {
    if let Some(server) = server::real() {
        run(server, name, case);
    }
}

fn run(server: &'static Server, name: &str, case: impl AsyncFnOnce(&Scope)) {
    server::runtime().block_on(async {
        let scope = Scope::new(server, name);
        let namespace = objects::namespace(scope.namespace());
        scope.create("namespaces", &namespace).await.is(201);
        case(&scope).await;
    });
}

impl Scope {
    fn new(server: &'static Server, case: &str) -> Self {
        static CASES: AtomicU32 = AtomicU32::new(0);
        let number = CASES.fetch_add(1, Ordering::Relaxed);
        let case: String = case.replace('_', "-").chars().take(45).collect();
        Self {
            server,
            client: server.admin.clone(),
            namespace: format!("{case}-{number}"),
            headers: HeaderMap::new(),
        }
    }

    /// The namespace of the case.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A name that no other case has, for objects outside of namespaces.
    #[must_use]
    pub fn unique(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// The same scope for requests with one more header.
    #[must_use]
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut scope = self.clone();
        scope
            .headers
            .extend(Request::new(Method::GET, "").header(name, value).headers);
        scope
    }

    /// The same scope for requests with one more header, even if one of that name is there. The
    /// value may be any bytes that a header can carry.
    #[must_use]
    pub fn with_header_bytes(&self, name: &str, value: &[u8]) -> Self {
        let mut scope = self.clone();
        let name = HeaderName::try_from(name).expect("the case names a header");
        let value = HeaderValue::from_bytes(value).expect("the case gives a header value");
        scope.headers.append(name, value);
        scope
    }

    /// The same scope as another user sees it, on whose behalf the administrator asks.
    #[must_use]
    pub fn as_user(&self, user: &str) -> Self {
        self.with_header("impersonate-user", user)
    }

    /// The same scope as somebody without credentials sees it.
    #[must_use]
    pub fn as_nobody(&self) -> Self {
        Self {
            client: self.server.nobody.clone(),
            ..self.clone()
        }
    }

    /// The same scope as the holder of a token sees it.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        let authorization = format!("Bearer {token}");
        self.as_nobody()
            .with_header("authorization", &authorization)
    }

    /// The same scope in another namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            ..self.clone()
        }
    }

    /// A second namespace.
    pub async fn neighbour(&self) -> Self {
        let other = self.in_namespace(&self.unique("z"));
        let namespace = objects::namespace(other.namespace());
        self.made("namespaces", &namespace).await;
        other
    }

    /// A namespace whose past the server has forgotten, the same for all cases.
    pub async fn forgotten(&self) -> Forgotten<'_> {
        let compacted = self
            .server
            .compacted
            .get_or_init(|| forget::forget(self, &self.server.history))
            .await;
        Forgotten {
            scope: self.in_namespace(&compacted.namespace),
            revision: &compacted.revision,
            token: &compacted.token,
        }
    }

    /// Stores an object past the checks of the server, as an older version may have accepted it,
    /// and waits until the server shows it. The key is that of the real server's store.
    pub async fn stored(&self, key: &str, short: &str, object: &Doc) {
        history::store(&self.server.history, key, object).await;
        for _ in 0..1000 {
            if self.get(short).await.code() == 200 {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("the server does not show {short}");
    }

    /// The whole path for a short one.
    #[must_use]
    pub fn path(&self, short: &str) -> String {
        paths::full(short, &self.namespace)
    }

    /// A request in the making.
    #[must_use]
    pub fn request(&self, method: Method, short: &str) -> Request {
        Request::new(method, &self.path(short))
    }

    /// Sends a request.
    pub async fn send(&self, mut request: Request) -> Answer {
        request.headers.extend(self.headers.clone());
        self.client.send(request).await
    }

    /// Gets an object, a list or a page.
    pub async fn get(&self, short: &str) -> Answer {
        self.send(self.request(Method::GET, short)).await
    }

    /// Creates an object.
    pub async fn create(&self, short: &str, object: &Doc) -> Answer {
        self.send(self.request(Method::POST, short).json(object))
            .await
    }

    /// Creates an object that is known to be fine, and returns it.
    #[track_caller]
    pub fn made(&self, short: &str, object: &Doc) -> impl Future<Output = Doc> {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.create(short, object).await;
            assert_eq!(answer.code(), 201, "{caller}: {}", answer.text());
            answer.doc()
        }
    }

    /// Replaces an object.
    pub async fn update(&self, short: &str, object: &Doc) -> Answer {
        self.send(self.request(Method::PUT, short).json(object))
            .await
    }

    /// Patches an object with a merge patch.
    pub async fn merge(&self, short: &str, patch: &Doc) -> Answer {
        let request = self.request(Method::PATCH, short);
        self.send(request.body(MERGE_PATCH, patch.to_json())).await
    }

    /// Patches an object with a JSON patch.
    pub async fn edit(&self, short: &str, patch: &Doc) -> Answer {
        let request = self.request(Method::PATCH, short);
        self.send(request.body(JSON_PATCH, patch.to_json())).await
    }

    /// Patches an object with a strategic merge patch, as the manager `patcher`.
    pub async fn strategic(&self, short: &str, patch: &Doc) -> Answer {
        let request = self.request(Method::PATCH, &with_manager(short, "patcher"));
        self.send(request.body(STRATEGIC_PATCH, patch.to_json()))
            .await
    }

    /// Applies a configuration.
    pub async fn apply(&self, manager: &str, short: &str, configuration: &Doc) -> Answer {
        let request = self.request(Method::PATCH, &with_manager(short, manager));
        self.send(request.body(APPLY_PATCH, configuration.to_json()))
            .await
    }

    /// Applies a configuration that is known to be fine, and returns the object.
    #[track_caller]
    pub fn applied(
        &self,
        manager: &str,
        short: &str,
        configuration: &Doc,
    ) -> impl Future<Output = Doc> {
        let caller = std::panic::Location::caller();
        async move {
            let answer = self.apply(manager, short, configuration).await;
            let is_fine = matches!(answer.code(), 200 | 201);
            assert!(is_fine, "{caller}: {}", answer.text());
            answer.doc()
        }
    }

    /// Deletes an object or a collection.
    pub async fn delete(&self, short: &str) -> Answer {
        self.send(self.request(Method::DELETE, short)).await
    }

    /// Deletes an object or a collection with options in the body.
    pub async fn delete_with(&self, short: &str, options: &Doc) -> Answer {
        self.send(self.request(Method::DELETE, short).json(options))
            .await
    }

    /// Starts a watch; `query` goes on after `watch=true&`.
    pub async fn watch(&self, resource: &str, query: &str) -> Watch {
        let mut request = self.request(Method::GET, &format!("{resource}?watch=true&{query}"));
        request.headers.extend(self.headers.clone());
        let what = format!("watch {}", request.path);
        let response = self.client.start(request).await;
        assert_eq!(response.status(), 200, "{what}");
        Watch::new(what, response)
    }
}
