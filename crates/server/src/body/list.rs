//! A list as an answer: piece by piece, so that no list is ever in memory as text.

use std::sync::Arc;

use bytes::Bytes;
use windlass_core::{Doc, Encoder};
use windlass_store::Entry;
use windlass_wire::DocList;

use super::protobuf_list::ProtobufList;
use crate::registry::Resource;

/// Bytes of one piece, give or take an object.
const PIECE_BYTES: usize = 128 << 10;

/// A list that becomes bytes piece by piece.
#[derive(Debug)]
pub(crate) enum ListBody {
    Json(JsonList),
    Protobuf(ProtobufList),
}

impl ListBody {
    /// The list for a caller in this process.
    pub(crate) fn into_docs(self) -> DocList {
        match self {
            Self::Json(list) => list.into_docs(),
            Self::Protobuf(list) => list.into_docs(),
        }
    }

    /// The list as one document.
    pub(crate) fn to_doc(&self) -> Doc {
        match self {
            Self::Json(list) => list.to_doc(),
            Self::Protobuf(list) => list.to_doc(),
        }
    }

    /// The next bytes; nothing at the end.
    pub(crate) fn next_piece(&mut self) -> Option<Bytes> {
        match self {
            Self::Json(list) => list.next_piece(),
            Self::Protobuf(list) => list.next_piece(),
        }
    }

    /// Returns true if all pieces were taken.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Json(list) => list.is_over,
            Self::Protobuf(list) => list.is_over(),
        }
    }
}

/// A list of whole objects, which become bytes only when somebody wants bytes.
#[derive(Debug)]
pub(crate) struct JsonList {
    resource: Arc<Resource>,
    entries: Vec<Arc<Entry>>,
    metadata: Doc,
    /// How many entries were written.
    written: usize,
    /// Whether everything was.
    is_over: bool,
    /// Items have much in common.
    encoder: Encoder,
}

impl JsonList {
    pub(crate) fn new(resource: Arc<Resource>, entries: Vec<Arc<Entry>>, metadata: Doc) -> Self {
        Self {
            resource,
            entries,
            metadata,
            written: 0,
            is_over: false,
            encoder: Encoder::new(),
        }
    }

    /// The list for a caller in this process.
    fn into_docs(self) -> DocList {
        let Self {
            resource, entries, ..
        } = self;
        DocList {
            api_version: resource.gvk.api_version(),
            kind: resource.list_kind(),
            items: Box::new(
                entries
                    .into_iter()
                    .map(move |entry| resource.view(entry.doc())),
            ),
            metadata: self.metadata,
        }
    }

    /// The list as one document.
    fn to_doc(&self) -> Doc {
        let item = |entry: &Arc<Entry>| {
            let object = self.resource.view(entry.doc());
            match object.as_object() {
                // Items of built-in kinds do not carry their type.
                Some(fields) if !self.resource.is_custom => {
                    fields.without("kind").without("apiVersion").into()
                }
                _ => object,
            }
        };
        let items: Vec<Doc> = self.entries.iter().map(item).collect();
        windlass_core::doc!({
            "kind": (self.resource.list_kind()), "apiVersion": (self.resource.gvk.api_version()),
            "metadata": (self.metadata.clone()), "items": items
        })
    }

    /// The next bytes; nothing at the end.
    fn next_piece(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut out = Vec::with_capacity(self.capacity());
        if self.written == 0 {
            self.write_head(&mut out);
        }
        while self.written < self.entries.len() && out.len() < PIECE_BYTES {
            if self.written > 0 {
                out.push(b',');
            }
            self.write_item(&mut out);
            self.written += 1;
        }
        if self.written == self.entries.len() {
            out.extend_from_slice(b"]}\n");
            self.is_over = true;
        }
        Some(out.into())
    }

    /// Room for a piece: a full one unless the objects left are few.
    fn capacity(&self) -> usize {
        const OBJECT_BYTES: usize = 2048;
        let left = self.entries.len() - self.written;
        (256 + left.saturating_mul(OBJECT_BYTES)).min(PIECE_BYTES + PIECE_BYTES / 4)
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"kind\":");
        Doc::from(self.resource.list_kind()).write_json(out);
        out.extend_from_slice(b",\"apiVersion\":");
        Doc::from(self.resource.gvk.api_version()).write_json(out);
        out.extend_from_slice(b",\"metadata\":");
        self.metadata.write_json(out);
        out.extend_from_slice(b",\"items\":[");
    }

    /// Items of built-in kinds do not carry their type.
    fn write_item(&mut self, out: &mut Vec<u8>) {
        let object = self.resource.view(self.entries[self.written].doc());
        match object.as_object() {
            Some(fields) if !self.resource.is_custom => {
                let is_wanted = |key: &str| key != "kind" && key != "apiVersion";
                self.encoder.write_members(fields, is_wanted, out);
            }
            _ => self.encoder.write(&object, out),
        }
    }
}
