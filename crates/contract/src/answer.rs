//! What a server answered, and what a case demands of it.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use windlass_core::Doc;

/// The media type of protobuf.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The request, for messages.
    what: String,
    code: u16,
    headers: HeaderMap,
    body: Bytes,
}

/// A refusal: a `Status` whose shape has been checked.
#[derive(Clone, Debug)]
pub struct Refusal {
    what: String,
    status: Doc,
}

impl Answer {
    pub(crate) fn new(what: String, code: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self {
            what,
            code: code.as_u16(),
            headers,
            body,
        }
    }

    /// The HTTP status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// A header, empty if absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("a header in ASCII"))
    }

    /// All values of a header.
    #[must_use]
    pub fn headers(&self, name: &str) -> Vec<&str> {
        let values = self.headers.get_all(name).iter();
        values
            .map(|value| value.to_str().expect("a header in ASCII"))
            .collect()
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body in UTF-8")
    }

    /// The body, which must be a JSON object.
    #[must_use]
    #[track_caller]
    pub fn doc(&self) -> Doc {
        match Doc::parse(&self.body) {
            Ok(doc) => doc,
            Err(error) => panic!("{}: {error}: {}", self.what, self.shown()),
        }
    }

    /// The body as it came.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// Demands a status code and a body in protobuf, and returns the JSON of the same object.
    #[track_caller]
    pub fn is_protobuf(&self, code: u16) -> Doc {
        let got = (self.code, self.header("content-type"));
        assert_eq!(got, (code, PROTOBUF), "{}: {}", self.what, self.shown());
        match windlass_atlas::decode_protobuf(&self.body) {
            Ok(decoded) => decoded.doc,
            Err(error) => panic!("{}: {error}: {}", self.what, self.shown()),
        }
    }

    /// Demands a status code and returns the body.
    #[track_caller]
    pub fn is(&self, code: u16) -> Doc {
        assert!(
            self.code == code,
            "{}: {code} expected, got {}: {}",
            self.what,
            self.code,
            self.shown()
        );
        self.doc()
    }

    /// Demands a refusal: the code, and a `Status` that says the same and gives the reason.
    #[track_caller]
    pub fn fails(&self, code: u16, reason: &str) -> Refusal {
        let status = self.is(code);
        let refusal = Refusal::new(self.what.clone(), status);
        refusal.check("/code", &Doc::from(u64::from(code)));
        let reason = if reason.is_empty() {
            Doc::NULL
        } else {
            Doc::from(reason)
        };
        refusal.check("/reason", &reason);
        refusal
    }

    /// The start of the body, for messages.
    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.body)
            .chars()
            .take(1500)
            .collect()
    }
}

impl Refusal {
    #[track_caller]
    pub(crate) fn new(what: String, status: Doc) -> Self {
        let refusal = Self { what, status };
        refusal.check("/kind", &Doc::from("Status"));
        refusal.check("/apiVersion", &Doc::from("v1"));
        refusal.check("/status", &Doc::from("Failure"));
        refusal
    }

    #[track_caller]
    fn check(&self, pointer: &str, expected: &Doc) {
        let got = self.status.at(pointer);
        assert!(
            got == expected,
            "{}: {pointer} should be {expected}: {}",
            self.what,
            self.status
        );
    }

    /// Demands the whole message.
    #[track_caller]
    #[expect(
        clippy::must_use_candidate,
        reason = "a demand that is met needs no follow-up"
    )]
    pub fn says(self, message: &str) -> Self {
        self.check("/message", &Doc::from(message));
        self
    }

    /// Demands a part of the message, where the rest is not for clients to rely on.
    #[track_caller]
    #[expect(
        clippy::must_use_candidate,
        reason = "a demand that is met needs no follow-up"
    )]
    pub fn mentions(self, part: &str) -> Self {
        assert!(
            self.status.str_at("/message").contains(part),
            "{}: the message should contain {part:?}: {}",
            self.what,
            self.status
        );
        self
    }

    /// Demands what the refusal is about: its group, its resource or kind, and its name.
    #[track_caller]
    #[expect(
        clippy::must_use_candidate,
        reason = "a demand that is met needs no follow-up"
    )]
    pub fn is_about(self, group: &str, kind: &str, name: &str) -> Self {
        for (field, value) in [("group", group), ("kind", kind), ("name", name)] {
            let value = if value.is_empty() {
                Doc::NULL
            } else {
                Doc::from(value)
            };
            self.check(&format!("/details/{field}"), &value);
        }
        self
    }

    /// Demands that one of the causes has a reason and names a field.
    #[track_caller]
    #[expect(
        clippy::must_use_candidate,
        reason = "a demand that is met needs no follow-up"
    )]
    pub fn because(self, reason: &str, field: &str) -> Self {
        let is_cause =
            |cause: &Doc| cause.str_at("/reason") == reason && cause.str_at("/field") == field;
        assert!(
            self.causes().iter().any(is_cause),
            "{}: a cause {reason} at {field:?} expected: {}",
            self.what,
            self.status
        );
        self
    }

    /// The causes.
    #[must_use]
    pub fn causes(&self) -> &[Doc] {
        self.status.at("/details/causes").items()
    }

    /// The `Status` itself.
    #[must_use]
    pub fn status(&self) -> &Doc {
        &self.status
    }
}
