//! Parts that objects share on the disk, each kept while something refers to it.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use redb::{ReadableTable, Table, WriteTransaction};
use windlass_core::{Doc, NewPart, Packer, part_numbers};

use super::record::Logged;
use super::row::{ObjectRow, PartRow};
use super::tables::{PARTS, PARTS_COPY};

/// Rows up to this length are kept twice.
const COPIED_BYTES: usize = 4096;

/// The tables of parts, open for writing.
pub(super) struct PartTables<'a> {
    parts: Table<'a, u64, &'static [u8]>,
    copies: Table<'a, u64, &'static [u8]>,
}

impl<'a> PartTables<'a> {
    pub(super) fn open(transaction: &'a WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            parts: transaction.open_table(PARTS)?,
            copies: transaction.open_table(PARTS_COPY)?,
        })
    }

    /// Adds the row of a part and returns the bytes that it takes.
    pub(super) fn insert(&mut self, number: u64, row: &[u8]) -> Result<u64, redb::Error> {
        self.parts.insert(number, row)?;
        if row.len() <= COPIED_BYTES {
            self.copies.insert(number, row)?;
        }
        Ok(row.len() as u64)
    }

    /// Removes a part and returns its row.
    fn remove(&mut self, number: u64) -> Result<Option<Vec<u8>>, redb::Error> {
        // Stores of older formats have no copy.
        self.copies.remove(number)?;
        let row = self.parts.remove(number)?;
        Ok(row.map(|row| row.value().to_vec()))
    }
}

/// How often parts are referred to.
pub(super) type Uses = HashMap<u64, u32, RandomState>;

/// How often every part is referred to, by objects, by the log and by other parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    packer: Packer,
    uses: Uses,
    /// Reused: parts of the object that was packed last.
    fresh: Vec<NewPart>,
}

impl Parts {
    /// Goes on with what was read back.
    pub(super) fn new(packer: Packer, uses: Uses) -> Self {
        Self {
            packer,
            uses,
            ..Self::default()
        }
    }

    /// Appends a packed object to a row. [`Self::keep`] has to follow, with the whole of what was
    /// appended.
    pub(super) fn pack(&mut self, doc: &Doc, row: &mut Vec<u8>) {
        self.packer.pack(doc, row, &mut self.fresh);
    }

    /// Counts what the object that was packed last uses, and returns the parts that are new with
    /// it.
    pub(super) fn keep(&mut self, packed: &[u8]) -> std::vec::Drain<'_, NewPart> {
        for part in &self.fresh {
            count(&mut self.uses, &part.bytes).expect("invariant: parts read back as packed");
        }
        count(&mut self.uses, packed).expect("invariant: objects read back as packed");
        self.fresh.drain(..)
    }

    /// An object is gone from objects and log. Parts that nothing uses any more go with it; returns
    /// the bytes of their rows.
    pub(super) fn release(
        &mut self,
        packed: &[u8],
        table: &mut PartTables<'_>,
    ) -> Result<u64, redb::Error> {
        let mut unused = Vec::new();
        let mut freed = 0;
        self.discount(packed, &mut unused)?;
        while let Some(number) = unused.pop() {
            self.packer.forget(number);
            let Some(row) = table.remove(number)? else {
                return Err(missing(number));
            };
            let part = PartRow::decode(number, &row).ok_or_else(|| missing(number))?;
            freed += row.len() as u64;
            self.discount(part, &mut unused)?;
        }
        Ok(freed)
    }

    /// Forgets what a commit brought that was not made.
    pub(super) fn undo(&mut self, writes: &[Logged<'_>]) -> Result<(), redb::Error> {
        let fresh: HashMap<u64, &[u8]> = writes
            .iter()
            .flat_map(|write| write.parts.iter().copied())
            .collect();
        let mut unused = Vec::new();
        for write in writes {
            let Some(row) = write.row else { continue };
            let damaged = || redb::Error::Corrupted(format!("object {:?}", write.id));
            let row = ObjectRow::decode(write.id, row).ok_or_else(damaged)?;
            self.discount(row.packed, &mut unused)?;
        }
        while let Some(number) = unused.pop() {
            self.packer.forget(number);
            let part = fresh.get(&number).ok_or_else(|| missing(number))?;
            self.discount(part, &mut unused)?;
        }
        Ok(())
    }

    /// Removes the parts that nothing uses, which is so after the log was lost.
    pub(super) fn sweep(&mut self, table: &mut PartTables<'_>) -> Result<(), redb::Error> {
        let mut numbers = Vec::new();
        for row in table.parts.iter()? {
            numbers.push(row?.0.value());
        }
        // Later parts use earlier ones, never the other way round.
        for number in numbers.into_iter().rev() {
            if self.uses.contains_key(&number) {
                continue;
            }
            self.packer.forget(number);
            if let Some(row) = table.remove(number)? {
                let part = PartRow::decode(number, &row).ok_or_else(|| missing(number))?;
                self.discount(part, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    fn discount(&mut self, packed: &[u8], unused: &mut Vec<u64>) -> Result<(), redb::Error> {
        let uses = &mut self.uses;
        let scanned = part_numbers(packed, |number| {
            if let Some(left) = uses.get_mut(&number) {
                *left -= 1;
                if *left == 0 {
                    uses.remove(&number);
                    unused.push(number);
                }
            }
        });
        scanned.map_err(|error| redb::Error::Corrupted(error.to_string()))
    }
}

/// Counts the parts that a packed object or part uses.
fn count(uses: &mut Uses, packed: &[u8]) -> Result<(), redb::Error> {
    part_numbers(packed, |number| *uses.entry(number).or_default() += 1)
        .map_err(|error| redb::Error::Corrupted(error.to_string()))
}

fn missing(number: u64) -> redb::Error {
    redb::Error::Corrupted(format!("part {number}"))
}
