//! Label and field selectors.
//!
//! A [`Selector`] is what a label query compiles to, from its text form (`app=web,tier in (a,b)`)
//! or its structured form ([`LabelSelector`]). A [`FieldSelector`] is the smaller language for
//! fields. Both print in upstream's canonical order and give upstream's error messages.

mod field;
mod parse;
mod requirement;
mod structured;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use field::{FieldRequirement, FieldSelector, FieldSelectorError};
pub use parse::SelectorError;
pub use requirement::{Operator, Requirement, RequirementError};
pub use structured::{LabelSelector, LabelSelectorError, LabelSelectorRequirement};

/// Something that selectors can match: a set of labels, or of fields.
pub trait LabelLookup {
    /// The value of `key`, if there is one.
    fn get(&self, key: &str) -> Option<&str>;
}

/// A compiled label query: requirements that must all hold, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// None when nothing shall match.
    requirements: Option<Vec<Requirement>>,
}

impl Selector {
    /// The selector that matches everything.
    #[must_use]
    pub const fn everything() -> Self {
        Self {
            requirements: Some(Vec::new()),
        }
    }

    /// The selector that matches nothing.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { requirements: None }
    }

    /// The selector of an optional field: an absent one matches nothing, while one that is present
    /// but empty matches everything.
    ///
    /// # Errors
    /// When the structured selector has an unknown operator, a malformed key or malformed values.
    pub fn from_optional(selector: Option<&LabelSelector>) -> Result<Self, LabelSelectorError> {
        selector.map_or(Ok(Self::nothing()), Self::try_from)
    }

    /// Returns true if everything matches.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns true if this is [`Selector::nothing`]. Requirements that contradict each other are
    /// not seen.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.requirements.is_none()
    }

    /// The requirements in the order of their keys, none for [`Selector::nothing`].
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// Returns true if the labels meet every requirement.
    #[must_use]
    pub fn matches<L: LabelLookup + ?Sized>(&self, labels: &L) -> bool {
        let matches = |all: &Vec<Requirement>| all.iter().all(|one| one.matches(labels));
        self.requirements.as_ref().is_some_and(matches)
    }

    /// The one value that `key` must have, if the first requirement on it says so. Indexes use it.
    #[must_use]
    pub fn exact_value(&self, key: &str) -> Option<&str> {
        self.requirements()
            .iter()
            .find(|one| one.key() == key)?
            .exact_value()
    }

    /// The selector that asks for more.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Requirement>) -> Self {
        if let Some(requirements) = &mut self.requirements {
            requirements.extend(more);
            requirements.sort_by(|a, b| a.key().cmp(b.key()));
        }
        self
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        Self::everything().and(requirements)
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        parse::requirements(text).map(Self::from_iter)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(f, self.requirements())
    }
}

impl<T: LabelLookup + ?Sized> LabelLookup for &T {
    fn get(&self, key: &str) -> Option<&str> {
        (**self).get(key)
    }
}

impl LabelLookup for BTreeMap<String, String> {
    fn get(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> LabelLookup for [(K, V)] {
    fn get(&self, key: &str) -> Option<&str> {
        self.iter()
            .find(|(k, _)| k.as_ref() == key)
            .map(|(_, value)| value.as_ref())
    }
}

impl<K: AsRef<str>, V: AsRef<str>, const N: usize> LabelLookup for [(K, V); N] {
    fn get(&self, key: &str) -> Option<&str> {
        LabelLookup::get(self.as_slice(), key)
    }
}

fn write_joined(f: &mut fmt::Formatter<'_>, parts: &[impl fmt::Display]) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(f, "{comma}{part}")?;
    }
    Ok(())
}
