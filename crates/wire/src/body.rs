//! A body of bytes that arrives in chunks.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

use crate::BoxError;

/// A body of bytes that arrives in chunks.
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

impl Body {
    /// A body from any other.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(body.map_err(Into::into).boxed_unsync())
    }

    /// A body without bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(Empty::new())
    }

    /// The next chunk; `None` after the last one. Safe to drop and call again.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.0).poll_frame(cx)).await?;
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(chunk)) if chunk.is_empty() => {}
                Ok(Ok(chunk)) => return Some(Ok(chunk)),
                // Trailers say nothing that a client of Kubernetes needs.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::new(Full::new(bytes))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body(..)")
    }
}
