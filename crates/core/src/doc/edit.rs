//! Reading and copy-on-write editing by JSON pointer (RFC 6901).

use std::borrow::Cow;

use super::{Array, DEPTH_LIMIT, Doc, Kind, Object};

/// An edit that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The pointer is neither empty nor starts with a slash.
    #[error("pointer {0:?} must be empty or start with \"/\"")]
    BadPointer(String),
    /// The edit would nest values deeper than any parser accepts.
    #[error("{0:?} is nested deeper than {DEPTH_LIMIT} levels")]
    TooDeep(String),
    /// The pointer leads through a value that has no inside.
    #[error("{at:?} is {found}, not an object or array")]
    NotAContainer {
        /// The part of the pointer that was walked.
        at: String,
        /// The JSON type of the value there.
        found: &'static str,
    },
    /// The pointer names an item past the end, or not a number.
    #[error("{index:?} is not an index into the array of {len} at {at:?}")]
    BadIndex {
        /// The part of the pointer that leads to the array.
        at: String,
        /// The step that is wrong.
        index: String,
        /// The length of the array.
        len: usize,
    },
}

/// The value that `at` answers for what is absent.
static ABSENT: Doc = Doc::NULL;

impl Doc {
    /// The value at a JSON pointer, such as `/metadata/labels/app`; `None` if it is absent.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        pointer
            .strip_prefix('/')?
            .split('/')
            .try_fold(self, |doc, token| match doc.kind() {
                Kind::Object(object) => object.get(&unescape(token)),
                Kind::Array(array) => array.get(parse_index(token)?),
                _ => None,
            })
    }

    /// The value at a JSON pointer; `null` if it is absent.
    #[must_use]
    pub fn at(&self, pointer: &str) -> &Self {
        self.pointer(pointer).unwrap_or(&ABSENT)
    }

    /// The text at a JSON pointer; empty if it is absent or not a string.
    #[must_use]
    pub fn str_at(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or("")
    }

    /// This document with the value at a pointer set. Missing objects on the way are made; `-`
    /// appends to an array. Everything off the way is shared.
    pub fn with(&self, pointer: &str, value: impl Into<Self>) -> Result<Self, EditError> {
        set(self, pointer, tokens(pointer)?, value.into())
    }

    /// This document without the value at a pointer. What is absent already stays absent.
    pub fn without(&self, pointer: &str) -> Result<Self, EditError> {
        Ok(match tokens(pointer)? {
            None => Self::NULL,
            Some(tokens) => remove(self, tokens),
        })
    }
}

/// The steps of a pointer without its leading slash; `None` for the root.
fn tokens(pointer: &str) -> Result<Option<&str>, EditError> {
    if pointer.len() > DEPTH_LIMIT && steps(pointer) > DEPTH_LIMIT {
        return Err(EditError::TooDeep(pointer.chars().take(64).collect()));
    }
    match pointer.strip_prefix('/') {
        Some(rest) => Ok(Some(rest)),
        None if pointer.is_empty() => Ok(None),
        None => Err(EditError::BadPointer(pointer.to_owned())),
    }
}

fn set(doc: &Doc, whole: &str, rest: Option<&str>, value: Doc) -> Result<Doc, EditError> {
    let Some(rest) = rest else {
        return Ok(value);
    };
    let (token, deeper) = split(rest);
    match doc.kind() {
        Kind::Null => Ok(Object::empty()
            .with(&unescape(token), set(&ABSENT, whole, deeper, value)?)
            .into()),
        Kind::Object(object) => {
            let key = unescape(token);
            let inner = object.get(&key).unwrap_or(&ABSENT);
            Ok(object.with(&key, set(inner, whole, deeper, value)?).into())
        }
        Kind::Array(array) => {
            let at = if token == "-" {
                Some(array.len())
            } else {
                parse_index(token)
            };
            let Some(at) = at.filter(|at| *at <= array.len()) else {
                return Err(EditError::BadIndex {
                    at: walked(whole, rest),
                    index: token.to_owned(),
                    len: array.len(),
                });
            };
            let mut items = array.to_vec();
            if at == items.len() {
                items.push(set(&ABSENT, whole, deeper, value)?);
            } else {
                items[at] = set(&items[at], whole, deeper, value)?;
            }
            Ok(items.into())
        }
        other => Err(EditError::NotAContainer {
            at: walked(whole, rest),
            found: other.name(),
        }),
    }
}

fn remove(doc: &Doc, rest: &str) -> Doc {
    let (token, deeper) = split(rest);
    match doc.kind() {
        Kind::Object(object) => {
            let key = unescape(token);
            match (object.get(&key), deeper) {
                (None, _) => doc.clone(),
                (Some(_), None) => object.without(&key).into(),
                (Some(inner), Some(deeper)) => object.with(&key, remove(inner, deeper)).into(),
            }
        }
        Kind::Array(array) => remove_item(array, token, deeper),
        _ => doc.clone(),
    }
}

fn remove_item(array: &Array, token: &str, deeper: Option<&str>) -> Doc {
    let Some(at) = parse_index(token).filter(|at| *at < array.len()) else {
        return array.clone().into();
    };
    let mut items = array.to_vec();
    match deeper {
        None => drop(items.remove(at)),
        Some(deeper) => items[at] = remove(&items[at], deeper),
    }
    items.into()
}

/// The number of levels that a pointer leads below the root.
fn steps(pointer: &str) -> usize {
    pointer.bytes().filter(|byte| *byte == b'/').count()
}

pub(crate) fn split(rest: &str) -> (&str, Option<&str>) {
    rest.split_once('/')
        .map_or((rest, None), |(token, deeper)| (token, Some(deeper)))
}

fn walked(whole: &str, rest: &str) -> String {
    whole[..whole.len() - rest.len()]
        .trim_end_matches('/')
        .to_owned()
}

/// An array index as RFC 6901 writes it: digits, no sign, no leading zero.
fn parse_index(token: &str) -> Option<usize> {
    let is_canonical = token == "0" || !token.starts_with('0');
    let is_digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    (is_canonical && is_digits)
        .then(|| token.parse().ok())
        .flatten()
}

pub(crate) fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}
