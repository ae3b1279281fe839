//! Frames of HTTP/2, as far as one who never means to read an answer needs them.

use crate::server::wire::Target;

/// The first bytes of a connection: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: u32 = 8;

/// The index of the newest header of the dynamic table.
const NEWEST_INDEX: u8 = 62;

/// Writes requests on one connection. All have the same headers, so after the first each is a few
/// bytes.
pub(super) struct Requests {
    out: Vec<u8>,
    headers: Vec<(&'static str, String)>,
    has_body: bool,
    /// The id of the next stream.
    next: u32,
}

impl Requests {
    /// Begins with the preface. A request that says how long its body is never gets one.
    pub(super) fn new(target: &Target, method: &str, path: &str, body: Option<usize>) -> Self {
        let mut headers = vec![
            (":method", method.to_owned()),
            (":scheme", "https".to_owned()),
            (":authority", target.address().to_owned()),
            (":path", path.to_owned()),
        ];
        if !target.authorization().is_empty() {
            headers.push(("authorization", target.authorization().to_owned()));
        }
        if let Some(length) = body {
            headers.push(("content-type", "application/json".to_owned()));
            headers.push(("content-length", length.to_string()));
        }
        Self::with_headers(headers, body.is_some())
    }

    fn with_headers(headers: Vec<(&'static str, String)>, has_body: bool) -> Self {
        Self {
            out: PREFACE.to_vec(),
            headers,
            has_body,
            next: 1,
        }
    }

    /// Adds a request.
    pub(super) fn open(&mut self) {
        let block = match self.next {
            1 => self.first_block(),
            _ => self.next_block(),
        };
        let flags = if self.has_body { 0 } else { END_STREAM };
        self.frame(HEADERS, flags | END_HEADERS, self.next, &block);
        self.next += 2;
    }

    /// Cancels so many requests that were added last.
    pub(super) fn reset(&mut self, requests: u32) {
        for age in 1..=requests {
            let stream = self.next - 2 * age;
            self.frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
        }
    }

    /// Adds a frame that the server answers.
    pub(super) fn ping(&mut self) {
        self.frame(PING, 0, 0, &[0; 8]);
    }

    /// Takes the bytes that were not taken yet.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        self.out.extend_from_slice(&length[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    /// Headers in full, which the server is to remember.
    fn first_block(&self) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in &self.headers {
            block.push(0x40);
            write_string(&mut block, name);
            write_string(&mut block, value);
        }
        block
    }

    /// The same headers by their numbers; the newest has the lowest.
    fn next_block(&self) -> Vec<u8> {
        let count = self.headers.len() as u8;
        (0..count)
            .rev()
            .map(|age| 0x80 | (NEWEST_INDEX + age))
            .collect()
    }
}

/// A string without Huffman code: its length in seven bits and, if that is not enough, in further
/// groups of seven.
fn write_string(out: &mut Vec<u8>, text: &str) {
    const PREFIX: usize = 0x7f;
    if text.len() < PREFIX {
        out.push(text.len() as u8);
    } else {
        out.push(PREFIX as u8);
        let mut rest = text.len() - PREFIX;
        while rest >= 0x80 {
            out.push((rest % 0x80) as u8 | 0x80);
            rest /= 0x80;
        }
        out.push(rest as u8);
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_strings_have_their_length_in_groups() {
        let mut out = Vec::new();
        write_string(&mut out, &"x".repeat(1_337));
        // RFC 7541, section 5.1: 1337 - 127 = 1210 = 9 * 128 + 58.
        assert_eq!(out[..3], [0x7f, 58 | 0x80, 9]);
        assert_eq!(out.len(), 3 + 1_337);
    }

    #[test]
    fn later_requests_name_the_headers_of_the_first() {
        let headers = [("a", "1"), ("b", "2")].map(|(name, value)| (name, value.to_owned()));
        let mut requests = Requests::with_headers(headers.to_vec(), false);
        requests.open();
        requests.take();
        requests.open();
        // `a` was added before `b`, which is the newest and so has index 62.
        let frame = [0, 0, 2, HEADERS, 5, 0, 0, 0, 3, 0x80 | 63, 0x80 | 62];
        assert_eq!(requests.take(), frame);
        requests.reset(2);
        let reset = |stream| [0, 0, 4, RST_STREAM, 0, 0, 0, 0, stream, 0, 0, 0, 8];
        assert_eq!(requests.take(), [reset(3), reset(1)].concat());
    }
}
