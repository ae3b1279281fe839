//! Errors of requests.

use std::fmt;
use std::time::Duration;

use windlass_core::ParseError;

use crate::Status;
use crate::transport::{BoxError, TransportError};

/// The effect of a failed request, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The server refused it. Nothing was changed.
    Rejected,
    /// It may have been carried out.
    Unknown,
    /// It never left.
    NotSent,
}

/// A request that failed: what was asked, what is known about it, and why.
pub struct Error(Box<Failure>);

struct Failure {
    outcome: RequestOutcome,
    /// Method and path. The query is left out: selectors and tokens make it long.
    request: String,
    cause: Cause,
    /// The status that a retry followed, where the last attempt failed in another way.
    previous: Option<String>,
}

/// The cause of a failed request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The server answered with a status.
    #[error("{0}")]
    Status(Status),
    /// The connection could not be made, or broke.
    #[error("{}", chain(.0.as_ref()))]
    Connection(BoxError),
    /// The server did not answer, or not completely, in this time.
    #[error("no complete answer within {0:?}")]
    Timeout(Duration),
    /// The request cannot be put into words of HTTP.
    #[error("the request is not valid: {0}")]
    Malformed(String),
    /// The answer is of a type that was not asked for.
    #[error("the answer is {found:?} instead of JSON")]
    ContentType {
        /// The type that came.
        found: String,
    },
    /// The answer is compressed, which was not asked for.
    #[error("the answer is encoded as {found:?}, which was not asked for")]
    Encoding {
        /// The encoding that came.
        found: String,
    },
    /// The answer is longer than the limit.
    #[error("the answer is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not JSON.
    #[error("the answer cannot be read: {0}")]
    Parse(#[source] ParseError),
    /// The answer is JSON, but not of the expected form.
    #[error("the answer cannot be decoded: {0}")]
    Decode(#[source] BoxError),
    /// The object to send cannot be written as JSON.
    #[error("the object cannot be encoded: {0}")]
    Encode(#[source] BoxError),
    /// The configuration holds nothing to identify with, or its plug-in failed.
    #[error("{0}")]
    Credentials(String),
}

impl Error {
    pub(crate) fn new(outcome: RequestOutcome, request: impl Into<String>, cause: Cause) -> Self {
        Self(Box::new(Failure {
            outcome,
            request: request.into(),
            cause,
            previous: None,
        }))
    }

    /// Wraps what a transport returned, and works out whether the request had left.
    pub(crate) fn transport(request: &str, source: BoxError) -> Self {
        let (outcome, cause) = match source.downcast::<TransportError>() {
            Ok(error) if error.may_have_arrived => (RequestOutcome::Unknown, error.source),
            Ok(error) => (RequestOutcome::NotSent, error.source),
            Err(source) => (outcome_of(source.as_ref()), source),
        };
        let cause = match cause.downcast::<kube_client::client::AuthError>() {
            Ok(error) => Cause::Credentials(crate::config_error::auth_failure(&error)),
            Err(source) => Cause::Connection(source),
        };
        Self::new(outcome, request, cause)
    }

    pub(crate) fn status_answer(request: &str, status: Status) -> Self {
        // A server that ran out of time or broke off inside may have stored the object already.
        let outcome = match status.code {
            500 | 502 | 504.. => RequestOutcome::Unknown,
            _ => RequestOutcome::Rejected,
        };
        Self::new(outcome, request, Cause::Status(status))
    }

    pub(crate) fn after(mut self, previous: Option<String>) -> Self {
        self.0.previous = previous;
        self
    }

    /// The effect of the request, as far as it is known.
    #[must_use]
    pub fn outcome(&self) -> RequestOutcome {
        self.0.outcome
    }

    /// The cause.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The method and the path that were asked for.
    #[must_use]
    pub fn request(&self) -> &str {
        &self.0.request
    }

    /// The status the server answered with, if it did.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match &self.0.cause {
            Cause::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Nothing answers at the address.
    #[must_use]
    pub fn is_connection_refused(&self) -> bool {
        let Cause::Connection(source) = &self.0.cause else {
            return false;
        };
        sources(source.as_ref())
            .any(|error| io_kind(error) == Some(std::io::ErrorKind::ConnectionRefused))
    }

    /// No complete answer came in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.cause, Cause::Timeout(_)) || self.asks(Status::is_timeout)
    }

    /// The object does not exist, or the path does not.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.asks(Status::is_not_found)
    }

    /// The object has changed since it was read, or a precondition does not hold.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.asks(Status::is_conflict)
    }

    /// An object of that name exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.asks(Status::is_already_exists)
    }

    /// The resource version or the continue token is too old.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.asks(Status::is_gone)
    }

    /// The caller may not do this.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.asks(Status::is_forbidden)
    }

    /// The server does not know the caller.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.asks(Status::is_unauthorized)
    }

    /// The object does not pass validation.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.asks(Status::is_invalid)
    }

    /// The server asks for fewer requests.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.asks(Status::is_too_many_requests)
    }

    /// The server has not seen the resource version that the request names yet.
    #[must_use]
    pub fn is_too_large_resource_version(&self) -> bool {
        self.asks(Status::is_too_large_resource_version)
    }

    /// After what time the server asks to try again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.status()?.retry_after()
    }

    fn asks(&self, question: fn(&Status) -> bool) -> bool {
        self.status().is_some_and(question)
    }
}

/// The outcome of a request that ended in this error: [`RequestOutcome::NotSent`] if it never left the
/// process.
fn outcome_of(source: &(dyn std::error::Error + Send + Sync + 'static)) -> RequestOutcome {
    if source.is::<kube_client::client::AuthError>() {
        return RequestOutcome::NotSent;
    }
    match source.downcast_ref::<hyper_util::client::legacy::Error>() {
        Some(error) if error.is_connect() => RequestOutcome::NotSent,
        _ => RequestOutcome::Unknown,
    }
}

/// An error and everything behind it.
pub(crate) fn sources<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

pub(crate) fn io_kind(error: &(dyn std::error::Error + 'static)) -> Option<std::io::ErrorKind> {
    error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind)
}

/// The texts of an error and of everything behind it. hyper keeps the reason in the sources only.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in sources(error).map(ToString::to_string) {
        if texts.last().is_none_or(|last| !last.ends_with(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            request,
            cause,
            previous,
            ..
        } = &*self.0;
        write!(f, "{request}: {cause}")?;
        match previous {
            Some(previous) => write!(f, " (the attempt before it: {previous})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}, {self})", self.0.outcome)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The text of a status or a broken connection is in our own already.
        self.0.cause.source()
    }
}
