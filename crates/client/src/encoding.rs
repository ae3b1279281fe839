//! Objects as the bodies of requests.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use windlass_atlas::ProtobufEncoder;
use windlass_core::{Doc, Encoder};

/// The content type of JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static(Encoding::Json.content_type());
/// The content type of protobuf.
pub(crate) const PROTOBUF: HeaderValue =
    HeaderValue::from_static(Encoding::Protobuf.content_type());

/// The initial capacity of a request body: most objects fit.
const BODY_CAPACITY: usize = 4 << 10;

thread_local! {
    /// The JSON encoder of created objects, with the text of their common parts.
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
    /// The same for protobuf.
    static PROTOBUF_ENCODER: RefCell<ProtobufEncoder> = RefCell::new(ProtobufEncoder::new());
}

/// The encoding of built-in kinds in request bodies and watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As JSON, which every server reads.
    #[default]
    Json,
    /// As protobuf, which kube-apiserver reads and writes at a fraction of the cost. Whatever
    /// protobuf cannot say goes as JSON: custom resources, patches, objects with fields that are not
    /// known. A watch that brings such fields goes on in JSON.
    Protobuf,
}

impl Encoding {
    /// The encoding that a content type header names; `None` if it is neither.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let said = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let essence = said.split(';').next()?.trim();
        [Self::Json, Self::Protobuf]
            .into_iter()
            .find(|it| essence.eq_ignore_ascii_case(it.content_type()))
    }

    /// The content type of bodies.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.content_type())
    }
}

/// A content type that objects cannot be written in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither {} nor {}", Encoding::Json, Encoding::Protobuf)]
pub struct UnknownEncoding;

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(content_type: &str) -> Result<Self, UnknownEncoding> {
        [Self::Json, Self::Protobuf]
            .into_iter()
            .find(|it| it.content_type() == content_type)
            .ok_or(UnknownEncoding)
    }
}

/// A document as JSON. Many objects are created from one template, one after another.
pub(crate) fn json(doc: &Doc, method: &Method) -> Bytes {
    if *method != Method::POST {
        return doc.to_json().into();
    }
    let mut json = Vec::with_capacity(BODY_CAPACITY);
    ENCODER.with_borrow_mut(|encoder| encoder.write(doc, &mut json));
    json.into()
}

/// An object as protobuf; `None` if it cannot be said so.
pub(crate) fn protobuf(doc: &Doc) -> Option<Bytes> {
    let mut body = Vec::with_capacity(BODY_CAPACITY);
    let is_written = PROTOBUF_ENCODER.with_borrow_mut(|encoder| encoder.write(doc, &mut body));
    is_written.then(|| body.into())
}
