//! A watch as a client reads it.

use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use windlass_core::Doc;

use crate::answer::Refusal;
use crate::http::PATIENCE;

/// A running watch.
#[derive(Debug)]
pub struct Watch {
    what: String,
    /// Whether the server may send a bookmark whenever it likes.
    allows_bookmarks: bool,
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
    pub(crate) fn new(what: String, body: Incoming) -> Self {
        Self {
            allows_bookmarks: what.contains("allowWatchBookmarks=true"),
            what,
            body,
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
        let event = Doc::parse(&line).expect("an event is one line of JSON");
        Some(Event {
            sort: event.str_at("/type").to_owned(),
            object: event.at("/object").clone(),
        })
    }

    async fn line(&mut self) -> Option<BytesMut> {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                return Some(self.read.split_to(end + 1));
            }
            let frame = self.body.frame().await?;
            let frame = frame.unwrap_or_else(|error| panic!("{}: {error}", self.what));
            if let Some(data) = frame.data_ref() {
                self.read.extend_from_slice(data);
            }
        }
    }
}
