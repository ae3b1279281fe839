//! A document under many edits, each at the cost of its way from the root.
//!
//! A [`Doc`] cannot change, and a copy of a container costs its length. The containers on the way
//! of an edit are therefore opened once, edited in place, and closed when all edits are done.

use std::collections::BTreeMap;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::chunks::Chunks;
use crate::doc::{split, unescape};
use crate::{Array, Doc, Kind, Object, Str};

/// A value that may be edited. A closed one is as it was.
#[derive(Debug)]
pub(super) enum Tree {
    /// A value that is not edited inside, and its height.
    Closed(Doc, usize),
    Object(Box<Open<BTreeMap<Str, Self>>>),
    Array(Box<Open<Chunks<Self>>>),
}

/// A container that is edited.
#[derive(Debug)]
pub(super) struct Open<T> {
    parts: T,
    heights: Heights,
}

/// The heights of the parts of a container: how many there are of each.
///
/// Edits must not nest values deeper than a document may, and measuring the value that an
/// operation moves would cost its size each time.
#[derive(Debug, Default)]
pub(super) struct Heights(Vec<usize>);

impl Heights {
    fn add(&mut self, height: usize) {
        if self.0.len() <= height {
            self.0.resize(height + 1, 0);
        }
        self.0[height] += 1;
    }

    fn remove(&mut self, height: usize) {
        if let Some(count) = self.0.get_mut(height) {
            *count = count.saturating_sub(1);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// The height of the container: one above its highest part.
    fn total(&self) -> usize {
        self.0.len().max(1)
    }
}

/// The heights of containers that were measured. Parts that many values share are measured once.
#[derive(Debug, Default)]
pub(super) struct Measured(HashMap<Doc, usize, RandomState>);

impl Measured {
    /// The levels of containers in a value: none for a scalar, one for an empty container.
    fn height(&mut self, doc: &Doc) -> usize {
        let parts = match doc.kind() {
            Kind::Array(array) => &array[..],
            Kind::Object(object) => object.values(),
            _ => return 0,
        };
        if let Some(height) = self.0.get(doc) {
            return *height;
        }
        let inner = parts.iter().map(|part| self.height(part)).max();
        let height = 1 + inner.unwrap_or(0);
        self.0.insert(doc.clone(), height);
        height
    }

    pub(super) fn closed(&mut self, doc: &Doc) -> Tree {
        Tree::Closed(doc.clone(), self.height(doc))
    }
}

impl Tree {
    pub(super) fn height(&self) -> usize {
        match self {
            Self::Closed(_, height) => *height,
            Self::Object(open) => open.heights.total(),
            Self::Array(open) => open.heights.total(),
        }
    }

    /// The word for this sort of value in error messages.
    pub(super) fn sort(&self) -> &'static str {
        match self {
            Self::Closed(doc, _) => doc.kind().name(),
            Self::Object(_) => "object",
            Self::Array(_) => "array",
        }
    }

    /// Opens a container; anything else stays as it is.
    pub(super) fn open(&mut self, measured: &mut Measured) {
        let Self::Closed(doc, _) = self else {
            return;
        };
        let mut heights = Heights::default();
        let mut part = |doc: &Doc| {
            let part = measured.closed(doc);
            heights.add(part.height());
            part
        };
        *self = match doc.kind() {
            Kind::Object(object) => {
                let parts = object.iter();
                let parts = parts
                    .map(|(key, value)| (key.clone(), part(value)))
                    .collect();
                Self::Object(Box::new(Open { parts, heights }))
            }
            Kind::Array(array) => {
                let parts = array.iter().map(&mut part).collect();
                Self::Array(Box::new(Open { parts, heights }))
            }
            _ => return,
        };
    }

    /// The document that came of it.
    pub(super) fn close(self) -> Doc {
        match self {
            Self::Closed(doc, _) => doc,
            Self::Object(open) => {
                let parts = open.parts.into_iter();
                let (keys, values): (Vec<Str>, Vec<Doc>) =
                    parts.map(|(key, part)| (key, part.close())).unzip();
                Object::from_sorted(&keys, &values).into()
            }
            Self::Array(open) => {
                let items = open.parts.into_iter().map(Self::close);
                items.collect::<Array>().into()
            }
        }
    }

    /// Closes it where it stands.
    pub(super) fn close_in_place(&mut self) -> Doc {
        let height = self.height();
        let doc = std::mem::replace(self, Self::Closed(Doc::NULL, 0)).close();
        *self = Self::Closed(doc.clone(), height);
        doc
    }

    /// Compares with a value, at the cost of that value at most.
    pub(super) fn is(&self, other: &Doc) -> bool {
        match (self, other.kind()) {
            (Self::Closed(doc, _), _) => doc == other,
            (Self::Object(open), Kind::Object(object)) => {
                let is_same = |((key, part), (wanted, value)): ((&Str, &Self), (&Str, &Doc))| {
                    key == wanted && part.is(value)
                };
                open.parts.len() == object.len()
                    && open.parts.iter().zip(object.iter()).all(is_same)
            }
            (Self::Array(open), Kind::Array(array)) => {
                let mut pairs = open.parts.iter().zip(array);
                open.parts.len() == array.len() && pairs.all(|(part, value)| part.is(value))
            }
            _ => false,
        }
    }

    /// Compares what stands at a pointer, which is `null` if nothing does.
    pub(super) fn is_at(&self, pointer: &str, other: &Doc) -> bool {
        let mut rest = pointer.strip_prefix('/');
        let mut tree = self;
        while let Some(path) = rest {
            let (token, deeper) = split(path);
            let part = match tree {
                Self::Closed(doc, _) => {
                    // The pointer from here on, with the slash in front.
                    return doc.at(&pointer[pointer.len() - path.len() - 1..]) == other;
                }
                Self::Object(open) => open.parts.get(&*unescape(token)),
                Self::Array(open) => list_index(token).and_then(|at| open.parts.get(at)),
            };
            let Some(part) = part else {
                return other.is_null();
            };
            (tree, rest) = (part, deeper);
        }
        tree.is(other)
    }

    /// Runs `work` on the value at a pointer, with all containers on the way open. `None` if
    /// nothing stands there.
    pub(super) fn edit<T>(
        &mut self,
        rest: Option<&str>,
        measured: &mut Measured,
        work: impl FnOnce(&mut Self, &mut Measured) -> T,
    ) -> Option<T> {
        let Some(rest) = rest else {
            return Some(work(self, measured));
        };
        let (token, deeper) = split(rest);
        self.open(measured);
        let (part, heights) = match self {
            Self::Closed(..) => return None,
            Self::Object(open) => (open.parts.get_mut(&*unescape(token))?, &mut open.heights),
            Self::Array(open) => (open.parts.get_mut(list_index(token)?)?, &mut open.heights),
        };
        let before = part.height();
        let done = part.edit(deeper, measured, work);
        let after = part.height();
        if before != after {
            heights.remove(before);
            heights.add(after);
        }
        done
    }

    /// Takes a part out of an open container.
    pub(super) fn take(&mut self, token: &str) -> Option<Self> {
        let (part, heights) = match self {
            Self::Closed(..) => return None,
            Self::Object(open) => (open.parts.remove(&*unescape(token))?, &mut open.heights),
            Self::Array(open) => (open.parts.remove(list_index(token)?)?, &mut open.heights),
        };
        heights.remove(part.height());
        Some(part)
    }
}

impl Open<BTreeMap<Str, Tree>> {
    /// Sets a field.
    pub(super) fn set(&mut self, key: &str, part: Tree) {
        self.heights.add(part.height());
        if let Some(old) = self.parts.insert(Str::new(key), part) {
            self.heights.remove(old.height());
        }
    }
}

impl Open<Chunks<Tree>> {
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Inserts in front of the item at the index, or behind the last one.
    pub(super) fn insert(&mut self, index: usize, part: Tree) {
        self.heights.add(part.height());
        self.parts.insert(index, part);
    }
}

/// The index in a token. Upstream takes one with leading zeros, which a JSON pointer may not have.
pub(super) fn list_index(token: &str) -> Option<usize> {
    let is_digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| token.parse().ok()).flatten()
}
