//! Bodies: reading a request within limits, and answering.
//!
//! An answer keeps its documents until somebody wants bytes. Over a socket they are encoded at the
//! last moment; a caller in this process takes them as they are, with [`Body::into_content`].

mod intake;
mod list;
mod pack;
mod protobuf_list;

use std::any::Any;
use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use windlass_core::{Doc, Encoder};
use windlass_wire::Content;

pub(crate) use intake::{BodyIntake, BodyStats};
pub(crate) use list::{JsonList, ListBody};
pub(crate) use pack::{LEVEL, Packer};
pub(crate) use protobuf_list::ProtobufItems;

use crate::watch::DocWatch;

/// Room for the text of one object: most need no more.
const DOC_BYTES: usize = 8 << 10;

/// The body of an answer.
#[derive(Debug)]
pub struct Body(Inner);

#[derive(Debug)]
enum Inner {
    Bytes(Bytes),
    Doc(Doc),
    /// An object that is encoded already.
    Encoded(Doc, Bytes),
    List(Box<ListBody>),
    /// A list of which the first bytes are encoded already.
    Long(Option<Bytes>, Box<ListBody>),
    /// A long list, compressed on its way.
    Packed(Box<Packer>),
    Watch(Box<dyn WatchStream>),
}

/// Something that is kept as long as a watch lasts.
pub(crate) type Held = Box<dyn Any + Send>;

/// A watch as the body of an answer.
pub(crate) trait WatchStream: fmt::Debug + Send {
    /// Keeps something as long as the watch lasts.
    fn hold(&mut self, held: Held);

    /// The watch for a caller in this process, or a first piece if the form asked for is bytes.
    fn into_docs(self: Box<Self>) -> Result<DocWatch, Bytes>;

    /// The next bytes; nothing at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl Body {
    /// A body of bytes.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Bytes(bytes.into()))
    }

    /// A body of one object.
    pub(crate) fn doc(doc: Doc) -> Self {
        Self(Inner::Doc(doc))
    }

    /// A body of one object that is encoded already.
    pub(crate) fn encoded(doc: Doc, bytes: Bytes) -> Self {
        Self(Inner::Encoded(doc, bytes))
    }

    /// A body of a list.
    pub(crate) fn list(list: ListBody) -> Self {
        Self(Inner::List(Box::new(list)))
    }

    /// A body of events.
    pub(crate) fn watch(watch: impl WatchStream + 'static) -> Self {
        Self(Inner::Watch(Box::new(watch)))
    }

    /// The object that the body is, if it is one.
    pub(crate) fn as_doc(&self) -> Option<&Doc> {
        match &self.0 {
            Inner::Doc(doc) | Inner::Encoded(doc, _) => Some(doc),
            _ => None,
        }
    }

    /// The object or the list that the body is, for the audit log; `None` if it is neither.
    pub(crate) fn to_doc(&self) -> Option<Doc> {
        match &self.0 {
            Inner::Doc(doc) | Inner::Encoded(doc, _) => Some(doc.clone()),
            Inner::List(list) | Inner::Long(_, list) => Some(list.to_doc()),
            Inner::Bytes(bytes) => Doc::parse(bytes).ok().or_else(|| {
                let decoded = windlass_atlas::decode_protobuf(bytes).ok()?;
                Some(decoded.doc)
            }),
            Inner::Packed(_) | Inner::Watch(_) => None,
        }
    }

    /// Returns true if the body is a watch.
    pub(crate) fn is_watch(&self) -> bool {
        matches!(&self.0, Inner::Watch(_))
    }

    /// Keeps something as long as a watch lasts.
    pub(crate) fn hold(&mut self, ending: Held) {
        if let Inner::Watch(watch) = &mut self.0 {
            watch.hold(ending);
        }
    }

    /// What the body carries, without turning documents into bytes.
    #[must_use]
    pub fn into_content(self) -> Content {
        match self.0 {
            Inner::Bytes(bytes) => Content::Body(bytes.into()),
            Inner::Doc(doc) | Inner::Encoded(doc, _) => Content::Doc(doc),
            Inner::List(list) | Inner::Long(_, list) => Content::List(list.into_docs()),
            // Only a socket asks for this.
            Inner::Packed(_) => Content::Body(windlass_wire::Body::empty()),
            Inner::Watch(watch) => match watch.into_docs() {
                Ok(watch) => Content::Events(watch.into_events()),
                Err(bytes) => Content::Body(bytes.into()),
            },
        }
    }

    /// The body with its first bytes encoded: whole if it has no more than so many.
    pub(crate) fn settle(self, limit: usize) -> Settled {
        match self.0 {
            Inner::Bytes(bytes) | Inner::Encoded(_, bytes) => Settled::Whole(bytes),
            Inner::Doc(doc) => Settled::Whole(line(&doc)),
            Inner::List(mut list) => match first_bytes(&mut list, limit) {
                bytes if list.is_over() => Settled::Whole(bytes),
                first => Settled::Long(first, list),
            },
            Inner::Long(..) | Inner::Packed(_) | Inner::Watch(_) => Settled::Endless(self),
        }
    }

    /// A long list, compressed on its way.
    pub(crate) fn packed(packer: Packer) -> Self {
        Self(Inner::Packed(Box::new(packer)))
    }

    /// A long list of which the first bytes are encoded.
    pub(crate) fn long(first: Bytes, list: Box<ListBody>) -> Self {
        Self(Inner::Long(Some(first), list))
    }

    /// The next bytes of a body that has an end.
    fn next_piece(&mut self) -> Option<Bytes> {
        match &mut self.0 {
            Inner::Bytes(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            Inner::Doc(doc) => {
                let bytes = line(doc);
                self.0 = Inner::Bytes(Bytes::new());
                Some(bytes)
            }
            Inner::Encoded(_, bytes) => {
                let bytes = std::mem::take(bytes);
                self.0 = Inner::Bytes(Bytes::new());
                Some(bytes)
            }
            Inner::List(list) => list.next_piece(),
            Inner::Long(first, list) => first.take().or_else(|| list.next_piece()),
            Inner::Packed(packer) => packer.next_piece(),
            Inner::Watch(_) => None,
        }
    }
}

/// A body of which the first bytes are known.
pub(crate) enum Settled {
    /// All of it.
    Whole(Bytes),
    /// A list that is longer than these first bytes.
    Long(Bytes, Box<ListBody>),
    /// A body that comes as it comes.
    Endless(Body),
}

/// The pieces of a list up to so many bytes, or a little more.
fn first_bytes(list: &mut ListBody, limit: usize) -> Bytes {
    let Some(first) = list.next_piece() else {
        return Bytes::new();
    };
    if list.is_over() || first.len() > limit {
        return first;
    }
    let mut all = first.to_vec();
    while all.len() <= limit
        && let Some(piece) = list.next_piece()
    {
        all.extend_from_slice(&piece);
    }
    all.into()
}

thread_local! {
    /// Objects that are answered one after the other often have much in common.
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
}

/// A document with the line end that upstream's encoder writes.
fn line(doc: &Doc) -> Bytes {
    let mut bytes = Vec::with_capacity(DOC_BYTES);
    ENCODER.with_borrow_mut(|encoder| encoder.write(doc, &mut bytes));
    bytes.push(b'\n');
    bytes.into()
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Inner::Watch(watch) => ready!(watch.poll_piece(cx)),
            _ => self.next_piece(),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Bytes(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

/// The body of a request, whatever brings it.
pub(crate) type Arriving = UnsyncBoxBody<Bytes, String>;

/// A body as the server reads it.
pub(crate) fn arriving<B>(body: B) -> Arriving
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    body.map_err(|error| error.to_string()).boxed_unsync()
}
