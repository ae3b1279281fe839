//! A watch as a client reads it.

use bytes::BytesMut;
use http::{Response, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use windlass_atlas::{decode_protobuf, protobuf_event};
use windlass_core::Doc;

use crate::answer::Refusal;
use crate::http::PATIENCE;

/// The media type of a watch in protobuf.
const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// A running watch.
#[derive(Debug)]
pub struct Watch {
    what: String,
    /// Whether the server may send a bookmark whenever it likes.
    allows_bookmarks: bool,
    /// Whether events are frames of protobuf, and not lines of JSON.
    is_protobuf: bool,
    body: Incoming,
    read: BytesMut,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub sort: String,
    /// The object, or the `Status` of an error.
    pub object: Doc,
}

impl Event {
    /// Whether this is a bookmark that marks nothing but progress.
    fn is_progress(&self) -> bool {
        self.sort == "BOOKMARK" && self.object.at("/metadata/annotations").is_null()
    }
}

impl Watch {
    pub(crate) fn new(what: String, response: Response<Incoming>) -> Self {
        let media_type = response.headers().get(header::CONTENT_TYPE);
        Self {
            allows_bookmarks: what.contains("allowWatchBookmarks=true"),
            what,
            is_protobuf: media_type.is_some_and(|it| it == PROTOBUF_WATCH),
            body: response.into_body(),
            read: BytesMut::new(),
        }
    }

    /// The next event.
    pub async fn next(&mut self) -> Event {
        match self.try_next().await {
            Some(event) => event,
            None => panic!("{}: the watch ended", self.what),
        }
    }

    /// Demands the sort and the name of the next event, and returns its object. A bookmark that
    /// only tells how far the server is may come in between, if the watch allows bookmarks.
    pub async fn expect(&mut self, sort: &str, name: &str) -> Doc {
        let mut event = self.next().await;
        while self.allows_bookmarks && sort != "BOOKMARK" && event.is_progress() {
            event = self.next().await;
        }
        let got = (event.sort.as_str(), event.object.str_at("/metadata/name"));
        assert_eq!(got, (sort, name), "{}: {}", self.what, event.object);
        event.object
    }

    /// Demands that the next event is a bookmark, and returns its object.
    pub async fn bookmark(&mut self) -> Doc {
        self.expect("BOOKMARK", "").await
    }

    /// Demands that the next event is an error, and returns it.
    pub async fn error(&mut self) -> Refusal {
        let event = self.next().await;
        assert_eq!(event.sort, "ERROR", "{}: {}", self.what, event.object);
        Refusal::new(self.what.clone(), event.object)
    }

    /// Demands that the watch ends without a further event.
    pub async fn end(&mut self) {
        let event = self.try_next().await;
        assert_eq!(event, None, "{}: the watch should end", self.what);
    }

    /// The next event, or `None` when the watch ended.
    async fn try_next(&mut self) -> Option<Event> {
        let line = match tokio::time::timeout(PATIENCE, self.line()).await {
            Ok(line) => line?,
            Err(_) => panic!("{}: no event", self.what),
        };
        if self.is_protobuf {
            return Some(decode(&line));
        }
        let event = Doc::parse(&line).expect("an event is one line of JSON");
        Some(Event {
            sort: event.str_at("/type").to_owned(),
            object: event.at("/object").clone(),
        })
    }

    async fn line(&mut self) -> Option<BytesMut> {
        loop {
            if let Some(end) = self.end_of_event() {
                return Some(self.read.split_to(end));
            }
            let frame = self.body.frame().await?;
            let frame = frame.unwrap_or_else(|error| panic!("{}: {error}", self.what));
            if let Some(data) = frame.data_ref() {
                self.read.extend_from_slice(data);
            }
        }
    }

    /// The number of bytes of the next event, if all of them are there.
    fn end_of_event(&self) -> Option<usize> {
        if !self.is_protobuf {
            let end = self.read.iter().position(|&byte| byte == b'\n');
            return end.map(|end| end + 1);
        }
        let length = u32::from_be_bytes(*self.read.first_chunk()?);
        let end = 4 + length as usize;
        (self.read.len() >= end).then_some(end)
    }
}

/// An event of a frame, without the length in front.
fn decode(frame: &[u8]) -> Event {
    let (sort, object) = protobuf_event(&frame[4..]).expect("a frame is an event");
    let sort = String::from_utf8(sort.to_vec()).expect("a type is a text");
    let object = decode_protobuf(object).expect("an event has an object").doc;
    Event { sort, object }
}
