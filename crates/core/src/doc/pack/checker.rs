//! Looking through, without making anything.

use std::fmt;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::bytes::Reader;
use super::{DEPTH_LIMIT, UnpackError, end, tag};

/// Checks that bytes can be unpacked, in a fraction of the time of unpacking them.
///
/// An [`Unpacker`](super::Unpacker) that has the same parts reads everything this accepts.
#[derive(Default)]
pub struct Checker {
    parts: HashMap<u64, Sort, RandomState>,
}

/// The sort of a part.
#[derive(Clone, Copy)]
enum Sort {
    Value,
    /// The keys of objects, so many.
    Keys(usize),
}

impl Checker {
    /// A checker that knows no part yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks a part and takes it up. Those that it refers to must have come before; `found` is
    /// called with the number of each, as often as it does.
    pub fn part(
        &mut self,
        number: u64,
        bytes: &[u8],
        found: impl FnMut(u64),
    ) -> Result<(), UnpackError> {
        let sort = match bytes.split_first() {
            Some((&tag::KEYS, keys)) => {
                let mut reader = Reader(keys);
                let count = keys_count(&mut reader)?;
                end(&reader)?;
                Sort::Keys(count)
            }
            _ => {
                self.doc(bytes, found)?;
                Sort::Value
            }
        };
        self.parts.insert(number, sort);
        Ok(())
    }

    /// Checks a document and calls with the number of every part that it refers to, as often as it
    /// does.
    pub fn doc(&self, bytes: &[u8], found: impl FnMut(u64)) -> Result<(), UnpackError> {
        let mut checking = Checking {
            checker: self,
            reader: Reader(bytes),
            found,
        };
        checking.value(DEPTH_LIMIT)?;
        end(&checking.reader)
    }
}

/// A document that is looked through.
struct Checking<'a, F> {
    checker: &'a Checker,
    reader: Reader<'a>,
    /// Called with every part that is referred to.
    found: F,
}

impl<F: FnMut(u64)> Checking<'_, F> {
    fn value(&mut self, depth: usize) -> Result<(), UnpackError> {
        match self.reader.byte()? {
            tag::NULL | tag::FALSE | tag::TRUE => Ok(()),
            tag::INT => self.reader.zigzag().map(drop),
            tag::UINT => self.reader.varint().map(drop),
            tag::FLOAT => self.reader.float().map(drop),
            tag::STRING => self.reader.string().map(drop),
            tag::ARRAY => {
                let count = self.reader.count()?;
                self.values(count, depth)
            }
            tag::OBJECT => {
                let count = keys_count(&mut self.reader)?;
                self.values(count, depth)
            }
            tag::SHAPED => match self.part()? {
                (_, Some(Sort::Keys(count))) => self.values(count, depth),
                (number, _) => Err(UnpackError::Part(number)),
            },
            tag::PART => match self.part()? {
                (_, Some(Sort::Value)) => Ok(()),
                (number, _) => Err(UnpackError::Part(number)),
            },
            tag => Err(UnpackError::Tag(tag)),
        }
    }

    fn values(&mut self, count: usize, depth: usize) -> Result<(), UnpackError> {
        let depth = depth.checked_sub(1).ok_or(UnpackError::Depth)?;
        (0..count).try_for_each(|_| self.value(depth))
    }

    /// The number of a part that is referred to, and what it is.
    fn part(&mut self) -> Result<(u64, Option<Sort>), UnpackError> {
        let number = self.reader.varint()?;
        (self.found)(number);
        Ok((number, self.checker.parts.get(&number).copied()))
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker")
            .field("parts", &self.parts.len())
            .finish()
    }
}

/// Calls back with the number of every part that a document or a part refers to, as often as it
/// does.
pub fn part_numbers(bytes: &[u8], mut found: impl FnMut(u64)) -> Result<(), UnpackError> {
    if bytes.first() == Some(&tag::KEYS) {
        return Ok(());
    }
    let mut reader = Reader(bytes);
    // Values stand one after the other, whatever is inside of what.
    while !reader.0.is_empty() {
        match reader.byte()? {
            tag::NULL | tag::FALSE | tag::TRUE => {}
            tag::INT | tag::UINT | tag::ARRAY => drop(reader.varint()?),
            tag::FLOAT => drop(reader.take(size_of::<f64>())?),
            tag::STRING => skip_string(&mut reader)?,
            tag::OBJECT => {
                for _ in 0..reader.count()? {
                    skip_string(&mut reader)?;
                }
            }
            tag::SHAPED | tag::PART => found(reader.varint()?),
            tag => return Err(UnpackError::Tag(tag)),
        }
    }
    Ok(())
}

fn skip_string(reader: &mut Reader<'_>) -> Result<(), UnpackError> {
    let len = reader.count()?;
    reader.take(len).map(drop)
}

/// Reads over the keys of an object and returns how many they are.
fn keys_count(reader: &mut Reader<'_>) -> Result<usize, UnpackError> {
    let count = reader.count()?;
    let mut last = None;
    for _ in 0..count {
        let key = Some(reader.string()?);
        if last >= key {
            return Err(UnpackError::Keys);
        }
        last = key;
    }
    Ok(count)
}
