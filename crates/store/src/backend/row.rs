//! How objects and events are written in the tables.
//!
//! Every row begins with a checksum of its key and the rest, because the engine verifies its pages
//! only when it repairs: a damaged object must never be served.

use windlass_core::Key;

use crate::Resource;

/// The name of an object across resources: `resource NUL key`.
///
/// The objects of one resource are neighbours in the order of their keys, since neither part
/// holds the separator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(String);

impl Id {
    const SEPARATOR: char = '\0';

    pub(super) fn new(resource: &Resource, key: &Key) -> Self {
        Self(format!("{resource}{}{key}", Self::SEPARATOR))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The resource and the key in an id.
    pub(super) fn split(id: &str) -> Option<(&str, Key)> {
        let (resource, key) = id.split_once(Self::SEPARATOR)?;
        let key = match key.split_once('/') {
            Some((namespace, name)) => Key::new(namespace, name),
            None => Key::cluster(key),
        };
        Some((resource, key))
    }
}

/// A row of the table of objects: checksum, revision, end of life, packed object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObjectRow<'a> {
    pub(super) revision: u64,
    /// Microseconds since 1970.
    pub(super) expiry: Option<i64>,
    pub(super) packed: &'a [u8],
}

/// A row of the log: checksum, kind, revision before, length of the id, id, packed object before.
///
/// What an event made of the object is not in its row: it is what the next event of the object
/// found, or else what the table of objects holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogRow<'a> {
    pub(super) is_delete: bool,
    pub(super) id: &'a str,
    /// Revision of the object before the event, and the object as it was.
    pub(super) previous: Option<(u64, &'a [u8])>,
}

const CHECKSUM_LEN: usize = 4;
const NO_EXPIRY: i64 = i64::MIN;

impl<'a> ObjectRow<'a> {
    /// Writes the row to `row` and returns the packed object in it, which `pack` appends.
    pub(super) fn encode(
        row: &'a mut Vec<u8>,
        id: &Id,
        revision: u64,
        expiry: Option<i64>,
        pack: impl FnOnce(&mut Vec<u8>),
    ) -> &'a [u8] {
        row.clear();
        row.extend([0; CHECKSUM_LEN]);
        row.extend(revision.to_le_bytes());
        row.extend(expiry.unwrap_or(NO_EXPIRY).to_le_bytes());
        let start = row.len();
        pack(row);
        seal(row, id.as_str().as_bytes());
        &row[start..]
    }

    /// `None` when the row is damaged.
    pub(super) fn decode(id: &str, row: &'a [u8]) -> Option<Self> {
        let mut rest = sound(row, id.as_bytes())?;
        let revision = u64::from_le_bytes(take(&mut rest)?);
        let expiry = i64::from_le_bytes(take(&mut rest)?);
        let expiry = (expiry != NO_EXPIRY).then_some(expiry);
        Some(Self {
            revision,
            expiry,
            packed: rest,
        })
    }
}

impl<'a> LogRow<'a> {
    /// Writes the row to `row`.
    pub(super) fn encode(&self, row: &mut Vec<u8>, revision: u64) {
        row.clear();
        row.extend([0; CHECKSUM_LEN]);
        row.push(u8::from(self.is_delete));
        row.extend(
            self.previous
                .map_or(0, |(revision, _)| revision)
                .to_le_bytes(),
        );
        let len = u32::try_from(self.id.len()).expect("invariant: ids are short");
        row.extend(len.to_le_bytes());
        row.extend(self.id.as_bytes());
        row.extend(self.previous.map_or(&[][..], |(_, packed)| packed));
        seal(row, &revision.to_le_bytes());
    }

    /// `None` when the row is damaged.
    pub(super) fn decode(revision: u64, row: &'a [u8]) -> Option<Self> {
        let mut rest = sound(row, &revision.to_le_bytes())?;
        let [is_delete] = take(&mut rest)?;
        let previous = u64::from_le_bytes(take(&mut rest)?);
        let len = usize::try_from(u32::from_le_bytes(take(&mut rest)?)).ok()?;
        let (id, packed) = rest.split_at_checked(len)?;
        let previous = (previous != 0).then_some((previous, packed));
        Some(Self {
            is_delete: is_delete != 0,
            id: str::from_utf8(id).ok()?,
            previous,
        })
    }
}

/// A row of the table of parts: checksum, part.
#[derive(Debug)]
pub(super) struct PartRow;

impl PartRow {
    /// Writes the row to `row`.
    pub(super) fn encode(row: &mut Vec<u8>, number: u64, part: &[u8]) {
        row.clear();
        row.extend([0; CHECKSUM_LEN]);
        row.extend(part);
        seal(row, &number.to_le_bytes());
    }

    /// The part; `None` when the row is damaged.
    pub(super) fn decode(number: u64, row: &[u8]) -> Option<&[u8]> {
        sound(row, &number.to_le_bytes())
    }
}

fn seal(row: &mut [u8], key: &[u8]) {
    let (head, rest) = row.split_at_mut(CHECKSUM_LEN);
    head.copy_from_slice(&checksum(key, rest).to_le_bytes());
}

/// What follows the checksum, if the checksum is right.
fn sound<'a>(row: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut rest = row;
    let found = u32::from_le_bytes(take(&mut rest)?);
    (found == checksum(key, rest)).then_some(rest)
}

fn checksum(key: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(rest);
    hasher.finalize()
}

/// The first bytes, which are taken away.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_as_written() {
        let id = Id::new(
            &Resource::new("apps", "deployments"),
            &Key::new("default", "web"),
        );
        let mut row = Vec::new();
        ObjectRow::encode(&mut row, &id, 7, Some(-1), |row| row.extend(b"{}"));
        let read = ObjectRow::decode(id.as_str(), &row).unwrap();
        assert_eq!(
            read,
            ObjectRow {
                revision: 7,
                expiry: Some(-1),
                packed: b"{}"
            }
        );
        for previous in [None, Some((6, &b"[]"[..]))] {
            let written = LogRow {
                is_delete: true,
                id: id.as_str(),
                previous,
            };
            written.encode(&mut row, 7);
            assert_eq!(LogRow::decode(7, &row), Some(written));
        }
    }

    #[test]
    fn an_id_splits_into_its_parts() {
        for key in [Key::new("default", "web"), Key::cluster("web")] {
            let resource = Resource::new("apps", "deployments");
            let id = Id::new(&resource, &key);
            assert_eq!(Id::split(id.as_str()), Some(("apps/deployments", key)));
        }
        assert_eq!(Id::split("pods"), None);
    }

    #[test]
    fn any_flipped_bit_or_missing_byte_is_noticed() {
        let id = Id::new(&Resource::new("", "pods"), &Key::new("default", "web"));
        let (mut object, mut log) = (Vec::new(), Vec::new());
        ObjectRow::encode(&mut object, &id, 7, None, |row| row.extend(b"{\"a\":1}"));
        LogRow {
            is_delete: false,
            id: id.as_str(),
            previous: Some((6, b"{}")),
        }
        .encode(&mut log, 7);
        for bit in 0..object.len() * 8 {
            let mut row = object.clone();
            row[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ObjectRow::decode(id.as_str(), &row), None);
            assert_eq!(ObjectRow::decode(id.as_str(), &object[..bit / 8]), None);
        }
        let mut part = Vec::new();
        PartRow::encode(&mut part, 7, b"x");
        assert_eq!(PartRow::decode(7, &part), Some(&b"x"[..]));
        assert_eq!(PartRow::decode(8, &part), None);
        for bit in 0..log.len() * 8 {
            let mut row = log.clone();
            row[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(LogRow::decode(7, &row), None);
            assert_eq!(LogRow::decode(7, &log[..bit / 8]), None);
        }
        assert_eq!(LogRow::decode(8, &log), None);
    }
}
