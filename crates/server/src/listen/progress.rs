//! The progress of a connection: requests on it, and answers that its client reads or does not.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep};

use super::faults::{Broken, CutAfter};
use crate::body::Body;
use crate::metrics::Labels;
use crate::server::Server;

/// The period in which the progress of a connection is looked at.
pub(super) const PERIOD: Duration = Duration::from_secs(10);
/// Periods without a request after which a connection ends: 90 seconds, as with upstream.
pub(super) const IDLE_PERIODS: u32 = 9;
/// Periods in which an answer or a watch may stand still.
pub(super) const STALLED_PERIODS: u32 = 3;
/// Answers are handed out in pieces of at most so many bytes, a frame of HTTP/2. One has to be
/// taken within the periods above.
const PIECE_BYTES: usize = 16 << 10;
/// Pieces of an HTTP/1.1 answer after which the others on the same thread have their turn. HTTP/2
/// has its send buffer for that.
const PIECES_PER_TURN: usize = 8;
/// Answers that are not longer are not followed.
const SMALL_BYTES: usize = 4 << 10;
/// Bytes of unread answers on one connection with which it gets no further ones.
const UNREAD_BYTES_LIMIT: usize = 16 << 20;
/// Bytes of unread answers on all connections.
const UNREAD_TOTAL_LIMIT: usize = 256 << 20;
/// Bytes of unread answers that a connection may have even then.
const UNREAD_BYTES_RESERVE: usize = 1 << 20;
/// Answers that are noted before those that ended are forgotten.
const ANSWERS_NOTED: usize = 512;

/// The pause between the last event of a watch and the fault that breaks it.
const CUT_PAUSE: Duration = Duration::from_millis(50);

/// The progress of one connection.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Periods so far.
    period: AtomicU32,
    /// Requests so far.
    requests: AtomicUsize,
    /// Requests without an answer, and answers that are not sent yet.
    running: AtomicUsize,
    /// Bytes of answers that are known as a whole and not sent yet.
    unread: AtomicUsize,
    /// The same of all connections.
    total_unread: Arc<AtomicUsize>,
    answers: Mutex<Vec<Weak<Answer>>>,
    seen: Mutex<Seen>,
}

/// The last look at a connection.
#[derive(Debug, Default)]
struct Seen {
    requests: usize,
    idle_periods: u32,
}

/// Reasons to end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// No request came.
    Idle,
    /// The client does not read an answer or a watch.
    Unread,
}

/// One answer that is sent in pieces.
#[derive(Debug, Default)]
struct Answer {
    /// Pieces that were handed out and not sent.
    pieces: AtomicUsize,
    /// The period since which they wait.
    since: AtomicU32,
}

/// A request counts as running as long as this is held.
#[derive(Debug)]
pub(super) struct Running(Arc<Progress>);

impl Progress {
    /// The progress of a connection, one of all whose unread bytes are counted together.
    pub(super) fn new(total_unread: &Arc<AtomicUsize>) -> Self {
        Self {
            total_unread: Arc::clone(total_unread),
            ..Self::default()
        }
    }

    /// Notes a request.
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    /// Returns true if no request runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running.load(Ordering::Relaxed) == 0
    }

    /// Returns true if the client reads so little that it gets no further answers.
    pub(super) fn is_full(&self) -> bool {
        let unread = self.unread.load(Ordering::Relaxed);
        let total = self.total_unread.load(Ordering::Relaxed);
        unread > UNREAD_BYTES_LIMIT || (unread > UNREAD_BYTES_RESERVE && total > UNREAD_TOTAL_LIMIT)
    }

    /// Ends a period, and says if the connection has to end.
    pub(super) fn look(&self) -> Option<Overdue> {
        let now = self.period.fetch_add(1, Ordering::Relaxed) + 1;
        let mut answers = self.answers.lock();
        answers.retain(|answer| answer.strong_count() > 0);
        let is_stalled = |answer: &Weak<Answer>| {
            let answer = answer.upgrade();
            answer.is_some_and(|answer| answer.is_stalled(now))
        };
        if answers.iter().any(is_stalled) {
            return Some(Overdue::Unread);
        }
        drop(answers);
        let requests = self.requests.load(Ordering::Relaxed);
        let mut seen = self.seen.lock();
        if !self.is_idle() || requests != seen.requests {
            seen.idle_periods = 0;
            seen.requests = requests;
            return None;
        }
        seen.idle_periods += 1;
        let limit = if requests == 0 { 1 } else { IDLE_PERIODS };
        (seen.idle_periods >= limit).then_some(Overdue::Idle)
    }

    fn follow(&self) -> Arc<Answer> {
        let answer = Arc::new(Answer::default());
        let mut answers = self.answers.lock();
        if answers.len() >= ANSWERS_NOTED {
            answers.retain(|answer| answer.strong_count() > 0);
        }
        answers.push(Arc::downgrade(&answer));
        answer
    }
}

impl Answer {
    fn is_stalled(&self, now: u32) -> bool {
        let waits = now.saturating_sub(self.since.load(Ordering::Relaxed));
        self.pieces.load(Ordering::Relaxed) > 0 && waits > STALLED_PERIODS
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer on its way to a socket.
#[derive(Debug)]
pub(super) struct SentBody {
    body: Body,
    /// The rest of a long piece.
    rest: Bytes,
    /// Bytes that count as unread until the body is dropped.
    unread: usize,
    answer: Option<Arc<Answer>>,
    /// Pieces that were handed out in this turn, if turns are kept.
    pieces: Option<usize>,
    running: Running,
    /// Counts the bytes, if somebody wants to know.
    size: Option<AnswerSize>,
    /// The fault that breaks the watch.
    cut: Option<Cut>,
}

/// A fault that breaks a watch.
#[derive(Debug)]
struct Cut {
    /// Events that are sent before.
    events_left: usize,
    /// The time in which the client reads them: a stream that is reset loses what is unread.
    pause: Pin<Box<Sleep>>,
}

/// The size of an answer, which is counted when it is dropped.
#[derive(Debug)]
pub(super) struct AnswerSize {
    server: Server,
    labels: Labels,
    bytes: u64,
}

impl AnswerSize {
    pub(super) fn new(server: &Server, labels: Labels) -> Self {
        Self {
            server: server.clone(),
            labels,
            bytes: 0,
        }
    }
}

impl Drop for AnswerSize {
    fn drop(&mut self) {
        let metrics = &self.server.inner().metrics;
        metrics.sent(&self.labels, self.bytes);
    }
}

impl SentBody {
    /// The same body, whose bytes are counted.
    pub(super) fn measured_by(mut self, size: Option<AnswerSize>) -> Self {
        self.size = size;
        self
    }

    pub(super) fn new(body: Body, running: Running, version: http::Version) -> Self {
        let size = body.size_hint().exact();
        let unread = size.map_or(0, |size| usize::try_from(size).unwrap_or(usize::MAX));
        let is_small = size.is_some_and(|size| size <= SMALL_BYTES as u64);
        let answer = (!is_small).then(|| running.0.follow());
        // A large answer begins in a turn of its own: on a connection whose client asks and does not
        // read, hyper would make sixteen of them in one.
        let first_pieces = if is_small { 0 } else { PIECES_PER_TURN };
        running.0.unread.fetch_add(unread, Ordering::Relaxed);
        running.0.total_unread.fetch_add(unread, Ordering::Relaxed);
        Self {
            body,
            rest: Bytes::new(),
            unread,
            answer,
            pieces: (version < http::Version::HTTP_2).then_some(first_pieces),
            running,
            size: None,
            cut: None,
        }
    }

    /// The same body, broken by a fault after so many events.
    pub(super) fn cut(mut self, cut: Option<CutAfter>) -> Self {
        self.cut = cut.map(|CutAfter(events_left)| Cut {
            events_left,
            pause: Box::pin(sleep(CUT_PAUSE)),
        });
        self
    }

    /// The part of some events that is sent before a fault breaks the watch. Each event is a line.
    fn before_cut(&mut self, bytes: Bytes) -> Bytes {
        let Some(cut) = &mut self.cut else {
            return bytes;
        };
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            cut.events_left -= 1;
            if cut.events_left == 0 {
                cut.pause.as_mut().reset(Instant::now() + CUT_PAUSE);
                return bytes.slice(..=at);
            }
        }
        bytes
    }

    /// A piece that says when it was sent.
    fn piece(&mut self, mut bytes: Bytes) -> Bytes {
        let cut = self.answer.is_some() && bytes.len() > PIECE_BYTES;
        if cut {
            self.rest = bytes.split_off(PIECE_BYTES);
        }
        if let Some(size) = &mut self.size {
            size.bytes += bytes.len() as u64;
        }
        let Some(answer) = &self.answer else {
            return bytes;
        };
        let progress = &self.running.0;
        if answer.pieces.fetch_add(1, Ordering::Relaxed) == 0 {
            let now = progress.period.load(Ordering::Relaxed);
            answer.since.store(now, Ordering::Relaxed);
        }
        Bytes::from_owner(Piece {
            bytes,
            answer: Arc::clone(answer),
            progress: Arc::clone(progress),
        })
    }
}

impl Drop for SentBody {
    fn drop(&mut self) {
        let progress = &self.running.0;
        progress.unread.fetch_sub(self.unread, Ordering::Relaxed);
        progress
            .total_unread
            .fetch_sub(self.unread, Ordering::Relaxed);
    }
}

/// Bytes that note when they are sent, which is when they are dropped.
struct Piece {
    bytes: Bytes,
    answer: Arc<Answer>,
    progress: Arc<Progress>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let now = self.progress.period.load(Ordering::Relaxed);
        self.answer.since.store(now, Ordering::Relaxed);
        self.answer.pieces.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(pieces) = &mut self.pieces {
            if *pieces >= PIECES_PER_TURN {
                *pieces = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            *pieces += 1;
        }
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            let piece = self.piece(rest);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if let Some(cut) = self.cut.as_mut().filter(|cut| cut.events_left == 0) {
            ready!(cut.pause.as_mut().poll(cx));
            return Poll::Ready(Some(Err(Broken)));
        }
        let Some(Ok(frame)) = ready!(Pin::new(&mut self.body).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        let frame = match frame.into_data() {
            Ok(bytes) => {
                let bytes = self.before_cut(bytes);
                Frame::data(self.piece(bytes))
            }
            Err(frame) => frame,
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(size) => hint.set_exact(size + rest),
            None => hint.set_lower(hint.lower() + rest),
        }
        hint
    }
}
