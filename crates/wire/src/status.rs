//! The `Status` with which an API server refuses a request.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The answer of a server to a request that it did not carry out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Failure`, or `Success` where a deletion answers with a status.
    pub status: String,
    /// For people.
    pub message: String,
    /// For programs, such as `NotFound`.
    pub reason: String,
    /// The HTTP status code.
    pub code: u16,
    /// The object that the reason is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
}

/// The object that a [`Status`] is about, with causes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The name of the object.
    pub name: String,
    /// The group of the resource.
    pub group: String,
    /// The resource, although the field is called kind.
    pub kind: String,
    /// The uid of the object.
    pub uid: String,
    /// The causes, one for each problem.
    pub causes: Vec<StatusCause>,
    /// After how many seconds to try again; zero where the server does not say.
    pub retry_after_seconds: i64,
}

/// One cause of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// For programs, such as `FieldValueInvalid`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

impl Status {
    /// A failure with a reason of its own.
    #[must_use]
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status: "Failure".to_owned(),
            message: message.into(),
            reason: reason.to_owned(),
            code,
            details: None,
        }
    }

    /// The object does not exist, or the path does not.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.is(404, "NotFound")
    }

    /// The object has changed since it was read, or a precondition does not hold.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict" || self.code == 409 && self.reason.is_empty()
    }

    /// An object of that name exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// The resource version or the continue token is too old, or the object is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(&*self.reason, "Expired" | "Gone") || self.code == 410
    }

    /// The caller may not do this.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.is(403, "Forbidden")
    }

    /// The server does not know the caller.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.is(401, "Unauthorized")
    }

    /// The object does not pass validation.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.is(422, "Invalid")
    }

    /// The request makes no sense to the server.
    #[must_use]
    pub fn is_bad_request(&self) -> bool {
        self.is(400, "BadRequest")
    }

    /// The server asks for fewer requests.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.is(429, "TooManyRequests")
    }

    /// The server, or something behind it, ran out of time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(&*self.reason, "Timeout" | "ServerTimeout")
    }

    /// The server failed for a reason of its own.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.is(500, "InternalError")
    }

    /// The server has not seen the resource version that the request names yet.
    #[must_use]
    pub fn is_too_large_resource_version(&self) -> bool {
        const MESSAGE: &str = "Too large resource version";
        let causes = self.details.iter().flat_map(|details| &details.causes);
        let has = |test: fn(&StatusCause) -> bool| causes.clone().any(test);
        has(|cause| cause.reason == "ResourceVersionTooLarge")
            || self.reason == "Timeout"
                && (has(|cause| cause.message == MESSAGE) || self.message.contains(MESSAGE))
    }

    /// After what time the server asks to try again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        u64::try_from(seconds)
            .ok()
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs)
    }

    /// A reason decides where there is one; proxies on the way send only codes.
    fn is(&self, code: u16, reason: &str) -> bool {
        self.reason == reason || self.code == code && self.reason.is_empty()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.message, &*self.reason) {
            ("", "") => write!(f, "status {}", self.code),
            ("", reason) => write!(f, "{reason} ({})", self.code),
            (message, _) => f.write_str(message),
        }
    }
}

impl std::error::Error for Status {}
