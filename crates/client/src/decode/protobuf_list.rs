//! The items of a list in protobuf, while the list is still arriving.

use bytes::{Buf, Bytes, BytesMut};
use windlass_atlas::{PROTOBUF_PREFIX, ProtobufDecoder, ProtobufError, protobuf_list_metadata};
use windlass_core::{Doc, Gvk, Prune};

use super::{DecodeError, ListHead};

/// The longest tag and length of a field.
const FIELD_HEAD_BYTES: usize = 20;
/// The tags of the kind and of the object in the envelope, and of the metadata and the items in a
/// list: field 1 or 2, with a length.
const FIRST: u64 = 0x0a;
const SECOND: u64 = 0x12;

/// Cuts the items out of the body of a list in protobuf and decodes each by itself. An item that
/// cannot be read completely ends the list: as JSON it can.
#[derive(Debug)]
pub(crate) struct ProtobufListDecoder {
    decoder: ProtobufDecoder,
    /// The bytes that were not looked at yet: less than an item, and a chunk.
    read: BytesMut,
    state: State,
    head: ListHead,
    /// The kind of the items, once the list has told its own.
    item: Option<Gvk>,
    bytes_limit: usize,
    /// Bytes pushed so far, for messages.
    bytes: u64,
}

/// The part of the body that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Prefix,
    Envelope,
    /// In the list, of which so many bytes are left.
    List(u64),
    /// After the list nothing matters.
    End,
}

/// The tag and the length of a field, and the length of both.
struct FieldHead {
    tag: u64,
    length: u64,
    bytes: usize,
}

impl ProtobufListDecoder {
    /// A decoder that skips these paths in each item, for items of at most so many bytes.
    pub(crate) fn with_limit(prune: Prune, bytes_limit: usize) -> Self {
        Self {
            decoder: ProtobufDecoder::new(prune).strict(),
            read: BytesMut::new(),
            state: State::Prefix,
            head: ListHead::default(),
            item: None,
            bytes_limit,
            bytes: 0,
        }
    }

    /// Takes the next bytes of the body.
    pub(crate) fn push(&mut self, chunk: &Bytes) {
        self.bytes += chunk.len() as u64;
        if self.state != State::End {
            self.read.extend_from_slice(chunk);
        }
    }

    /// The metadata of the list; complete when the body is.
    pub(crate) fn head(&self) -> &ListHead {
        &self.head
    }

    /// The next item among the bytes pushed so far; `None` when more bytes are needed.
    pub(crate) fn next_item(&mut self) -> Result<Option<Doc>, DecodeError> {
        loop {
            match self.state {
                State::Prefix => {
                    let Some(prefix) = self.read.first_chunk::<4>() else {
                        return Ok(None);
                    };
                    if *prefix != PROTOBUF_PREFIX {
                        return Err(DecodeError::Protobuf(ProtobufError::NotProtobuf));
                    }
                    self.read.advance(4);
                    self.state = State::Envelope;
                }
                State::Envelope => {
                    if !self.envelope()? {
                        return Ok(None);
                    }
                }
                State::List(0) => {
                    self.state = State::End;
                    self.read.clear();
                }
                State::List(left) => match self.list(left)? {
                    Progress::Item(item) => return Ok(Some(item)),
                    Progress::Field => {}
                    Progress::Starved => return Ok(None),
                },
                State::End => return Ok(None),
            }
        }
    }

    /// Checks that the body was complete.
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        match self.state {
            State::End => Ok(()),
            _ => Err(DecodeError::Cut { bytes: self.bytes }),
        }
    }

    /// Takes a field of the envelope; false if it has not arrived.
    fn envelope(&mut self) -> Result<bool, DecodeError> {
        let Some(head) = self.field_head()? else {
            return Ok(false);
        };
        if head.tag == SECOND {
            self.read.advance(head.bytes);
            self.state = State::List(head.length);
            return Ok(true);
        }
        let Some(field) = self.field(&head)? else {
            return Ok(false);
        };
        if head.tag == FIRST {
            let (api_version, kind) =
                windlass_atlas::protobuf_kind(&field).map_err(DecodeError::Protobuf)?;
            let item = kind.strip_suffix("List").unwrap_or(&kind);
            self.item = Gvk::parse(&api_version, item).ok();
            (self.head.api_version, self.head.kind) = (api_version, kind);
        }
        Ok(true)
    }

    /// Takes a field of the list.
    fn list(&mut self, left: u64) -> Result<Progress, DecodeError> {
        let Some(head) = self.field_head()? else {
            return Ok(Progress::Starved);
        };
        let Some(field) = self.field(&head)? else {
            return Ok(Progress::Starved);
        };
        let taken = head.bytes as u64 + head.length;
        let left = left.checked_sub(taken);
        self.state = State::List(left.ok_or(DecodeError::Cut { bytes: self.bytes })?);
        match (head.tag, &self.item) {
            (FIRST, _) => {
                let metadata = protobuf_list_metadata(&field);
                self.head.metadata = metadata.map_err(DecodeError::Protobuf)?;
                Ok(Progress::Field)
            }
            (SECOND, Some(gvk)) => {
                let item = self.decoder.decode_item(gvk, &field);
                item.map(Progress::Item).map_err(DecodeError::Protobuf)
            }
            (SECOND, None) => Err(DecodeError::Protobuf(ProtobufError::MissingKind)),
            _ => Ok(Progress::Field),
        }
    }

    /// The head of the next field, if it has arrived.
    fn field_head(&self) -> Result<Option<FieldHead>, DecodeError> {
        let (Some((tag, first)), bytes) = (varint(&self.read), &self.read) else {
            return self.starved();
        };
        let Some((length, second)) = varint(&bytes[first..]) else {
            return self.starved();
        };
        Ok(Some(FieldHead {
            tag,
            length,
            bytes: first + second,
        }))
    }

    /// No more bytes, or bytes that are not a field.
    fn starved(&self) -> Result<Option<FieldHead>, DecodeError> {
        match self.read.len() < FIELD_HEAD_BYTES {
            true => Ok(None),
            false => Err(DecodeError::Unexpected {
                expected: "a field of protobuf",
                at: self.bytes - self.read.len() as u64,
            }),
        }
    }

    /// Takes a field, if it has arrived.
    fn field(&mut self, head: &FieldHead) -> Result<Option<Bytes>, DecodeError> {
        let limit = self.bytes_limit;
        let length = usize::try_from(head.length).ok();
        let length = length.filter(|length| *length <= limit);
        let length = length.ok_or(DecodeError::TooLong { limit })?;
        if self.read.len() < head.bytes + length {
            return Ok(None);
        }
        self.read.advance(head.bytes);
        Ok(Some(self.read.split_to(length).freeze()))
    }
}

/// The result of reading a field of the list.
enum Progress {
    Item(Doc),
    Field,
    Starved,
}

/// A number and its length, if all of it is there.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use windlass_atlas::{Atlas, ObjectEncoder};
    use windlass_core::doc;

    use super::*;

    fn body(items: &[Doc]) -> Vec<u8> {
        let of = Atlas::kind(&Gvk::constant("", "v1", "ConfigMap")).expect("a built-in kind");
        let (mut encoder, mut written, mut body) = (ObjectEncoder::new(), Vec::new(), Vec::new());
        for item in items {
            encoder.write_item(of, item, &mut written).expect("an item");
        }
        let metadata = doc!({ "resourceVersion": "7", "continue": "next" });
        encoder
            .write_list_start(("v1", "ConfigMapList"), &metadata, written.len(), &mut body)
            .expect("a list");
        body.extend_from_slice(&written);
        ObjectEncoder::write_list_end(&mut body);
        body
    }

    fn map(name: &str) -> Doc {
        doc!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name }, "data": { "key": (name.repeat(50)) }
        })
    }

    fn decode(body: &[u8], cut: usize, limit: usize) -> Result<(Vec<Doc>, ListHead), DecodeError> {
        let mut decoder = ProtobufListDecoder::with_limit(Prune::nothing(), limit);
        let mut items = Vec::new();
        for chunk in body.chunks(cut) {
            decoder.push(&Bytes::copy_from_slice(chunk));
            while let Some(item) = decoder.next_item()? {
                items.push(item);
            }
        }
        decoder.finish()?;
        Ok((items, decoder.head().clone()))
    }

    #[test]
    fn items_are_the_same_however_the_body_is_cut() {
        let maps = [map("a"), map("b"), map("c")];
        let body = body(&maps);
        for cut in [1, 2, 3, 7, 64, body.len()] {
            let (items, head) = decode(&body, cut, 1 << 20).expect("a list");
            assert_eq!(items, maps, "{cut}");
            assert_eq!(head.kind, "ConfigMapList");
            assert_eq!(head.resource_version(), "7");
            assert_eq!(head.continue_token(), "next");
        }
        let (items, _) = decode(&super::tests::body(&[]), 5, 1 << 20).expect("an empty list");
        assert!(items.is_empty());
    }

    #[test]
    fn bodies_that_are_no_list_are_errors() {
        let body = body(&[map("a")]);
        let cut = decode(&body[..body.len() - 10], 64, 1 << 20);
        assert!(matches!(cut, Err(DecodeError::Cut { .. })), "{cut:?}");
        let long = decode(&body, 64, 32);
        assert!(matches!(long, Err(DecodeError::TooLong { .. })), "{long:?}");
        let other = decode(b"{\"kind\":\"List\"}", 64, 1 << 20);
        assert!(matches!(other, Err(DecodeError::Protobuf(_))), "{other:?}");
    }
}
