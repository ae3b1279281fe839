//! Field selectors: `metadata.name=a,status.phase!=Running`.
//!
//! A backslash before a comma, an equals sign or a backslash makes it part of the value.

use std::fmt;
use std::str::FromStr;

use super::{LabelLookup, write_joined};

/// A field query: requirements that must all hold. A field that is absent counts as empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSelector {
    /// None when nothing shall match.
    requirements: Option<Vec<FieldRequirement>>,
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field, such as `spec.nodeName`.
    pub field: String,
    /// The value to compare with, without escapes.
    pub value: String,
    /// True if the field must have another value than this one.
    pub is_negated: bool,
}

/// A text is not a field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldSelectorError {
    /// A part has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole text.
        selector: String,
        /// The part.
        term: String,
    },
    /// A backslash stands before a character that needs none.
    #[error("invalid field selector: invalid escape sequence: {sequence}")]
    Escape {
        /// The backslash and what follows it.
        sequence: String,
    },
    /// A value has a character that needs a backslash. The message gives its number.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.character))]
    Unescaped {
        /// The character.
        character: char,
    },
}

impl FieldSelector {
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

    /// Returns true if everything matches.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// The requirements, none for [`FieldSelector::nothing`].
    #[must_use]
    pub fn requirements(&self) -> &[FieldRequirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// Returns true if the fields meet every requirement.
    #[must_use]
    pub fn matches<L: LabelLookup + ?Sized>(&self, fields: &L) -> bool {
        let matches = |all: &Vec<FieldRequirement>| all.iter().all(|one| one.matches(fields));
        self.requirements.as_ref().is_some_and(matches)
    }

    /// The value that `field` must have, if a requirement says so. Indexes use it.
    #[must_use]
    pub fn exact_value(&self, field: &str) -> Option<&str> {
        let all = self.requirements().iter();
        let mut exact = all.filter(|one| !one.is_negated && one.field == field);
        exact.next().map(|one| one.value.as_str())
    }
}

impl FieldRequirement {
    /// Returns true if the fields meet this requirement.
    #[must_use]
    pub fn matches<L: LabelLookup + ?Sized>(&self, fields: &L) -> bool {
        (fields.get(&self.field).unwrap_or_default() == self.value) != self.is_negated
    }
}

impl FromIterator<FieldRequirement> for FieldSelector {
    fn from_iter<I: IntoIterator<Item = FieldRequirement>>(requirements: I) -> Self {
        Self {
            requirements: Some(requirements.into_iter().collect()),
        }
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    /// Reads the parts in the order of their text, which is the order they print in.
    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let terms = terms.into_iter().filter(|term| !term.is_empty());
        let read: Result<Vec<_>, _> = terms.map(|term| requirement(text, term)).collect();
        // A part of an operator alone asks for nothing.
        let is_empty = |one: &FieldRequirement| one.field.is_empty() && one.value.is_empty();
        Ok(read?.into_iter().filter(|one| !is_empty(one)).collect())
    }
}

/// Cuts at the commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    text.split(|c| {
        let is_cut = c == ',' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_cut
    })
    .collect()
}

fn requirement(selector: &str, term: &str) -> Result<FieldRequirement, FieldSelectorError> {
    let wrong = || FieldSelectorError::Term {
        selector: selector.into(),
        term: term.into(),
    };
    let equals_at = term.find('=').ok_or_else(wrong)?;
    let (left, right) = (&term[..equals_at], &term[equals_at + 1..]);
    let (field, value, is_negated) = match left.strip_suffix('!') {
        Some(field) => (field, right, true),
        None => (left, right.strip_prefix('=').unwrap_or(right), false),
    };
    Ok(FieldRequirement {
        field: field.to_owned(),
        value: unescape(value)?,
        is_negated,
    })
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence = std::iter::once('\\').chain(other).collect();
                    return Err(FieldSelectorError::Escape { sequence });
                }
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped { character: c }),
            _ => plain.push(c),
        }
    }
    Ok(plain)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(f, self.requirements())
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.is_negated { "!=" } else { "=" };
        write!(f, "{}{operator}", self.field)?;
        for c in self.value.chars() {
            if matches!(c, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}
