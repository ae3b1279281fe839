//! A commit as the log holds it: everything that the tables will need to know.
//!
//! `revision of the first write`, then for every write `id, parts that are new, row of the object`,
//! each behind its length. A deletion has no row.

use windlass_core::{Doc, Env};

use super::Write;
use super::log::Frame;
use super::parts::Parts;
use super::row::{Id, ObjectRow, take};
use crate::{EncryptionKeys, Entry, EventKind, Resource, StoreOptions, seal};

/// A write of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Logged<'a> {
    pub(super) revision: u64,
    pub(super) id: &'a str,
    /// Parts that this object is the first to use, with their numbers.
    pub(super) parts: Vec<(u64, &'a [u8])>,
    /// The row of the object; `None` if it was deleted.
    pub(super) row: Option<&'a [u8]>,
}

/// Encrypts the documents of some resources.
#[derive(Debug)]
pub(super) struct Sealer {
    pub(super) keys: EncryptionKeys,
    pub(super) resources: Vec<Resource>,
    pub(super) env: Env,
}

impl Sealer {
    /// Encrypts what is written, if the options say so.
    pub(super) fn new(options: &StoreOptions) -> Option<Self> {
        options.encryption.clone().map(|keys| Self {
            keys,
            resources: options.encrypted_resources.clone(),
            env: options.env.clone(),
        })
    }

    /// The encrypted document; `None` if its resource is not encrypted.
    fn seal(&self, resource: &Resource, id: &Id, entry: &Entry) -> Option<Doc> {
        let is_meant = self.resources.contains(resource);
        let context = || seal::context(id.as_str(), entry.revision);
        is_meant.then(|| self.keys.seal(&self.env, &context(), entry.doc()))
    }
}

/// Puts writes, whose revisions follow one another, into a frame.
pub(super) fn encode(
    writes: &[Write],
    parts: &mut Parts,
    row: &mut Vec<u8>,
    sealer: Option<&Sealer>,
) -> Frame {
    let mut frame = Frame::new();
    let out = frame.content_mut();
    let first = writes.first().map_or(0, |write| write.event.revision());
    out.extend(first.to_le_bytes());
    out.extend(length(writes.len()));
    for write in writes {
        let event = &write.event;
        let id = Id::new(&write.resource, event.key());
        put(out, id.as_str().as_bytes());
        if event.kind == EventKind::Delete {
            out.extend(length(0));
            put(out, &[]);
            continue;
        }
        let expiry = write.expiry.map(|expiry| expiry.wall_micros);
        let sealed = sealer.and_then(|sealer| sealer.seal(&write.resource, &id, &event.entry));
        let document = sealed.as_ref().unwrap_or_else(|| event.entry.doc());
        let pack = |row: &mut Vec<u8>| parts.pack(document, row);
        let packed = ObjectRow::encode(row, &id, event.revision(), expiry, pack);
        let fresh = parts.keep(packed);
        out.extend(length(fresh.len()));
        for part in fresh {
            out.extend(part.number.to_le_bytes());
            put(out, &part.bytes);
        }
        put(out, row);
    }
    frame
}

/// The revisions that a commit gives: the first, and how many.
pub(super) fn revisions(mut content: &[u8]) -> Option<(u64, u64)> {
    let first = u64::from_le_bytes(take(&mut content)?);
    let count = u32::from_le_bytes(take(&mut content)?);
    Some((first, count.into()))
}

/// The writes of a commit; `None` if it makes no sense.
pub(super) fn decode(content: &[u8]) -> Option<Vec<Logged<'_>>> {
    let (first, count) = revisions(content)?;
    let mut rest = content.get(12..)?;
    let mut writes = Vec::new();
    for revision in first..first.checked_add(count)? {
        let id = str::from_utf8(get(&mut rest)?).ok()?;
        let mut parts = Vec::new();
        for _ in 0..u32::from_le_bytes(take(&mut rest)?) {
            let number = u64::from_le_bytes(take(&mut rest)?);
            parts.push((number, get(&mut rest)?));
        }
        let row = get(&mut rest)?;
        writes.push(Logged {
            revision,
            id,
            parts,
            row: (!row.is_empty()).then_some(row),
        });
    }
    Some(writes)
}

fn length(len: usize) -> [u8; 4] {
    u32::try_from(len)
        .expect("invariant: objects and commits are bounded")
        .to_le_bytes()
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(length(bytes.len()));
    out.extend(bytes);
}

fn get<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(u32::from_le_bytes(take(bytes)?)).ok()?;
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_core::{Key, doc};

    use super::*;
    use crate::Event;

    fn write(kind: EventKind, revision: u64) -> Write {
        let object = doc!({ "metadata": { "name": "web" }, "spec": { "a": [1, 2, 3] } });
        let entry = Entry::stamped(&Key::new("default", "web"), &object, revision);
        let previous = (kind == EventKind::Delete).then(|| Arc::clone(&entry));
        Write {
            resource: Resource::new("", "pods"),
            event: Event::new(kind, entry, previous),
            expiry: None,
        }
    }

    #[test]
    fn commits_read_back_as_written_and_no_prefix_does() {
        let writes = [write(EventKind::Put, 7), write(EventKind::Delete, 8)];
        let frame = encode(&writes, &mut Parts::default(), &mut Vec::new(), None);
        let content = frame.content();
        assert_eq!(revisions(content), Some((7, 2)));
        let read = decode(content).unwrap();
        let id = Id::new(&writes[0].resource, writes[0].event.key());
        assert_eq!((read[0].revision, read[0].id), (7, id.as_str()));
        assert!(ObjectRow::decode(id.as_str(), read[0].row.unwrap()).is_some());
        assert_eq!((read[1].revision, read[1].row), (8, None));
        for len in 0..content.len() {
            assert_eq!(decode(&content[..len]), None, "{len} bytes");
        }
    }
}
