//! A list in protobuf.
//!
//! Its length stands in front of its items, so it is measured first, by writing it. A long list is
//! written a second time while it is sent, so that no list is ever in memory as bytes.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use windlass_atlas::{EncodeError, ObjectEncoder, Type};
use windlass_core::{Doc, doc};
use windlass_store::Entry;
use windlass_wire::DocList;

use super::{Body, ListBody};

/// Bytes of one piece, give or take an object.
const PIECE_BYTES: usize = 128 << 10;
/// A list of no more bytes is kept as it was written when it was measured.
const SHORT_BYTES_LIMIT: usize = PIECE_BYTES;
/// Bytes that are measured at a time, before other tasks get their turn.
const TURN_BYTES: usize = 256 << 10;

/// A list of objects that are to be sent in protobuf.
pub(crate) struct ProtobufItems {
    pub(crate) api_version: String,
    /// The kind of the list, such as `PodList`.
    pub(crate) kind: String,
    pub(crate) metadata: Doc,
    /// The type of the items.
    pub(crate) of: &'static Type,
    pub(crate) entries: Vec<Arc<Entry>>,
    /// The item that an entry is sent as.
    pub(crate) item: Box<dyn Fn(&Entry) -> Doc + Send>,
}

/// A long list in protobuf while it is sent.
pub(crate) struct ProtobufList {
    items: ProtobufItems,
    /// The bytes before the first item; taken by the first piece.
    start: Vec<u8>,
    written: usize,
    is_over: bool,
    encoder: ObjectEncoder,
}

impl ProtobufItems {
    /// The body of an answer: the list is measured, in turns with everybody else.
    pub(crate) async fn into_body(self) -> Result<Body, EncodeError> {
        let (mut encoder, mut scratch) = (ObjectEncoder::new(), Vec::new());
        let (mut all, mut turn) = (0, 0);
        for entry in &self.entries {
            let start = scratch.len();
            encoder.write_item(self.of, &(self.item)(entry), &mut scratch)?;
            let length = scratch.len() - start;
            (all, turn) = (all + length, turn + length);
            if all > SHORT_BYTES_LIMIT {
                scratch.clear();
            }
            if turn > TURN_BYTES {
                turn = 0;
                tokio::task::yield_now().await;
            }
        }
        let mut out = Vec::new();
        let kind = (self.api_version.as_str(), self.kind.as_str());
        encoder.write_list_start(kind, &self.metadata, all, &mut out)?;
        if all > SHORT_BYTES_LIMIT {
            return Ok(Body::list(ListBody::Protobuf(ProtobufList {
                items: self,
                start: out,
                written: 0,
                is_over: false,
                encoder,
            })));
        }
        out.extend_from_slice(&scratch);
        ObjectEncoder::write_list_end(&mut out);
        Ok(Body::whole(out))
    }
}

impl ProtobufList {
    /// The list as one document.
    pub(super) fn to_doc(&self) -> Doc {
        let ProtobufItems { entries, item, .. } = &self.items;
        let items: Vec<Doc> = entries.iter().map(|entry| item(entry)).collect();
        doc!({
            "kind": (self.items.kind.as_str()), "apiVersion": (self.items.api_version.as_str()),
            "metadata": (self.items.metadata.clone()), "items": items
        })
    }

    /// The list for a caller in this process.
    pub(super) fn into_docs(self) -> DocList {
        let ProtobufItems { entries, item, .. } = self.items;
        DocList {
            api_version: self.items.api_version,
            kind: self.items.kind,
            metadata: self.items.metadata,
            items: Box::new(entries.into_iter().map(move |entry| item(&entry))),
        }
    }

    /// The next bytes; nothing at the end.
    pub(super) fn next_piece(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut out = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        out.append(&mut self.start);
        while let Some(entry) = self.items.entries.get(self.written)
            && out.len() < PIECE_BYTES
        {
            let item = (self.items.item)(entry);
            self.encoder
                .write_item(self.items.of, &item, &mut out)
                .expect("invariant: the item was written before, when the list was measured");
            self.written += 1;
        }
        if self.written == self.items.entries.len() {
            ObjectEncoder::write_list_end(&mut out);
            self.is_over = true;
        }
        Some(out.into())
    }

    /// Returns true if all pieces were taken.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl fmt::Debug for ProtobufList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtobufList")
            .field("kind", &self.items.kind)
            .field("items", &self.items.entries.len())
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
