//! Larger reads from the network than TLS asks for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// The most that is read with one system call. TLS asks for four kilobytes at a time, of which an
/// API server that answers many requests sends several at once.
const READ_BYTES: usize = 64 << 10;

/// A connection that reads what has come, and gives it away in the pieces that are asked for.
#[derive(Debug)]
pub(super) struct ReadAhead<T> {
    io: T,
    /// Read, of which `start..end` has not been asked for yet.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<T> ReadAhead<T> {
    pub(super) fn new(io: T) -> Self {
        Self {
            io,
            buffer: vec![0; READ_BYTES].into(),
            start: 0,
            end: 0,
        }
    }
}

impl<T: Read + Unpin> Read for ReadAhead<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut wanted: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.start == this.end {
            let mut read = ReadBuf::new(&mut this.buffer);
            ready!(Pin::new(&mut this.io).poll_read(cx, read.unfilled()))?;
            (this.start, this.end) = (0, read.filled().len());
        }
        let length = wanted.remaining().min(this.end - this.start);
        wanted.put_slice(&this.buffer[this.start..this.start + length]);
        this.start += length;
        Poll::Ready(Ok(()))
    }
}

impl<T: Write + Unpin> Write for ReadAhead<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }
}

impl<T: Connection> Connection for ReadAhead<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Each item is what one system call finds.
    struct Arrivals(Vec<&'static [u8]>);

    impl Read for Arrivals {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            mut wanted: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            match self.0.is_empty() {
                true => Poll::Pending,
                false => {
                    wanted.put_slice(self.0.remove(0));
                    Poll::Ready(Ok(()))
                }
            }
        }
    }

    /// The bytes that a reader of four bytes gets.
    fn read(ahead: &mut ReadAhead<Arrivals>) -> Poll<Vec<u8>> {
        let mut room = [0; 4];
        let mut read = ReadBuf::new(&mut room);
        let mut cx = Context::from_waker(Waker::noop());
        let outcome = Pin::new(ahead).poll_read(&mut cx, read.unfilled());
        outcome.map(|outcome| {
            outcome.unwrap();
            read.filled().to_vec()
        })
    }

    #[test]
    fn what_came_at_once_is_read_at_once_and_given_in_pieces() {
        let mut ahead = ReadAhead::new(Arrivals(vec![b"abcdef", b"gh", b""]));
        assert_eq!(read(&mut ahead), Poll::Ready(b"abcd".to_vec()));
        assert_eq!(ahead.io.0.len(), 2);
        assert_eq!(read(&mut ahead), Poll::Ready(b"ef".to_vec()));
        assert_eq!(read(&mut ahead), Poll::Ready(b"gh".to_vec()));
        assert_eq!(
            read(&mut ahead),
            Poll::Ready(Vec::new()),
            "the end is passed on"
        );
        assert_eq!(read(&mut ahead), Poll::Pending);
    }
}
