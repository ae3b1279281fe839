//! Rows found by their checksums in a file whose structure may be damaged.
//!
//! The engine keeps rows in leaf pages, which begin at multiples of 4 KiB: a head of four bytes
//! with the number of rows, the ends of keys (unless they have a fixed length) and of rows, then
//! keys and rows. Every row has a checksum of its own over its key and itself, so a row that is
//! found sound was written as it is. It may be an old one: pages are freed without being cleared.

use std::collections::{BTreeMap, HashMap};
use std::io;

use redb::StorageBackend;

use super::record::Logged;
use super::row::{LogRow, ObjectRow, PartRow};

/// Where pages begin.
const PAGE: u64 = 4096;
/// The first byte of a leaf page.
const LEAF: u8 = 1;
/// Longer than any page with rows: objects are below 2 MiB, and pages powers of two.
const PAGE_BYTES_LIMIT: usize = 16 << 20;
/// The key of a part or an event.
const NUMBER_BYTES: usize = 8;

/// An object as a row has it.
#[derive(Clone, Debug)]
pub(super) struct FoundObject {
    pub(super) revision: u64,
    pub(super) expiry: Option<i64>,
    pub(super) packed: Vec<u8>,
}

/// All sound rows, of objects the newest of each.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) objects: HashMap<String, FoundObject>,
    /// When objects were deleted last.
    pub(super) deleted: HashMap<String, u64>,
    /// When objects were written last, as far as events tell.
    pub(super) written: HashMap<String, u64>,
    /// Parts by their numbers; `None` if different ones were found, of which one is old.
    pub(super) parts: BTreeMap<u64, Option<Vec<u8>>>,
    /// The newest revision of all.
    pub(super) revision: u64,
}

impl Found {
    /// Looks through a file of tables.
    pub(super) fn scan(&mut self, file: &impl StorageBackend) -> io::Result<()> {
        let len = file.len()?;
        let mut head = [0; PAGE as usize];
        let mut at = 0;
        while at < len {
            let there = usize::try_from((len - at).min(PAGE)).map_err(io::Error::other)?;
            file.read(at, &mut head[..there])?;
            let mut sound = 0;
            if head[0] == LEAF {
                sound = self.page(file, at, len - at)?;
            }
            // What is inside of a sound row is content of a user, and may look like a page.
            at += (sound as u64).next_multiple_of(PAGE).max(PAGE);
        }
        Ok(())
    }

    /// Takes up the rows of a page, and returns where the last sound one ends.
    fn page(&mut self, file: &impl StorageBackend, at: u64, left: u64) -> io::Result<usize> {
        let limit =
            usize::try_from(left).map_or(PAGE_BYTES_LIMIT, |left| left.min(PAGE_BYTES_LIMIT));
        let mut bytes = vec![0; limit.min(PAGE as usize)];
        file.read(at, &mut bytes)?;
        // Pages are powers of two of the smallest; most are the smallest.
        loop {
            let (wanted, sound) = self.rows(&bytes);
            if wanted <= bytes.len() || bytes.len() == limit {
                return Ok(sound);
            }
            let have = bytes.len();
            bytes.resize(wanted.next_power_of_two().min(limit), 0);
            file.read(at + have as u64, &mut bytes[have..])?;
        }
    }

    /// Takes up the rows of a page, and returns how long it must be for all of them, and where the
    /// last sound one ends.
    fn rows(&mut self, page: &[u8]) -> (usize, usize) {
        let (mut wanted, mut sound) = (0, 0);
        for layout in [Layout::texts(page), Layout::numbers(page)]
            .into_iter()
            .flatten()
        {
            // Damaged ends may overlap; the rows of a page together are no longer than the page.
            let mut work = 2 * PAGE_BYTES_LIMIT;
            for index in 0..layout.count {
                let Some((key, row)) = layout.pair(page, index) else {
                    continue;
                };
                work = work.saturating_sub(row.len());
                if work == 0 {
                    break;
                }
                // Ends beyond what any page holds are damage.
                if row.end > page.len() {
                    wanted = wanted.max(row.end.min(PAGE_BYTES_LIMIT));
                    continue;
                }
                let end = row.end;
                if self.row(&layout, &page[key], &page[row]) {
                    sound = sound.max(end);
                }
            }
        }
        (wanted, sound)
    }

    /// Takes up a row; returns false if it is not sound.
    fn row(&mut self, layout: &Layout, key: &[u8], row: &[u8]) -> bool {
        if layout.key_bytes.is_none() {
            if let Ok(id) = str::from_utf8(key)
                && let Some(found) = ObjectRow::decode(id, row)
            {
                self.object(id, found.revision, found.expiry, found.packed);
                return true;
            }
            return false;
        }
        let Ok(number) = key.try_into().map(u64::from_le_bytes) else {
            return false;
        };
        // Both have the same checksum. Events begin with zero or one, which no part does.
        let is_event = row.get(4).is_some_and(|kind| *kind <= 1);
        if is_event && let Some(event) = LogRow::decode(number, row) {
            self.event(number, &event);
            return true;
        }
        if !is_event && let Some(part) = PartRow::decode(number, row) {
            self.part(number, part);
            return true;
        }
        false
    }

    /// Takes up a row that the index of the tables leads to, which is sure to be no old one, unless
    /// a newer one was found than the index knows of.
    pub(super) fn indexed_object(&mut self, id: &str, row: &[u8], newest: u64) {
        let Some(found) = ObjectRow::decode(id, row) else {
            return;
        };
        let is_newer = |known: &FoundObject| known.revision > newest;
        if !self.objects.get(id).is_some_and(is_newer) {
            self.objects.remove(id);
            self.object(id, found.revision, found.expiry, found.packed);
        }
    }

    /// Takes up a part that the index of the tables leads to.
    pub(super) fn indexed_part(&mut self, number: u64, row: &[u8]) {
        if let Some(part) = PartRow::decode(number, row) {
            self.parts.insert(number, Some(part.to_vec()));
        }
    }

    fn object(&mut self, id: &str, revision: u64, expiry: Option<i64>, packed: &[u8]) {
        self.revision = self.revision.max(revision);
        let known = self.objects.get(id);
        if known.is_some_and(|known| known.revision >= revision) {
            return;
        }
        let packed = packed.to_vec();
        let found = FoundObject {
            revision,
            expiry,
            packed,
        };
        self.objects.insert(id.to_owned(), found);
    }

    fn part(&mut self, number: u64, part: &[u8]) {
        let known = self.parts.entry(number);
        let known = known.or_insert_with(|| Some(part.to_vec()));
        if known.as_deref().is_some_and(|known| known != part) {
            *known = None;
        }
    }

    fn event(&mut self, revision: u64, event: &LogRow<'_>) {
        self.happened(revision, event.id, event.is_delete);
        // Better an older state than none.
        if let Some((before, packed)) = event.previous {
            self.object(event.id, before, None, packed);
        }
    }

    fn happened(&mut self, revision: u64, id: &str, is_delete: bool) {
        self.revision = self.revision.max(revision);
        let times = match is_delete {
            true => &mut self.deleted,
            false => &mut self.written,
        };
        let time = times.entry(id.to_owned()).or_default();
        *time = revision.max(*time);
    }

    /// Takes up a write of the log.
    pub(super) fn logged(&mut self, write: &Logged<'_>) {
        for (number, part) in &write.parts {
            self.part(*number, part);
        }
        self.happened(write.revision, write.id, write.row.is_none());
        if let Some(row) = write.row
            && let Some(found) = ObjectRow::decode(write.id, row)
        {
            self.object(write.id, found.revision, found.expiry, found.packed);
        }
    }
}

/// How rows lie in a page.
struct Layout {
    count: usize,
    /// The length of keys; `None` if it varies.
    key_bytes: Option<usize>,
    /// Where keys begin.
    keys: usize,
}

impl Layout {
    fn texts(page: &[u8]) -> Option<Self> {
        let count = Self::count(page)?;
        let keys = 4 + 8 * count;
        (keys <= page.len()).then_some(Self {
            count,
            key_bytes: None,
            keys,
        })
    }

    fn numbers(page: &[u8]) -> Option<Self> {
        let count = Self::count(page)?;
        let keys = 4 + 4 * count;
        (keys <= page.len()).then_some(Self {
            count,
            key_bytes: Some(NUMBER_BYTES),
            keys,
        })
    }

    fn count(page: &[u8]) -> Option<usize> {
        let count = u16::from_le_bytes(page.get(2..4)?.try_into().ok()?);
        Some(usize::from(count))
    }

    /// The places of a key and its row; the row may end beyond the page.
    fn pair(
        &self,
        page: &[u8],
        index: usize,
    ) -> Option<(std::ops::Range<usize>, std::ops::Range<usize>)> {
        let end = |slot: usize| {
            let at = 4 + 4 * slot;
            let end = u32::from_le_bytes(page.get(at..at + 4)?.try_into().ok()?);
            usize::try_from(end).ok()
        };
        let (key, first_row) = match self.key_bytes {
            Some(len) => {
                let start = self.keys + len * index;
                (start..start + len, 0)
            }
            None => {
                let start = if index == 0 {
                    self.keys
                } else {
                    end(index - 1)?
                };
                (start..end(index)?, self.count)
            }
        };
        let keys_end = match self.key_bytes {
            Some(len) => self.keys + len * self.count,
            None => end(self.count - 1)?,
        };
        let row_start = if index == 0 {
            keys_end
        } else {
            end(first_row + index - 1)?
        };
        let row = row_start..end(first_row + index)?;
        let is_sane = key.start >= self.keys && key.start <= key.end && key.end <= page.len();
        (is_sane && row.start <= row.end && row.start >= self.keys).then_some((key, row))
    }
}
