//! Bodies: reading a request within limits, and answering at once or bit by bit.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::status::Status;

/// Upstream's limit for a request body.
pub(crate) const BODY_BYTES_LIMIT: usize = 3 << 20;

/// The body of an answer.
#[derive(Debug)]
pub struct Body(Inner);

enum Inner {
    /// Everything there is.
    Whole(Bytes),
    /// A watch, asked for its next piece as fast as the connection takes them.
    Stream(Pin<Box<dyn Pieces>>),
}

/// A body that is made bit by bit.
pub(crate) trait Pieces: Send {
    /// The next piece, or `None` at the end.
    fn poll_piece(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

/// Pieces made by a step that takes a state and gives it back with the next piece.
pub(crate) struct Steps<S, F, Fut> {
    step: F,
    state: Option<S>,
    running: Option<Pin<Box<Fut>>>,
}

impl Body {
    /// A body that is known as a whole.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Whole(bytes.into()))
    }

    /// The bytes of a body that is known as a whole.
    pub(crate) fn as_whole(&self) -> Option<&Bytes> {
        match &self.0 {
            Inner::Whole(bytes) => Some(bytes),
            Inner::Stream(_) => None,
        }
    }

    /// A body made by repeating a step until it gives no more pieces.
    pub(crate) fn steps<S, F, Fut>(state: S, step: F) -> Self
    where
        S: Send + Unpin + 'static,
        F: FnMut(S) -> Fut + Send + Unpin + 'static,
        Fut: Future<Output = Option<(S, Bytes)>> + Send + 'static,
    {
        let steps = Steps {
            step,
            state: Some(state),
            running: None,
        };
        Self(Inner::Stream(Box::pin(steps)))
    }
}

impl<S, F, Fut> Pieces for Steps<S, F, Fut>
where
    S: Send + Unpin,
    F: FnMut(S) -> Fut + Send + Unpin,
    Fut: Future<Output = Option<(S, Bytes)>> + Send,
{
    fn poll_piece(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(state) = self.state.take() {
            let next = (self.step)(state);
            self.running = Some(Box::pin(next));
        }
        let Some(running) = &mut self.running else {
            return Poll::Ready(None);
        };
        let outcome = ready!(running.as_mut().poll(cx));
        self.running = None;
        Poll::Ready(outcome.map(|(state, piece)| {
            self.state = Some(state);
            piece
        }))
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Inner::Whole(bytes) if bytes.is_empty() => None,
            Inner::Whole(bytes) => Some(std::mem::take(bytes)),
            Inner::Stream(pieces) => ready!(pieces.as_mut().poll_piece(cx)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}

/// Reads a request body, of which no more than the limit is held.
pub(crate) async fn read<B>(body: B) -> Result<Bytes, Status>
where
    B: HttpBody,
    B::Error: fmt::Display,
{
    let mut body = std::pin::pin!(body);
    if body.size_hint().lower() > BODY_BYTES_LIMIT as u64 {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut all = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            Status::bad_request(format!("unable to read the request body: {error}"))
        })?;
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        if first.len() + all.len() + data.remaining() > BODY_BYTES_LIMIT {
            return Err(too_large());
        }
        // Most bodies come in one piece, which is then not copied.
        if first.is_empty() && all.is_empty() {
            first = data.copy_to_bytes(data.remaining());
            continue;
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        while data.has_remaining() {
            all.extend_from_slice(data.chunk());
            data.advance(data.chunk().len());
        }
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

fn too_large() -> Status {
    Status::too_large(format!(
        "Request entity too large: limit is {BODY_BYTES_LIMIT}"
    ))
}
