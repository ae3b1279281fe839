//! Reading.

use std::fmt;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::bytes::Reader;
use super::{DEPTH_LIMIT, Packer, Part, end, tag};
use crate::doc::node::Shape;
use crate::doc::short::ShortStr;
use crate::doc::{Array, Doc, Object, Repr, Str};

/// Values that most documents hold at a time while they are read.
const VALUES: usize = 64;

/// Bytes that are no packed document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpackError {
    /// They end too early.
    Short,
    /// They go on after the end.
    Long,
    /// A number is too large, or not finite.
    Number,
    /// A string is not UTF-8.
    Text,
    /// A value begins with something else than a tag.
    Tag(u8),
    /// A part is referred to that is not there.
    Part(u64),
    /// The keys of an object are not in order.
    Keys,
    /// Values nest too deeply.
    Depth,
}

impl fmt::Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("it ends too early"),
            Self::Long => f.write_str("it goes on after its end"),
            Self::Number => f.write_str("a number is out of bounds"),
            Self::Text => f.write_str("a string is not UTF-8"),
            Self::Tag(tag) => write!(f, "{tag} is not a sort of value"),
            Self::Part(number) => write!(f, "part {number} is missing"),
            Self::Keys => f.write_str("keys are not in order"),
            Self::Depth => f.write_str("it nests too deeply"),
        }
    }
}

impl std::error::Error for UnpackError {}

type Parts = HashMap<u64, Part, RandomState>;

/// Turns bytes into documents again.
#[derive(Default)]
pub struct Unpacker {
    parts: Parts,
}

impl Unpacker {
    /// An unpacker that knows no part yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes up a part. Those that it refers to must have come before.
    pub fn part(&mut self, number: u64, bytes: &[u8]) -> Result<(), UnpackError> {
        let part = match bytes.split_first() {
            Some((&tag::KEYS, keys)) => {
                let mut reader = Reader(keys);
                let shape = shape(&mut reader)?;
                end(&reader)?;
                Part::Keys(shape)
            }
            _ => Part::Value(self.doc(bytes)?),
        };
        self.parts.insert(number, part);
        Ok(())
    }

    /// Reads a document back.
    pub fn doc(&self, bytes: &[u8]) -> Result<Doc, UnpackError> {
        let mut reading = Reading {
            parts: &self.parts,
            reader: Reader(bytes),
            values: Vec::with_capacity(VALUES),
        };
        reading.value(DEPTH_LIMIT)?;
        end(&reading.reader)?;
        Ok(reading.values.pop().unwrap_or_default())
    }

    /// A packer that goes on with the parts that were read.
    #[must_use]
    pub fn packer(&self) -> Packer {
        Packer::with_parts(self.parts.clone())
    }
}

/// A document that is being read.
struct Reading<'a> {
    parts: &'a Parts,
    reader: Reader<'a>,
    /// The values of the arrays and objects that are not complete yet, innermost last: one
    /// allocation for all of them.
    values: Vec<Doc>,
}

impl Reading<'_> {
    /// Reads a value and puts it last. It is made where it stays: to hand it out and put it there
    /// would take as long as to read it.
    fn value(&mut self, depth: usize) -> Result<(), UnpackError> {
        let value = match self.reader.byte()? {
            tag::NULL => Doc::NULL,
            tag::FALSE => false.into(),
            tag::TRUE => true.into(),
            tag::INT => self.reader.zigzag()?.into(),
            tag::UINT => self.reader.varint()?.into(),
            tag::FLOAT => Doc(Repr::Float(self.reader.float()?)),
            tag::STRING => return self.string(),
            tag::ARRAY => {
                let count = self.reader.count()?;
                let start = self.values(count, depth)?;
                let array = Array::taking(&mut self.values[start..]);
                self.values.truncate(start);
                array.into()
            }
            tag::OBJECT => {
                let shape = shape(&mut self.reader)?;
                return self.object(&shape, depth);
            }
            tag::SHAPED => {
                let number = self.reader.varint()?;
                return match self.parts.get(&number) {
                    Some(Part::Keys(shape)) => self.object(shape, depth),
                    _ => Err(UnpackError::Part(number)),
                };
            }
            tag::PART => {
                let number = self.reader.varint()?;
                match self.parts.get(&number) {
                    Some(Part::Value(doc)) => doc.clone(),
                    _ => return Err(UnpackError::Part(number)),
                }
            }
            tag => return Err(UnpackError::Tag(tag)),
        };
        self.values.push(value);
        Ok(())
    }

    fn string(&mut self) -> Result<(), UnpackError> {
        let text = self.reader.string()?;
        match ShortStr::new(text) {
            Some(short) => self.values.push(Doc(Repr::Short(short))),
            None => self.values.push(Doc(Repr::Str(Str::new(text)))),
        }
        Ok(())
    }

    fn object(&mut self, shape: &Shape, depth: usize) -> Result<(), UnpackError> {
        let start = self.values(shape.keys().len(), depth)?;
        let object = Object::taking(shape, &mut self.values[start..], |position| position);
        self.values.truncate(start);
        self.values.push(object.into());
        Ok(())
    }

    /// Reads so many values and returns where they begin.
    fn values(&mut self, count: usize, depth: usize) -> Result<usize, UnpackError> {
        let depth = depth.checked_sub(1).ok_or(UnpackError::Depth)?;
        let start = self.values.len();
        for _ in 0..count {
            self.value(depth)?;
        }
        Ok(start)
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker")
            .field("parts", &self.parts.len())
            .finish()
    }
}

fn shape(reader: &mut Reader<'_>) -> Result<Shape, UnpackError> {
    let count = reader.count()?;
    let keys = (0..count).map(|_| reader.string().map(Str::new));
    let keys: Vec<Str> = keys.collect::<Result<_, _>>()?;
    if !keys.is_sorted_by(|a, b| a < b) {
        return Err(UnpackError::Keys);
    }
    Ok(Shape::new(&keys))
}
