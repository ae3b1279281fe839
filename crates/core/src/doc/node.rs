//! The four sorts of shared node: strings, arrays, objects, and the shapes of objects.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

use super::Doc;
use super::intern::{InternerUsage, Node, Sort, Table, Usage, Vacancy, hash_text, mix};

/// Starting points of the running hashes, so that `[]` and `{}` differ.
const ARRAY_START: u64 = 0x51;
const SHAPE_START: u64 = 0x52;
const OBJECT_START: u64 = 0x53;

/// An interned string. Equal strings are one allocation; equality is a pointer comparison.
#[derive(Clone, PartialEq, Eq)]
pub struct Str(Node<TextSort>);

/// An interned array of documents.
#[derive(Clone, PartialEq, Eq)]
pub struct Array(Node<ArraySort>);

/// An interned object. Its keys stand in canonical (byte) order.
///
/// The keys live in a shape shared by all objects with the same keys, so an object itself holds
/// only its values.
#[derive(Clone, PartialEq, Eq)]
pub struct Object(Node<ObjectSort>);

/// The sorted keys of an object, shared by all objects that have exactly these.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Shape(Node<ShapeSort>);

pub(super) struct TextSort;
pub(super) struct ArraySort;
pub(super) struct ObjectSort;
pub(super) struct ShapeSort;

static STRINGS: Table<TextSort> = Table::new();
static ARRAYS: Table<ArraySort> = Table::new();
static OBJECTS: Table<ObjectSort> = Table::new();
static SHAPES: Table<ShapeSort> = Table::new();

impl Sort for TextSort {
    type Extra = ();
    type Item = u8;
    fn table() -> &'static Table<Self> {
        &STRINGS
    }
}

impl Sort for ArraySort {
    type Extra = ();
    type Item = Doc;
    fn table() -> &'static Table<Self> {
        &ARRAYS
    }
}

impl Sort for ObjectSort {
    type Extra = Shape;
    type Item = Doc;
    fn table() -> &'static Table<Self> {
        &OBJECTS
    }
}

impl Sort for ShapeSort {
    type Extra = Prefixes;
    type Item = Str;
    fn extra_bytes(prefixes: &Prefixes) -> usize {
        size_of_val(&*prefixes.0)
    }
    fn table() -> &'static Table<Self> {
        &SHAPES
    }
}

/// The size of the process-wide interner at this moment.
#[must_use]
pub fn interner_usage() -> InternerUsage {
    InternerUsage::of::<TextSort, ArraySort, ObjectSort, ShapeSort>()
}

/// Reserves capacity in the process-wide interner for `times` as many nodes as came since `before`.
/// Call it when a part of many documents has been read: a table that grows step by step is rehashed
/// at each step. Capacity that is not used costs a byte for each node until it is given back.
pub fn expect_more_nodes(before: &InternerUsage, times: usize) {
    let now = interner_usage();
    let more = |before: &Usage, now: &Usage| now.nodes.saturating_sub(before.nodes) * times;
    TextSort::table().reserve(more(&before.strings, &now.strings));
    ArraySort::table().reserve(more(&before.arrays, &now.arrays));
    ObjectSort::table().reserve(more(&before.objects, &now.objects));
}

impl Str {
    /// The interned form of a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::with_hash(text, hash_text(text))
    }

    /// Interns a text whose hash the caller already has.
    #[inline]
    pub(super) fn with_hash(text: &str, hash: u64) -> Self {
        let bytes = text.as_bytes();
        let found = Node::find(hash, |(), found| found == bytes);
        Self(found.unwrap_or_else(|place| place.copy((), bytes)))
    }

    /// The text.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.0.items()).expect("invariant: a string node is made from a str")
    }

    /// The text as bytes, without the check that [`Self::as_str`] needs.
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.items()
    }

    #[inline]
    pub(super) fn hash_value(&self) -> u64 {
        self.0.hash()
    }

    #[inline]
    pub(super) fn address(&self) -> usize {
        self.0.address()
    }

    pub(super) fn node_bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Deref for Str {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // By content, not by identity, because of `Borrow<str>`.
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl Array {
    /// The interned array of these items.
    #[must_use]
    pub fn new(items: &[Doc]) -> Self {
        Self(Node::intern(
            Self::hash_of(items),
            |(), found| found == items,
            || ((), items.iter().cloned()),
        ))
    }

    /// The interned array of these items. A new array moves them out of the slice.
    pub(super) fn taking(items: &mut [Doc]) -> Self {
        let found = Node::find(Self::hash_of(items), |(), found| found == items);
        Self(found.unwrap_or_else(|place| place.fill((), items.iter_mut().map(std::mem::take))))
    }

    fn hash_of(items: &[Doc]) -> u64 {
        items
            .iter()
            .fold(ARRAY_START, |hash, item| mix(hash, item.hash_value()))
    }

    pub(super) fn hash_value(&self) -> u64 {
        self.0.hash()
    }

    /// Returns true if the array has another user at this moment.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    pub(super) fn address(&self) -> usize {
        self.0.address()
    }

    pub(super) fn node_bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Deref for Array {
    type Target = [Doc];
    fn deref(&self) -> &[Doc] {
        self.0.items()
    }
}

impl<'a> IntoIterator for &'a Array {
    type Item = &'a Doc;
    type IntoIter = std::slice::Iter<'a, Doc>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.items().iter()
    }
}

impl FromIterator<Doc> for Array {
    fn from_iter<T: IntoIterator<Item = Doc>>(items: T) -> Self {
        Self::new(&items.into_iter().collect::<Vec<_>>())
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// The first bytes of the keys of a shape, in their order. Most keys are found by them alone,
/// without following a pointer. Empty if the keys are few.
#[derive(PartialEq)]
pub(super) struct Prefixes(Box<[u64]>);

impl Prefixes {
    /// So many keys are quicker compared one by one.
    const FEW: usize = 4;

    fn of(keys: &[Str]) -> Self {
        let keys = if keys.len() > Self::FEW { keys } else { &[] };
        Self(
            keys.iter()
                .map(|key| Self::prefix(key.as_bytes()))
                .collect(),
        )
    }

    /// The first eight bytes, as a number that orders as they do.
    #[inline]
    fn prefix(key: &[u8]) -> u64 {
        if let Some(first) = key.first_chunk() {
            return u64::from_be_bytes(*first);
        }
        let padding = 8 * (8 - key.len() as u32);
        let short = key
            .iter()
            .fold(0_u64, |short, byte| (short << 8) | u64::from(*byte));
        short.checked_shl(padding).unwrap_or_default()
    }

    /// The range of the keys that begin like this one; `None` if there are no prefixes to tell.
    #[inline]
    fn range(&self, key: &str) -> Option<Range<usize>> {
        if self.0.is_empty() {
            return None;
        }
        let prefix = Self::prefix(key.as_bytes());
        let start = self.0.partition_point(|probe| *probe < prefix);
        let count = self.0[start..].partition_point(|probe| *probe == prefix);
        Some(start..start + count)
    }
}

impl Shape {
    /// The shape with these keys, which must be sorted and distinct.
    pub(super) fn new(keys: &[Str]) -> Self {
        debug_assert!(
            keys.is_sorted_by(|a, b| a < b),
            "keys are sorted and distinct"
        );
        let hash = keys
            .iter()
            .fold(SHAPE_START, |hash, key| mix(hash, key.hash_value()));
        Self(Node::intern(
            hash,
            |_, found| found == keys,
            || (Prefixes::of(keys), keys.iter().cloned()),
        ))
    }

    pub(super) fn keys(&self) -> &[Str] {
        self.0.items()
    }

    pub(super) fn hash_value(&self) -> u64 {
        self.0.hash()
    }

    /// The index of a key.
    #[inline]
    fn find(&self, key: &str) -> Option<usize> {
        let keys = self.keys();
        if keys.len() <= Prefixes::FEW {
            return keys.iter().position(|probe| probe == key);
        }
        self.position(key).ok()
    }

    /// The index of a key, or the index at which it would be inserted.
    fn position(&self, key: &str) -> Result<usize, usize> {
        let (keys, range) = (self.keys(), self.0.extra().range(key));
        let start = range.as_ref().map_or(0, |range| range.start);
        let near = range.map_or(keys, |range| &keys[range]);
        let found = near.binary_search_by(|probe| probe.as_bytes().cmp(key.as_bytes()));
        found.map(|at| start + at).map_err(|at| start + at)
    }

    pub(super) fn address(&self) -> usize {
        self.0.address()
    }

    pub(super) fn node_bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Object {
    /// The object without fields.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_sorted(&[], &[])
    }

    /// The interned object of these fields. Where a key comes twice the last one wins.
    #[must_use]
    pub fn new(mut fields: Vec<(Str, Doc)>) -> Self {
        // A stable sort keeps equal keys in their order, so the last of a run is the last given.
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut keys, mut values) = (
            Vec::with_capacity(fields.len()),
            Vec::with_capacity(fields.len()),
        );
        for (key, value) in fields {
            if keys.last() == Some(&key) {
                values.pop();
            } else {
                keys.push(key);
            }
            values.push(value);
        }
        Self::from_sorted(&keys, &values)
    }

    /// The object of keys that are sorted and distinct, and of their values.
    pub(crate) fn from_sorted(keys: &[Str], values: &[Doc]) -> Self {
        Self::with_shape(&Shape::new(keys), |position| &values[position])
    }

    /// Interns the object of a known shape whose values are found by their canonical position.
    fn with_shape<'a>(shape: &Shape, value: impl Fn(usize) -> &'a Doc) -> Self {
        let positions = 0..shape.keys().len();
        let found = Self::find(shape, &value);
        Self(found.unwrap_or_else(|place| {
            place.fill(shape.clone(), positions.map(|at| value(at).clone()))
        }))
    }

    /// The interned object of these values. A new object moves them out of the slice. `place` gives
    /// the index of the value for a canonical position.
    pub(super) fn taking(
        shape: &Shape,
        values: &mut [Doc],
        place: impl Fn(usize) -> usize,
    ) -> Self {
        let positions = 0..shape.keys().len();
        let found = Self::find(shape, |at| &values[place(at)]);
        Self(found.unwrap_or_else(|vacancy| {
            let take = |at| std::mem::take(&mut values[place(at)]);
            vacancy.fill(shape.clone(), positions.map(take))
        }))
    }

    fn find<'a>(
        shape: &Shape,
        value: impl Fn(usize) -> &'a Doc,
    ) -> Result<Node<ObjectSort>, Vacancy> {
        let start = mix(OBJECT_START, shape.0.hash());
        let hash =
            (0..shape.keys().len()).fold(start, |hash, at| mix(hash, value(at).hash_value()));
        Node::find(hash, |found, values| {
            found == shape
                && values
                    .iter()
                    .enumerate()
                    .all(|(at, found)| found == value(at))
        })
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Doc> {
        self.shape().find(key).map(|at| &self.0.items()[at])
    }

    /// Returns true if there is a field of this name.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.shape().find(key).is_some()
    }

    /// The keys, in canonical order.
    #[must_use]
    pub fn keys(&self) -> &[Str] {
        self.shape().keys()
    }

    /// The values, in the order of [`Self::keys`].
    #[must_use]
    pub fn values(&self) -> &[Doc] {
        self.0.items()
    }

    /// The fields, in canonical order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Doc)> + DoubleEndedIterator {
        self.keys().iter().zip(self.values())
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.items().len()
    }

    /// Returns true if there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.items().is_empty()
    }

    /// This object with one field set. Everything else is shared with it.
    #[must_use]
    pub fn with(&self, key: &str, value: Doc) -> Self {
        match self.shape().position(key) {
            Ok(at) => {
                let values = self.values();
                Self::with_shape(self.shape(), |i| if i == at { &value } else { &values[i] })
            }
            Err(at) => {
                let (mut keys, mut values) = (self.keys().to_vec(), self.values().to_vec());
                keys.insert(at, Str::new(key));
                values.insert(at, value);
                Self::from_sorted(&keys, &values)
            }
        }
    }

    /// This object without one field.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let Ok(at) = self.shape().position(key) else {
            return self.clone();
        };
        let (mut keys, mut values) = (self.keys().to_vec(), self.values().to_vec());
        keys.remove(at);
        values.remove(at);
        Self::from_sorted(&keys, &values)
    }

    pub(super) fn shape(&self) -> &Shape {
        self.0.extra()
    }

    pub(super) fn hash_value(&self) -> u64 {
        self.0.hash()
    }

    /// Returns true if the object has another user at this moment.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    pub(super) fn address(&self) -> usize {
        self.0.address()
    }

    pub(super) fn node_bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl<K: Into<Str>> FromIterator<(K, Doc)> for Object {
    fn from_iter<T: IntoIterator<Item = (K, Doc)>>(fields: T) -> Self {
        Self::new(
            fields
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
