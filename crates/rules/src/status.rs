//! Refusals as the wire knows them: the `Status` object of `meta/v1`.

use std::fmt;
use std::time::Duration;

use windlass_core::{Doc, GroupKind, GroupResource, Object, doc};

use crate::field::{Cause, FieldErrors};

/// Why a request was refused, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Box<Details>>,
    /// A token to go on listing with, when a list expired under the client.
    next: Option<String>,
    /// The object itself, if somebody else has made it.
    given: Option<Box<Doc>>,
}

/// The machine-readable part of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Details {
    name: String,
    group: String,
    kind: String,
    uid: String,
    causes: Vec<Cause>,
    retry_after: Option<Duration>,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            next: None,
            given: None,
        }
    }

    fn about(mut self, resource: &GroupResource, name: &str) -> Self {
        self.details_mut().name = name.to_owned();
        resource.group().clone_into(&mut self.details_mut().group);
        resource.resource().clone_into(&mut self.details_mut().kind);
        self
    }

    fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// The HTTP status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The machine-readable reason, such as `NotFound`.
    #[must_use]
    pub fn reason(&self) -> &str {
        match &self.given {
            Some(given) => given.str_at("/reason"),
            None => self.reason,
        }
    }

    /// The sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How long the client should wait before it tries again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Some(given) = &self.given {
            let seconds = given.at("/details/retryAfterSeconds").as_i64();
            let seconds = u64::try_from(seconds?).ok().filter(|seconds| *seconds > 0);
            return seconds.map(Duration::from_secs);
        }
        self.details.as_ref()?.retry_after
    }

    /// The object as it goes over the wire.
    #[must_use]
    pub fn to_doc(&self) -> Doc {
        if let Some(given) = &self.given {
            return (**given).clone();
        }
        let metadata = match &self.next {
            Some(token) => doc!({ "continue": token }),
            None => Doc::empty_object(),
        };
        let mut fields = vec![
            ("kind".into(), "Status".into()),
            ("apiVersion".into(), "v1".into()),
            ("metadata".into(), metadata),
            ("status".into(), "Failure".into()),
            ("message".into(), Doc::from(&self.message)),
            ("code".into(), Doc::from(u64::from(self.code))),
        ];
        if !self.reason.is_empty() {
            fields.push(("reason".into(), self.reason.into()));
        }
        if let Some(details) = &self.details {
            fields.push(("details".into(), details.to_doc()));
        }
        Object::new(fields).into()
    }

    /// A refusal that somebody outside of the server has made: its reason and details are passed on.
    #[must_use]
    pub fn given(code: u16, message: String, reason: &str, details: &Doc) -> Self {
        let mut fields = vec![
            ("kind".into(), "Status".into()),
            ("apiVersion".into(), "v1".into()),
            ("metadata".into(), Doc::empty_object()),
            ("status".into(), "Failure".into()),
            ("message".into(), Doc::from(&message)),
            ("code".into(), Doc::from(u64::from(code))),
        ];
        if !reason.is_empty() {
            fields.push(("reason".into(), reason.into()));
        }
        if !details.is_null() {
            fields.push(("details".into(), details.clone()));
        }
        Self {
            given: Some(Box::new(Object::new(fields).into())),
            ..Self::new(code, "", message)
        }
    }

    /// 400 with a sentence.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 about one object, for a reason given as the end of the sentence.
    #[must_use]
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = match (resource.resource(), name) {
            ("", "") => format!("forbidden: {why}"),
            (_, "") => format!("{resource} is forbidden: {why}"),
            _ => format!("{resource} \"{name}\" is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    /// 404 about one object.
    #[must_use]
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} \"{name}\" not found");
        Self::new(404, "NotFound", message).about(resource, name)
    }

    /// 404 for a path that leads nowhere.
    #[must_use]
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource";
        let mut status = Self::new(404, "NotFound", message);
        status.details_mut();
        status
    }

    /// 405 for a method that a path does not have.
    #[must_use]
    pub fn method_unknown() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut status = Self::new(405, "MethodNotAllowed", message);
        status.details_mut();
        status
    }

    /// 406 with what would be acceptable.
    #[must_use]
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        let message = format!("only the following media types are accepted: {list}");
        let mut status = Self::new(406, "NotAcceptable", message);
        status.details_mut();
        status
    }

    /// 406 because a path has no route that produces what would be acceptable.
    #[must_use]
    pub fn no_route(available: &[&str]) -> Self {
        let list = available.join(", ");
        let message = format!("406: Not Acceptable\n\nAvailable representations: {list}");
        let mut status = Self::new(406, "NotAcceptable", message);
        status.details_mut();
        status
    }

    /// 406 because an object cannot have the form that was asked for.
    pub fn no_such_form(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 409 because the name is taken.
    #[must_use]
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} \"{name}\" already exists");
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409 because the name is taken by an object that is on its way out.
    #[must_use]
    pub fn being_deleted(resource: &GroupResource, name: &str) -> Self {
        let message = format!("object is being deleted: {resource} \"{name}\" already exists");
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409 because no free name was found in several attempts.
    #[must_use]
    pub fn no_free_name(resource: &GroupResource, name: &str) -> Self {
        let mut status = Self::already_exists(resource, name);
        status
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        status.details_mut().retry_after = Some(Duration::from_secs(1));
        status
    }

    /// 409 because of a precondition, for a reason given as the end of the sentence.
    #[must_use]
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 409 because other managers have set what is applied, with one cause for each field.
    #[must_use]
    pub fn fields_conflict(message: String, conflicts: Vec<Cause>) -> Self {
        let mut status = Self::new(409, "Conflict", message);
        status.details_mut().causes = conflicts;
        status
    }

    /// 409 because somebody else wrote in between.
    #[must_use]
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(resource, name, why)
    }

    /// 410: the revision asked for is no longer kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 410 with a token that goes on at the present state.
    pub fn expired_with_next(message: impl Into<String>, next: String) -> Self {
        Self {
            next: Some(next),
            ..Self::expired(message)
        }
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415 with what would be read.
    #[must_use]
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {list}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 415 for a patch that is none of those that are served.
    #[must_use]
    pub fn no_such_patch() -> Self {
        let message = "415: Unsupported Media Type";
        let (code, reason) = (415, "UnsupportedMediaType");
        let mut status = Self::new(code, reason, message);
        status.details_mut();
        status
    }

    /// 422 with every field that is wrong.
    #[must_use]
    pub fn invalid(kind: &GroupKind, name: &str, errors: &FieldErrors) -> Self {
        let message = format!("{kind} \"{name}\" is invalid: {errors}");
        let mut status = Self::new(422, "Invalid", message);
        let details = status.details_mut();
        details.name = name.to_owned();
        kind.group().clone_into(&mut details.group);
        kind.kind().clone_into(&mut details.kind);
        details.causes = errors.causes();
        status
    }

    /// 422 because the instructions in the body could not be followed.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        let mut status = Self::new(422, "Invalid", message);
        status.details_mut();
        status
    }

    /// 429 that asks to come back.
    pub fn too_many_requests(message: impl Into<String>, after: Duration) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message);
        if !after.is_zero() {
            status.details_mut().retry_after = Some(after);
        }
        status
    }

    /// 500.
    pub fn internal(why: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {why}");
        let mut status = Self::new(500, "InternalError", message);
        status.details_mut().causes = vec![Cause {
            reason: "",
            message: why.to_string(),
            field: String::new(),
        }];
        status
    }

    /// 500 without a reason, as plain failures inside the server come out.
    pub fn plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 504.
    #[must_use]
    pub fn timeout(message: &str) -> Self {
        let mut status = Self::new(504, "Timeout", format!("Timeout: {message}"));
        status.details_mut();
        status
    }

    /// 504 because the client asks for a revision that does not exist yet.
    #[must_use]
    pub fn revision_too_large(asked: u64, current: u64) -> Self {
        let why = format!("Too large resource version: {asked}, current: {current}");
        let mut status = Self::timeout(&why);
        let details = status.details_mut();
        details.retry_after = Some(Duration::from_secs(1));
        details.causes = vec![Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }];
        status
    }

    /// The same with another code and reason.
    #[must_use]
    pub fn with_reason(mut self, code: u16, reason: &'static str) -> Self {
        self.code = code;
        self.reason = reason;
        self
    }

    /// The same with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.details_mut().causes.push(cause);
        self
    }
}

impl Details {
    fn to_doc(&self) -> Doc {
        let texts = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        let mut fields: Vec<_> = texts
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(key, text)| (key.into(), Doc::from(text)))
            .collect();
        if !self.causes.is_empty() {
            let causes: Vec<Doc> = self.causes.iter().map(Cause::to_doc).collect();
            fields.push(("causes".into(), causes.into()));
        }
        if let Some(after) = self.retry_after {
            fields.push(("retryAfterSeconds".into(), Doc::from(after.as_secs())));
        }
        Object::new(fields).into()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// The `Status` that says an action on one object went well.
#[must_use]
pub fn success(resource: &GroupResource, name: &str, uid: &str) -> Doc {
    let details = Details {
        name: name.to_owned(),
        group: resource.group().to_owned(),
        kind: resource.resource().to_owned(),
        uid: uid.to_owned(),
        ..Details::default()
    };
    doc!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": (details.to_doc())
    })
}
