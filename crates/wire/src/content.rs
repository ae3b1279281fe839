//! The contents of requests and answers.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use windlass_core::{Doc, doc};

use crate::{Body, WatchError, WatchEvent};

/// The body of a request.
#[derive(Clone, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    Empty,
    /// Bytes as they go over the wire.
    Bytes(Bytes),
    /// A document, which is written as JSON only if it leaves the process.
    Doc(Doc),
}

/// The body of an answer.
#[derive(Debug)]
pub enum Content {
    /// Bytes, as they arrive.
    Body(Body),
    /// One document.
    Doc(Doc),
    /// The items of a list.
    List(DocList),
    /// The events of a watch.
    Events(Events),
}

/// A list whose items are documents already.
pub struct DocList {
    /// The `apiVersion` of the list.
    pub api_version: String,
    /// The `kind` of the list, such as `PodList`.
    pub kind: String,
    /// The `metadata` of the list.
    pub metadata: Doc,
    /// The items.
    pub items: Box<dyn Iterator<Item = Doc> + Send>,
}

impl DocList {
    /// The list as one document, as it would be on the wire.
    #[must_use]
    pub fn into_doc(self) -> Doc {
        doc!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": self.metadata,
            "items": self.items.collect::<Vec<Doc>>(),
        })
    }
}

/// The events of a watch, as documents.
pub struct Events(Pin<Box<dyn Stream<Item = Result<WatchEvent, WatchError>> + Send>>);

impl Payload {
    /// The bytes of this payload; a document becomes JSON.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Bytes(bytes) => bytes,
            Self::Doc(doc) => doc.to_json().into(),
        }
    }
}

impl Events {
    /// Events from any stream of them.
    #[must_use]
    pub fn new(
        stream: impl Stream<Item = Result<WatchEvent, WatchError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(stream))
    }

    /// The next event; `None` at the end. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        std::future::poll_fn(|cx| self.0.as_mut().poll_next(cx)).await
    }
}

/// For layers that hold events back, or end a watch early.
impl Stream for Events {
    type Item = Result<WatchEvent, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

// None of these print what they carry: it may be a Secret.

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Doc(_) => f.write_str("Doc(..)"),
        }
    }
}

impl fmt::Debug for DocList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocList")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events(..)")
    }
}
