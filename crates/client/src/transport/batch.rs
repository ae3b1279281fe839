//! Many small writes of HTTP/2 as one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// The most bytes that are held back.
const HELD_BYTES_LIMIT: usize = 64 << 10;

/// A connection that sends everything that is written in one poll of its task together.
///
/// HTTP/2 flushes after every request. Five hundred of them at the same time would be as many TLS
/// records and system calls, here and at the server. So a flush is put off until the task of the
/// connection is polled again, for which it is woken at once: requests of other tasks meanwhile go
/// with it. An HTTP/2 connection begins each poll with a read, and that is where the bytes go out.
/// HTTP/1 does not guarantee that and is left alone.
#[derive(Debug)]
pub(super) struct WriteBatch<T> {
    io: T,
    is_batching: bool,
    /// Written, of which the first `sent` bytes are gone. Bounded by `HELD_BYTES_LIMIT`.
    held: Vec<u8>,
    sent: usize,
    flush: Flush,
}

/// The flush state of the connection below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    /// Nothing was written since it was.
    Done,
    /// Something was written.
    Wanted,
    /// It was asked for, and is made when the task runs again.
    Due,
}

impl<T: Connection> WriteBatch<T> {
    pub(super) fn new(io: T) -> Self {
        Self {
            is_batching: io.connected().is_negotiated_h2(),
            io,
            held: Vec::new(),
            sent: 0,
            flush: Flush::Done,
        }
    }
}

impl<T: Write + Unpin> WriteBatch<T> {
    /// Passes on all that is held.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.held.len() {
            let rest = &self.held[self.sent..];
            match ready!(Pin::new(&mut self.io).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.sent += written,
            }
        }
        self.held.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_flush_now(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.flush = Flush::Done;
        Poll::Ready(Ok(()))
    }
}

impl<T: Read + Write + Unpin> Read for WriteBatch<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        wanted: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // A peer that does not read must not keep us from reading: then it might never.
        if self.flush == Flush::Due
            && let Poll::Ready(Err(error)) = self.poll_flush_now(cx)
        {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.io).poll_read(cx, wanted)
    }
}

impl<T: Write + Unpin> Write for WriteBatch<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_batching {
            return Pin::new(&mut self.io).poll_write(cx, bytes);
        }
        if self.held.len() >= HELD_BYTES_LIMIT {
            ready!(self.poll_send(cx))?;
        }
        let length = bytes.len().min(HELD_BYTES_LIMIT - self.held.len());
        self.held.extend_from_slice(&bytes[..length]);
        if self.flush == Flush::Done {
            self.flush = Flush::Wanted;
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_batching {
            return Pin::new(&mut self.io).poll_flush(cx);
        }
        if self.flush == Flush::Wanted {
            self.flush = Flush::Due;
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flush_now(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<T: Connection> Connection for WriteBatch<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use hyper::rt::ReadBuf;

    use super::*;

    /// A connection that notes what is written to it.
    #[derive(Debug, Default)]
    struct Noting {
        is_h2: bool,
        is_blocked: bool,
        writes: Vec<usize>,
        flushes: usize,
        is_shut: bool,
    }

    impl Read for Noting {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut wanted: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            wanted.put_slice(b"answer");
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Noting {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.is_blocked {
                return Poll::Pending;
            }
            self.writes.push(bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.is_shut = true;
            Poll::Ready(Ok(()))
        }
    }

    impl Connection for Noting {
        fn connected(&self) -> Connected {
            match self.is_h2 {
                true => Connected::new().negotiated_h2(),
                false => Connected::new(),
            }
        }
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A connection, and the task that it wakes.
    struct Bench {
        batch: WriteBatch<Noting>,
        wakes: Arc<Wakes>,
    }

    impl Bench {
        fn new(is_h2: bool) -> Self {
            let io = Noting {
                is_h2,
                ..Noting::default()
            };
            Self {
                batch: WriteBatch::new(io),
                wakes: Arc::default(),
            }
        }

        fn poll<T>(
            &mut self,
            call: impl FnOnce(Pin<&mut WriteBatch<Noting>>, &mut Context<'_>) -> T,
        ) -> T {
            let waker = Waker::from(self.wakes.clone());
            call(Pin::new(&mut self.batch), &mut Context::from_waker(&waker))
        }

        fn request(&mut self, bytes: &[u8]) {
            let written = self.poll(|batch, cx| batch.poll_write(cx, bytes));
            assert!(matches!(written, Poll::Ready(Ok(length)) if length == bytes.len()));
            assert!(self.poll(|batch, cx| batch.poll_flush(cx)).is_ready());
        }

        fn read(&mut self) -> usize {
            let mut room = [0; 16];
            let mut read = ReadBuf::new(&mut room);
            let outcome = self.poll(|batch, cx| batch.poll_read(cx, read.unfilled()));
            assert!(matches!(outcome, Poll::Ready(Ok(()))));
            read.filled().len()
        }
    }

    #[test]
    fn requests_of_one_turn_are_sent_together_in_the_next() {
        let mut bench = Bench::new(true);
        for _ in 0..3 {
            bench.request(b"request");
        }
        assert!(bench.batch.io.writes.is_empty());
        assert_eq!(bench.wakes.0.load(Ordering::Relaxed), 1);
        bench.read();
        assert_eq!(
            (&bench.batch.io.writes[..], bench.batch.io.flushes),
            (&[21][..], 1)
        );
        bench.read();
        assert_eq!(bench.batch.io.flushes, 1, "nothing is left to be flushed");
    }

    #[test]
    fn what_is_held_back_is_bounded() {
        let mut bench = Bench::new(true);
        let body = vec![0; HELD_BYTES_LIMIT + 1];
        let written = bench.poll(|batch, cx| batch.poll_write(cx, &body));
        assert!(matches!(written, Poll::Ready(Ok(HELD_BYTES_LIMIT))));
        bench.request(b"rest");
        assert_eq!(bench.batch.io.writes, [HELD_BYTES_LIMIT]);
        bench.read();
        assert_eq!(bench.batch.io.writes, [HELD_BYTES_LIMIT, 4]);
    }

    #[test]
    fn a_peer_that_does_not_read_is_still_read_from() {
        let mut bench = Bench::new(true);
        bench.request(b"request");
        bench.batch.io.is_blocked = true;
        assert_eq!(bench.read(), "answer".len());
        bench.batch.io.is_blocked = false;
        bench.read();
        assert_eq!(bench.batch.io.writes, [7]);
    }

    #[test]
    fn http1_is_left_alone() {
        let mut bench = Bench::new(false);
        bench.request(b"request");
        assert_eq!(
            (&bench.batch.io.writes[..], bench.batch.io.flushes),
            (&[7][..], 1)
        );
    }

    #[test]
    fn a_connection_that_ends_sends_what_is_held() {
        let mut bench = Bench::new(true);
        bench.request(b"goodbye");
        assert!(bench.poll(|batch, cx| batch.poll_shutdown(cx)).is_ready());
        assert_eq!(
            (&bench.batch.io.writes[..], bench.batch.io.is_shut),
            (&[7][..], true)
        );
    }
}
