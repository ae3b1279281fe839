//! Sets of fields in the form in which objects carry them.
//!
//! A write changes a few of the hundreds of fields that a manager has. To read all of them into a
//! [`FieldSet`] and to write that again costs more than the rest of the write, so small changes
//! are made to the tree itself, at a cost that follows the change and not the set.

use std::cell::RefCell;
use std::collections::HashMap;

use windlass_core::{DEPTH_LIMIT, Doc, Kind, Memo, Object, Str};

use super::element::{PathElement, Scalar};
use super::encode::{SELF, encode_step, encode_steps, joined};
use super::set::FieldSet;

/// The most digits of a whole number in a path element that is compared by its text.
const DIGITS_LIMIT: usize = 18;

/// The number of memoized trees on a thread.
const KNOWN_LIMIT: usize = 4096;

thread_local! {
    /// Trees that are canonical: most writes leave those of other managers unchanged.
    static CANONICAL: RefCell<Memo<Doc, ()>> = RefCell::new(Memo::new(KNOWN_LIMIT));
}

/// Returns true if a tree is exactly as [`FieldSet::encode`] writes it, and its path elements are
/// equal exactly when their texts are. Returns false if that is hard to tell.
pub(super) fn is_canonical(tree: &Doc) -> bool {
    if CANONICAL.with_borrow(|known| known.get(tree)).is_some() {
        return true;
    }
    let root = tree.as_object();
    let is_canonical =
        root.is_some_and(|root| !root.contains_key(SELF) && are_canonical(root, DEPTH_LIMIT));
    if is_canonical {
        CANONICAL.with_borrow_mut(|known| known.put(tree.clone(), ()));
    }
    is_canonical
}

fn are_canonical(level: &Object, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    level.iter().all(|(key, node)| match node.as_object() {
        Some(node) if key == SELF => node.is_empty(),
        Some(node) => {
            is_canonical_step(key)
                && (node.is_empty() || has_children(node))
                && are_canonical(node, depth)
        }
        None => false,
    })
}

fn has_children(node: &Object) -> bool {
    node.len() > usize::from(node.contains_key(SELF))
}

fn is_canonical_step(key: &str) -> bool {
    match key.as_bytes() {
        [b'f', b':', ..] => true,
        [b'i', b':', digits @ ..] => is_number(digits),
        [b'v', b':', value @ ..] => scalar(value) == Some(b""),
        [b'k', b':', b'{', fields @ ..] => are_canonical_keys(fields),
        _ => false,
    }
}

/// Returns true if the rest of an object, behind its brace, has scalars under sorted keys.
fn are_canonical_keys(fields: &[u8]) -> bool {
    let (mut left, mut last) = (fields, &b""[..]);
    loop {
        let Some(behind) = text(left) else {
            return false;
        };
        let key = &left[..left.len() - behind.len()];
        // A quote ends each of them and is smaller than all that may stand in one but a blank and
        // an exclamation mark, which no field of a key has.
        if key <= last || key.contains(&b' ') || key.contains(&b'!') {
            return false;
        }
        last = key;
        let Some(behind) = behind.strip_prefix(b":").and_then(scalar) else {
            return false;
        };
        match behind {
            [b',', more @ ..] => left = more,
            end => return end == b"}",
        }
    }
}

/// The rest of the text behind a scalar.
fn scalar(json: &[u8]) -> Option<&[u8]> {
    let literal = |word: &[u8]| json.strip_prefix(word);
    match json.first()? {
        b'"' => text(json),
        b't' => literal(b"true"),
        b'f' => literal(b"false"),
        _ => {
            let is_digit = |byte: &u8| byte.is_ascii_digit();
            let end = json.iter().position(|byte| !is_digit(byte));
            let (digits, behind) = json.split_at(end.unwrap_or(json.len()));
            is_number(digits).then_some(behind)
        }
    }
}

fn is_number(digits: &[u8]) -> bool {
    let is_short = (1..=DIGITS_LIMIT).contains(&digits.len());
    is_short && digits.iter().all(u8::is_ascii_digit) && (digits[0] != b'0' || digits.len() == 1)
}

/// The rest of the text behind a string in which nothing is escaped, nor would be.
fn text(json: &[u8]) -> Option<&[u8]> {
    let inside = json.strip_prefix(b"\"")?;
    let end = inside.iter().position(|byte| *byte == b'"')?;
    let is_plain =
        |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'<' | b'>' | b'&');
    let (plain, behind) = inside.split_at(end);
    plain.iter().all(is_plain).then_some(&behind[1..])
}

/// Returns true if the path elements of a set equal those of a canonical tree exactly when their
/// texts do.
pub(super) fn has_plain_steps(set: &FieldSet) -> bool {
    set.members.iter().all(is_plain_step)
        && set
            .children
            .iter()
            .all(|(step, child)| is_plain_step(step) && has_plain_steps(child))
}

fn is_plain_step(step: &PathElement) -> bool {
    let is_plain =
        |value: &Scalar| matches!(value.0.kind(), Kind::Str(_) | Kind::Int(_) | Kind::Bool(_));
    match step {
        PathElement::Field(_) | PathElement::Index(_) => true,
        PathElement::Key(fields) => fields.iter().all(|(_, value)| is_plain(value)),
        PathElement::Value(value) => is_plain(value),
    }
}

/// A set by the texts of its steps, to be taken from many trees.
#[derive(Debug, Default)]
pub(super) struct Steps(HashMap<Str, (bool, Self)>);

impl Steps {
    /// The steps of a set; `None` unless they are plain.
    pub(super) fn of(set: &FieldSet) -> Option<Self> {
        has_plain_steps(set).then(|| Self::encode(set))
    }

    fn encode(set: &FieldSet) -> Self {
        let steps = set.steps().map(|(step, is_member, child)| {
            let below = child.map(Self::encode).unwrap_or_default();
            (encode_step(step), (is_member, below))
        });
        Self(steps.collect())
    }
}

/// A canonical tree without what is in a set, at the cost of the smaller of the two.
pub(super) fn without(tree: &Object, set: &Steps) -> Object {
    let lessened = |key: &Str, (is_member, child): &(bool, Steps), node: &Doc| {
        let node = node.as_object()?;
        let left = lessen(node, *is_member, child);
        (left.as_ref() != Some(node)).then(|| (key.clone(), left))
    };
    let edits = if tree.len() < set.0.len() {
        let nodes = tree.iter();
        let nodes = nodes.filter_map(|(key, node)| lessened(key, set.0.get(key)?, node));
        nodes.collect()
    } else {
        let steps = set.0.iter();
        let steps = steps.filter_map(|(key, step)| lessened(key, step, tree.get(key)?));
        steps.collect()
    };
    edit(tree, edits)
}

/// A node that may not be a member any more; `None` if nothing is left of it.
fn lessen(node: &Object, is_member: bool, child: &Steps) -> Option<Object> {
    if node.is_empty() {
        return (!is_member).then(|| node.clone());
    }
    let mut left = match child.0.is_empty() {
        true => node.clone(),
        false => without(node, child),
    };
    if is_member {
        left = left.without(SELF);
    }
    remaining(left)
}

/// A node that lost something; `None` if nothing is left of it.
fn remaining(node: Object) -> Option<Object> {
    match (has_children(&node), node.contains_key(SELF)) {
        (true, _) => Some(node),
        (false, true) => Some(Object::empty()),
        (false, false) => None,
    }
}

/// A canonical tree without what is in a set or below its members.
pub(super) fn without_below(tree: &Object, set: &FieldSet) -> Object {
    let edits = set.steps().filter_map(|(step, is_member, child)| {
        let key = encode_step(step);
        let node = tree.get(&key).and_then(Doc::as_object)?;
        let left = match child {
            _ if is_member => None,
            Some(child) if !node.is_empty() => remaining(without_below(node, child)),
            _ => return None,
        };
        (left.as_ref() != Some(node)).then_some((key, left))
    });
    edit(tree, edits.collect())
}

/// A canonical tree with what is in a set.
pub(super) fn with(tree: &Object, set: &FieldSet) -> Object {
    let edits = set.steps().filter_map(|(step, is_member, child)| {
        let key = encode_step(step);
        let grown = match tree.get(&key).and_then(Doc::as_object) {
            Some(node) => {
                let grown = grow(node, is_member, child);
                (grown != *node).then_some(grown)?
            }
            None => joined(child.map_or_else(Object::empty, encode_steps), is_member),
        };
        Some((key, Some(grown)))
    });
    edit(tree, edits.collect())
}

fn grow(node: &Object, is_member: bool, child: Option<&FieldSet>) -> Object {
    let is_member = is_member || node.is_empty() || node.contains_key(SELF);
    match child {
        Some(child) => joined(with(node, child), is_member),
        None => joined(node.clone(), is_member),
    }
}

/// An object with some fields replaced or removed, built once.
fn edit(object: &Object, edits: Vec<(Str, Option<Object>)>) -> Object {
    match &edits[..] {
        [] => object.clone(),
        [(key, Some(value))] => object.with(key, value.clone().into()),
        [(key, None)] => object.without(key),
        _ => {
            let mut edits: HashMap<Str, Option<Object>> = edits.into_iter().collect();
            let mut fields = Vec::with_capacity(object.len() + edits.len());
            for (key, value) in object.iter() {
                match edits.remove(key) {
                    None => fields.push((key.clone(), value.clone())),
                    Some(Some(value)) => fields.push((key.clone(), value.into())),
                    Some(None) => {}
                }
            }
            let new = edits.into_iter();
            fields.extend(new.filter_map(|(key, value)| Some((key, value?.into()))));
            Object::new(fields)
        }
    }
}

#[cfg(test)]
mod tests;
