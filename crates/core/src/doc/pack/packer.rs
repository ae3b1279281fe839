//! Writing.

use std::fmt;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::bytes::{put_string, put_varint, put_zigzag};
use super::{Part, tag};
use crate::doc::node::Shape;
use crate::doc::{Array, Doc, Object, Repr};

/// The smallest part. Shorter values are quicker to write again than to look up.
const PART_BYTES_MIN: usize = 48;
/// The number of values that are known to have been written once, after which all are dropped. A
/// repeated value then becomes a part a little later.
const MET_LIMIT: usize = 1 << 16;

/// A part that has to be kept for as long as anything refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPart {
    /// The number by which it is referred to.
    pub number: u64,
    /// The argument of [`Unpacker::part`](super::Unpacker::part).
    pub bytes: Vec<u8>,
}

/// Packs documents into bytes. A value that is written a second time becomes a part.
///
/// It holds the parts alive that it has numbered, until [`Packer::forget`] names them.
pub struct Packer {
    /// The next number to give out.
    next: u64,
    values: HashMap<Doc, u64, RandomState>,
    shapes: HashMap<usize, u64, RandomState>,
    parts: HashMap<u64, Part, RandomState>,
    /// Hashes of what was written once.
    met: HashSet<u64, RandomState>,
}

impl Packer {
    /// A packer whose first part gets the number one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            next: 1,
            values: HashMap::default(),
            shapes: HashMap::default(),
            parts: HashMap::default(),
            met: HashSet::default(),
        }
    }

    /// Appends a document; parts that it needs and that were not there before go to `parts`, in
    /// the order of their numbers.
    pub fn pack(&mut self, doc: &Doc, out: &mut Vec<u8>, parts: &mut Vec<NewPart>) {
        match &doc.0 {
            Repr::Array(array) => self.array(array, out, parts),
            Repr::Object(object) => self.object(object, out, parts),
            _ => self.scalar(doc, out, parts),
        }
    }

    /// Forgets a part that nothing refers to any more.
    pub fn forget(&mut self, number: u64) {
        match self.parts.remove(&number) {
            Some(Part::Value(doc)) => drop(self.values.remove(&doc)),
            Some(Part::Keys(shape)) => drop(self.shapes.remove(&shape.address())),
            None => {}
        }
    }

    /// Takes up the parts that were read back.
    pub(super) fn with_parts(parts: HashMap<u64, Part, RandomState>) -> Self {
        let mut packer = Self::new();
        for (number, part) in &parts {
            packer.next = packer.next.max(number + 1);
            match part {
                Part::Value(doc) => drop(packer.values.insert(doc.clone(), *number)),
                Part::Keys(shape) => drop(packer.shapes.insert(shape.address(), *number)),
            }
        }
        packer.parts = parts;
        packer
    }

    fn scalar(&mut self, doc: &Doc, out: &mut Vec<u8>, parts: &mut Vec<NewPart>) {
        match &doc.0 {
            Repr::Null => out.push(tag::NULL),
            Repr::Bool(false) => out.push(tag::FALSE),
            Repr::Bool(true) => out.push(tag::TRUE),
            Repr::Int(value) => {
                out.push(tag::INT);
                put_zigzag(out, *value);
            }
            Repr::UInt(value) => {
                out.push(tag::UINT);
                put_varint(out, *value);
            }
            Repr::Float(value) => {
                out.push(tag::FLOAT);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Repr::Short(text) => {
                out.push(tag::STRING);
                put_string(out, text.as_bytes());
            }
            Repr::Str(text) => {
                out.push(tag::STRING);
                put_string(out, text.as_bytes());
            }
            Repr::Array(_) | Repr::Object(_) => self.pack(doc, out, parts),
        }
    }

    fn array(&mut self, array: &Array, out: &mut Vec<u8>, parts: &mut Vec<NewPart>) {
        out.push(tag::ARRAY);
        put_varint(out, array.len() as u64);
        for item in array {
            self.inner(item, out, parts);
        }
    }

    fn object(&mut self, object: &Object, out: &mut Vec<u8>, parts: &mut Vec<NewPart>) {
        self.keys(object.shape(), out, parts);
        for value in object.values() {
            self.inner(value, out, parts);
        }
    }

    /// A value inside of another: as a number if it is known, and as a new part if it was met
    /// before.
    fn inner(&mut self, doc: &Doc, out: &mut Vec<u8>, parts: &mut Vec<NewPart>) {
        let is_small = match &doc.0 {
            Repr::Array(array) => array.is_empty(),
            Repr::Object(object) => object.is_empty(),
            Repr::Str(text) => text.len() < PART_BYTES_MIN,
            _ => true,
        };
        if is_small {
            return self.pack(doc, out, parts);
        }
        if let Some(number) = self.values.get(doc) {
            return refer(tag::PART, *number, out);
        }
        let start = out.len();
        self.pack(doc, out, parts);
        if out.len() - start < PART_BYTES_MIN || self.is_first(doc.hash_value()) {
            return;
        }
        let number = self.keep(Part::Value(doc.clone()), out.split_off(start), parts);
        self.values.insert(doc.clone(), number);
        refer(tag::PART, number, out);
    }

    /// The keys of an object, in the same way.
    fn keys(&mut self, shape: &Shape, out: &mut Vec<u8>, parts: &mut Vec<NewPart>) {
        if let Some(number) = self.shapes.get(&shape.address()) {
            return refer(tag::SHAPED, *number, out);
        }
        if shape.keys().is_empty() || self.is_first(shape.hash_value()) {
            out.push(tag::OBJECT);
            return put_keys(shape, out);
        }
        let mut bytes = vec![tag::KEYS];
        put_keys(shape, &mut bytes);
        let number = self.keep(Part::Keys(shape.clone()), bytes, parts);
        self.shapes.insert(shape.address(), number);
        refer(tag::SHAPED, number, out);
    }

    fn keep(&mut self, part: Part, bytes: Vec<u8>, parts: &mut Vec<NewPart>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.parts.insert(number, part);
        parts.push(NewPart { number, bytes });
        number
    }

    /// Returns true the first time it sees a hash.
    fn is_first(&mut self, hash: u64) -> bool {
        if self.met.len() == MET_LIMIT {
            self.met.clear();
        }
        self.met.insert(hash)
    }
}

fn refer(tag: u8, number: u64, out: &mut Vec<u8>) {
    out.push(tag);
    put_varint(out, number);
}

fn put_keys(shape: &Shape, out: &mut Vec<u8>) {
    put_varint(out, shape.keys().len() as u64);
    for key in shape.keys() {
        put_string(out, key.as_bytes());
    }
}

impl Default for Packer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer")
            .field("parts", &self.parts.len())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
