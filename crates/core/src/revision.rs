//! Resource versions and their order.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The resource version of an object or list: a positive decimal number of any length.
///
/// Clients may compare the resource versions of one resource by number since Kubernetes 1.35, and
/// must refuse one that is not well formed: no sign, no leading zero, hence neither the empty text
/// nor `0`, which only requests use (see [`AtRevision`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(Digits);

/// The number. Every server in use counts in 64 bits, and so the longer form is a fallback; it
/// holds only what does not fit the first, which makes the derived order of variants right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Digits {
    Word(NonZeroU64),
    Long(LongDigits),
}

/// More digits than a word holds; the longer number is the greater.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LongDigits(Box<str>);

/// A text is not a resource version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resource version is not well formed: {text}")]
pub struct RevisionError {
    /// The text that was to be read.
    text: String,
}

/// The state that the `resourceVersion` of a request asks for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum AtRevision {
    /// Absent or empty: the most recent state.
    #[default]
    Latest,
    /// `0`: any state, however old.
    Any,
    /// A number: this state, or for some requests a state not older than it.
    Given(Revision),
}

impl Revision {
    /// The revision as a machine word, unless it is longer than one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Digits::Word(word) => Some(word.get()),
            Digits::Long(_) => None,
        }
    }
}

impl From<NonZeroU64> for Revision {
    fn from(number: NonZeroU64) -> Self {
        Self(Digits::Word(number))
    }
}

impl TryFrom<u64> for Revision {
    type Error = RevisionError;

    fn try_from(number: u64) -> Result<Self, RevisionError> {
        let word = NonZeroU64::new(number);
        word.map(Self::from).ok_or_else(|| RevisionError {
            text: number.to_string(),
        })
    }
}

impl FromStr for Revision {
    type Err = RevisionError;

    fn from_str(text: &str) -> Result<Self, RevisionError> {
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        if text.is_empty() || text.starts_with('0') || !is_number {
            return Err(RevisionError {
                text: text.to_owned(),
            });
        }
        Ok(Self(text.parse().map_or_else(
            |_| Digits::Long(LongDigits(text.into())),
            Digits::Word,
        )))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Digits::Word(word) => word.fmt(f),
            Digits::Long(LongDigits(text)) => f.pad(text),
        }
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl Ord for LongDigits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for LongDigits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for AtRevision {
    type Err = RevisionError;

    fn from_str(text: &str) -> Result<Self, RevisionError> {
        match text {
            "" => Ok(Self::Latest),
            "0" => Ok(Self::Any),
            _ => text.parse().map(Self::Given),
        }
    }
}

impl fmt::Display for AtRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => Ok(()),
            Self::Any => f.write_str("0"),
            Self::Given(revision) => revision.fmt(f),
        }
    }
}
