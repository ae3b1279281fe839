//! Access to the pages of a manager: the API server says who is asking and what they may read.
//!
//! The same as in kube-controller-manager: paths that are always allowed are open to everybody;
//! for any other, a TokenReview names the user behind the bearer token, and a SubjectAccessReview
//! of the path decides. A request without a token is that of `system:anonymous`.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use windlass_client::{DynamicClient, RestClient, WriteOptions};
use windlass_core::{Doc, Gvr, doc};

use crate::lru::Lru;

/// The paths that are open unless a manager says otherwise: upstream's.
pub const ALWAYS_ALLOWED_PATHS: [&str; 3] = ["/healthz", "/readyz", "/livez"];

const TOKEN_REVIEWS: Gvr = Gvr::constant("authentication.k8s.io", "v1", "tokenreviews");
const ACCESS_REVIEWS: Gvr = Gvr::constant("authorization.k8s.io", "v1", "subjectaccessreviews");

/// The time for which an answer counts, as upstream's delegated authentication and authorization
/// have it.
const ANSWER_TTL: Duration = Duration::from_secs(10);

/// Answers that are remembered at most.
const ANSWERS_LIMIT: usize = 64;

/// The longest token that is looked at, in bytes.
const TOKEN_BYTES_LIMIT: usize = 16 << 10;

/// The longest time that both reviews may take together.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

/// Decides who may read which page.
pub(super) struct Access {
    client: RestClient,
    open: Vec<String>,
    answers: Mutex<Lru<Question, Answer>>,
}

/// A bearer token, if there is one, a verb and a path.
type Question = (Option<String>, &'static str, String);

/// A decision, and its time.
type Answer = Option<(Instant, Result<(), Refusal>)>;

impl Access {
    /// Asks the server behind this client about every path but the open ones. One that ends with
    /// `*` stands for all that begin like it.
    pub(super) fn new(client: RestClient, open: Vec<String>) -> Self {
        Self {
            client,
            open,
            answers: Mutex::new(Lru::new(ANSWERS_LIMIT)),
        }
    }

    /// Decides about a request.
    pub(super) async fn check(
        &self,
        verb: &'static str,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        if self.is_open(path) {
            return Ok(());
        }
        let question = (token(headers)?, verb, path.to_owned());
        if let Some(answer) = self.remembered(&question) {
            return answer;
        }
        let asked = timeout(REVIEW_TIMEOUT, self.ask(&question)).await;
        let answer = asked.unwrap_or_else(|_| {
            Err(failed(&format!(
                "no answer to an access review within {REVIEW_TIMEOUT:?}"
            )))
        });
        // A server that could not be asked may be able to answer the next time.
        let is_decided = !matches!(&answer, Err(refusal) if refusal.status.is_server_error());
        if is_decided {
            *self.answers.lock().entry(&question, || None) = Some((Instant::now(), answer.clone()));
        }
        answer
    }

    fn is_open(&self, path: &str) -> bool {
        self.open.iter().any(|open| match open.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == open,
        })
    }

    fn remembered(&self, question: &Question) -> Option<Result<(), Refusal>> {
        let answers = self.answers.lock();
        let (decided, answer) = answers.peek(question)?.as_ref()?;
        (decided.elapsed() < ANSWER_TTL).then(|| answer.clone())
    }

    async fn ask(&self, (token, verb, path): &Question) -> Result<(), Refusal> {
        let user = match token {
            Some(token) => self.review_token(token).await?,
            None => doc!({ "username": "system:anonymous", "groups": ["system:unauthenticated"] }),
        };
        let name = user.str_at("/username");
        let review = doc!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": name,
                "uid": (user.str_at("/uid")),
                "groups": (user.at("/groups").clone()),
                "extra": (user.at("/extra").clone()),
                "nonResourceAttributes": { "path": (path.as_str()), "verb": *verb }
            }
        });
        let review = self.create(ACCESS_REVIEWS, &review).await?;
        match review.at("/status/allowed").as_bool() {
            Some(true) => Ok(()),
            _ => Err(Refusal {
                status: StatusCode::FORBIDDEN,
                text: format!("forbidden: User \"{name}\" cannot {verb} path \"{path}\"\n"),
            }),
        }
    }

    /// The user behind a token.
    async fn review_token(&self, token: &str) -> Result<Doc, Refusal> {
        let review = doc!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": { "token": token }
        });
        let review = self.create(TOKEN_REVIEWS, &review).await?;
        match review.at("/status/authenticated").as_bool() {
            Some(true) => Ok(review.at("/status/user").clone()),
            _ => Err(unauthorized()),
        }
    }

    async fn create(&self, resource: Gvr, review: &Doc) -> Result<Doc, Refusal> {
        let name = resource.resource().to_owned();
        let api = DynamicClient::new(self.client.clone()).resource(resource);
        let made = api.create(review, &WriteOptions::default()).await;
        made.map_err(|error| {
            tracing::warn!(
                %error,
                "cannot create {name}; the account of this process needs the right to create \
                 tokenreviews and subjectaccessreviews, or --authorization-always-allow-paths \
                 has to name the page"
            );
            failed(&format!("cannot create {name}"))
        })
    }
}

/// The bearer token of a request.
fn token(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get(AUTHORIZATION) else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| unauthorized())?;
    let token = match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => return Err(unauthorized()),
    };
    match token.is_empty() || token.len() > TOKEN_BYTES_LIMIT {
        true => Err(unauthorized()),
        false => Ok(Some(token.to_owned())),
    }
}

fn unauthorized() -> Refusal {
    Refusal {
        status: StatusCode::UNAUTHORIZED,
        text: "Unauthorized\n".to_owned(),
    }
}

fn failed(reason: &str) -> Refusal {
    Refusal {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        text: format!("Internal Server Error: {reason}\n"),
    }
}
