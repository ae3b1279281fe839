//! Memoization across the documents that one parser reads.

use std::collections::VecDeque;
use std::fmt;

use hashbrown::HashTable;

use crate::doc::intern::{hash_text, mix};
use crate::doc::node::Shape;
use crate::doc::{Doc, Object, Str};

/// The number of memoized keys, after which all are dropped; far above what the kinds of one
/// cluster use.
const KEYS_LIMIT: usize = 8192;

/// The number of memoized key sequences, after which all are dropped.
const SHAPES_LIMIT: usize = 8192;

/// Objects with more keys than this are data, not structure; their sequences are not kept.
const SEQUENCE_KEYS_LIMIT: usize = 128;

/// Slots for strings met last. A power of two.
const STRINGS_SLOTS: usize = 2048;

/// Longer strings are rarely met again; remembering them would only pin memory.
const STRING_BYTES_LIMIT: usize = 256;

/// Shorter values are as quickly read as compared.
const VALUE_BYTES_MIN: usize = 32;

/// The longest value that is memoized as text.
const VALUE_BYTES_LIMIT: usize = 16 << 10;

/// Slots for the values met last. A power of two.
const VALUES_SLOTS: usize = 64;

/// The number of values in one slot: objects of several owners alternate, such as the pods of
/// ReplicaSets that are scaled at the same time.
const SLOT_VALUES_LIMIT: usize = 8;

/// The bytes of text in one slot.
const SLOT_BYTES_LIMIT: usize = 32 << 10;

/// Known keys, known key sequences, and the strings and values met last.
pub(super) struct Memo {
    /// Numbers of the known keys, found by the hash of the text.
    key_numbers: HashTable<u32>,
    /// The known keys, by number.
    keys: Vec<Str>,
    /// Numbers of the known key sequences, found by the hash of the numbers of their keys.
    sequence_numbers: HashTable<u32>,
    /// The known key sequences, by number.
    sequences: Vec<Sequence>,
    /// The last strings, each in the slot of its hash. Empty in a parser that does not memoize.
    strings: Vec<Option<Str>>,
    /// The last arrays and objects near the root, each in the slot of its key and depth. Empty in a
    /// parser that does not memoize.
    values: Vec<Slot>,
    /// The arrays and objects near the root that were passed over last.
    skipped: Slot,
}

/// The last values of one slot, the newest last. Bounded by [`SLOT_VALUES_LIMIT`] and
/// [`SLOT_BYTES_LIMIT`].
#[derive(Clone, Default)]
struct Slot {
    values: VecDeque<Value>,
    /// Bytes of their texts.
    bytes: usize,
}

impl Slot {
    /// The value at this depth that the text starts with.
    #[inline]
    fn find(&self, depth: usize, rest: &[u8]) -> Option<&Value> {
        let mut values = self.values.iter().rev();
        values.find(|value| value.depth == depth && rest.starts_with(&value.text))
    }

    /// Remembers a value, in place of the oldest ones.
    fn push(&mut self, depth: usize, text: &[u8], doc: &Doc) {
        let mut spare = Vec::new();
        while self.values.len() >= SLOT_VALUES_LIMIT || self.bytes + text.len() > SLOT_BYTES_LIMIT {
            let Some(oldest) = self.values.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
            spare = oldest.text;
        }
        spare.clear();
        spare.extend_from_slice(text);
        self.bytes += text.len();
        self.values.push_back(Value {
            depth,
            text: spare,
            doc: doc.clone(),
        });
    }
}

/// A value as it was written, and what it was read as.
#[derive(Clone)]
struct Value {
    /// The depth of the value. The depth limit would be reached elsewhere at another depth.
    depth: usize,
    text: Vec<u8>,
    doc: Doc,
}

/// One order of keys in which objects are written, and the canonical shape behind it.
struct Sequence {
    hash: u64,
    written: Box<[u32]>,
    shape: Shape,
    /// For each canonical position, where its value stands in the written order.
    order: Box<[u32]>,
    /// The keys that come twice; hardly ever any.
    duplicates: Box<[u32]>,
}

/// The slot for the value of a key at some depth.
fn slot(key: u32, depth: usize) -> usize {
    (key as usize * 2 + depth) % VALUES_SLOTS
}

impl Sequence {
    #[inline]
    fn object(&self, values: &mut [Doc]) -> Object {
        Object::taking(&self.shape, values, |position| {
            self.order[position] as usize
        })
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo")
            .field("keys", &self.keys.len())
            .field("sequences", &self.sequences.len())
            .finish_non_exhaustive()
    }
}

impl Memo {
    pub(super) fn remembering() -> Self {
        Self {
            strings: vec![None; STRINGS_SLOTS],
            values: vec![Slot::default(); VALUES_SLOTS],
            ..Self::forgetting()
        }
    }

    pub(super) fn forgetting() -> Self {
        Self {
            key_numbers: HashTable::new(),
            keys: Vec::new(),
            sequence_numbers: HashTable::new(),
            sequences: Vec::new(),
            strings: Vec::new(),
            values: Vec::new(),
            skipped: Slot::default(),
        }
    }

    /// Keeps the memory within its bounds. Called between documents only: within one, numbers
    /// of keys must stay valid.
    pub(super) fn tidy(&mut self) {
        if self.keys.len() > KEYS_LIMIT || self.sequences.len() > SHAPES_LIMIT {
            self.clear();
        }
    }

    /// Drops all keys and sequences, and keeps their allocations unless they are too large.
    pub(super) fn clear(&mut self) {
        if self.keys.len() > KEYS_LIMIT || self.sequences.len() > SHAPES_LIMIT {
            *self = Self {
                strings: std::mem::take(&mut self.strings),
                values: std::mem::take(&mut self.values),
                ..Self::forgetting()
            };
        }
        self.key_numbers.clear();
        self.keys.clear();
        self.sequence_numbers.clear();
        self.sequences.clear();
        self.values.fill(Slot::default());
        self.skipped = Slot::default();
    }

    /// The length of the next value's text, if the same text was skipped before.
    #[inline]
    pub(super) fn skipped(&self, depth: usize, rest: &[u8]) -> Option<usize> {
        self.skipped.find(depth, rest).map(|value| value.text.len())
    }

    /// Remembers an array or object that was passed over.
    #[inline]
    pub(super) fn remember_skipped(&mut self, depth: usize, text: &[u8]) {
        let is_remembering = !self.values.is_empty();
        if is_remembering && (VALUE_BYTES_MIN..=VALUE_BYTES_LIMIT).contains(&text.len()) {
            self.skipped.push(depth, text, &Doc::NULL);
        }
    }

    /// The value of the next text and the length of that text, if the same text was parsed under
    /// this key before. An array or object ends where its bracket closes, so nothing has to follow.
    #[inline]
    pub(super) fn repeated(&self, key: u32, depth: usize, rest: &[u8]) -> Option<(Doc, usize)> {
        let value = self.values.get(slot(key, depth))?.find(depth, rest)?;
        Some((value.doc.clone(), value.text.len()))
    }

    /// Remembers an array or object for the next document.
    #[inline]
    pub(super) fn remember_value(&mut self, key: u32, depth: usize, text: &[u8], doc: &Doc) {
        if !(VALUE_BYTES_MIN..=VALUE_BYTES_LIMIT).contains(&text.len()) {
            return;
        }
        if let Some(slot) = self.values.get_mut(slot(key, depth)) {
            slot.push(depth, text, doc);
        }
    }

    #[inline]
    pub(super) fn key(&self, number: u32) -> &Str {
        &self.keys[number as usize]
    }

    /// The number of a key, known or new.
    #[inline]
    pub(super) fn key_number(&mut self, text: &str) -> u32 {
        let hash = hash_text(text);
        let Self {
            key_numbers, keys, ..
        } = self;
        let known = key_numbers.find(hash, |number| {
            keys[*number as usize].as_bytes() == text.as_bytes()
        });
        if let Some(number) = known {
            return *number;
        }
        let number = u32::try_from(keys.len()).expect("invariant: fewer keys than bytes of text");
        keys.push(Str::with_hash(text, hash));
        key_numbers.insert_unique(hash, number, |number| hash_text(&keys[*number as usize]));
        number
    }

    /// A string that does not fit inline.
    pub(super) fn long_string(&mut self, text: &str) -> Str {
        let hash = hash_text(text);
        if self.strings.is_empty() || text.len() > STRING_BYTES_LIMIT {
            return Str::with_hash(text, hash);
        }
        let slot = &mut self.strings[hash as usize % STRINGS_SLOTS];
        match slot {
            Some(known) if known.as_bytes() == text.as_bytes() => known.clone(),
            _ => {
                let fresh = Str::with_hash(text, hash);
                *slot = Some(fresh.clone());
                fresh
            }
        }
    }

    /// The object with these keys and values, given in the order they were written; the values are
    /// of no use afterwards. Returns the numbers of the keys that came twice as well; their last
    /// value has won.
    #[inline]
    pub(super) fn object(&mut self, written: &[u32], values: &mut [Doc]) -> (Object, Vec<u32>) {
        if written.len() > SEQUENCE_KEYS_LIMIT {
            let sequence = self.sequence(0, written);
            return (sequence.object(values), sequence.duplicates.into_vec());
        }
        let hash = written
            .iter()
            .fold(0, |hash, number| mix(hash, u64::from(*number)));
        let Self {
            sequence_numbers,
            sequences,
            ..
        } = self;
        let known = sequence_numbers.find(hash, |number| {
            *sequences[*number as usize].written == *written
        });
        let number = match known {
            Some(number) => *number as usize,
            None => self.remember(hash, written),
        };
        let sequence = &self.sequences[number];
        (sequence.object(values), sequence.duplicates.to_vec())
    }

    #[cold]
    fn remember(&mut self, hash: u64, written: &[u32]) -> usize {
        let sequence = self.sequence(hash, written);
        let number = self.sequences.len();
        self.sequences.push(sequence);
        let Self {
            sequence_numbers,
            sequences,
            ..
        } = self;
        sequence_numbers.insert_unique(hash, number as u32, |number| {
            sequences[*number as usize].hash
        });
        number
    }

    /// Works out the canonical order behind a sequence of keys seen for the first time.
    fn sequence(&self, hash: u64, written: &[u32]) -> Sequence {
        let mut order: Vec<usize> = (0..written.len()).collect();
        order.sort_by(|a, b| self.key(written[*a]).cmp(self.key(written[*b])));
        let mut duplicates = Vec::new();
        // The sort is stable: of equal keys the last written stands last, and that one stays.
        let kept: Vec<usize> = order
            .iter()
            .enumerate()
            .filter(|(position, at)| {
                let next = order.get(position + 1);
                let is_repeated = next.is_some_and(|next| written[*next] == written[**at]);
                if is_repeated {
                    duplicates.push(written[**at]);
                }
                !is_repeated
            })
            .map(|(_, at)| *at)
            .collect();
        let keys: Vec<Str> = kept
            .iter()
            .map(|at| self.key(written[*at]).clone())
            .collect();
        Sequence {
            hash,
            written: written.into(),
            shape: Shape::new(&keys),
            order: kept.iter().map(|at| *at as u32).collect(),
            duplicates: duplicates.into(),
        }
    }
}
