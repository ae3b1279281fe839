//! The four sorts of patch.

use http::HeaderValue;
use windlass_core::Doc;

/// A change to an object, in one of the forms that an API server takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Patch {
    /// A JSON patch (RFC 6902): an array of operations.
    Json(Doc),
    /// A JSON merge patch (RFC 7386): fields to set, `null` to remove.
    Merge(Doc),
    /// A merge patch that knows the lists of built-in kinds. Custom resources refuse it.
    Strategic(Doc),
    /// All fields that the field manager wants to own. Needs a field manager.
    Apply(Doc),
}

impl Patch {
    /// The document that the request carries.
    #[must_use]
    pub fn doc(&self) -> &Doc {
        match self {
            Self::Json(doc) | Self::Merge(doc) | Self::Strategic(doc) | Self::Apply(doc) => doc,
        }
    }

    pub(crate) fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Json(_) => "application/json-patch+json",
            Self::Merge(_) => "application/merge-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            // JSON is YAML, and the server takes it as such.
            Self::Apply(_) => "application/apply-patch+yaml",
        })
    }
}
