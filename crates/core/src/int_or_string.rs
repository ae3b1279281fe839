//! Values that are a number or a text, such as ports and the `25%` of a rollout.

use std::fmt;
use std::num::IntErrorKind;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::quote;

/// A 32-bit number or a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A text: the name of a port, or a percentage.
    String(String),
}

/// A value cannot be scaled, because it is a text but not a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// The text does not end with a percent sign.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NotPercentage,
    /// The text before the percent sign is not a number, or too large.
    #[error(
        "invalid value for IntOrString: invalid value {}: strconv.Atoi: parsing {}: {problem}",
        quote(.text), quote(.text.strip_suffix('%').unwrap_or(.text))
    )]
    NotNumber {
        /// The whole text.
        text: String,
        /// The problem with the number.
        problem: &'static str,
    },
}

impl IntOrString {
    /// Takes a text for a number where it is one that fits, as command line flags do.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::String(text.to_owned()), Self::Int)
    }

    /// A number as it is; a percentage as that share of `total`, rounded up.
    ///
    /// # Errors
    /// When the value is a text but not a percentage.
    pub fn scaled_up(&self, total: i64) -> Result<i64, ScaleError> {
        // Rounding up is rounding the negated value down.
        self.scaled(total, |share| -(-share).div_euclid(100))
    }

    /// A number as it is; a percentage as that share of `total`, rounded down.
    ///
    /// # Errors
    /// When the value is a text but not a percentage.
    pub fn scaled_down(&self, total: i64) -> Result<i64, ScaleError> {
        self.scaled(total, |share| share.div_euclid(100))
    }

    fn scaled(&self, total: i64, divide: impl Fn(i128) -> i128) -> Result<i64, ScaleError> {
        let text = match self {
            Self::Int(number) => return Ok(i64::from(*number)),
            Self::String(text) => text,
        };
        let share = i128::from(percentage(text)?) * i128::from(total);
        let clamped = divide(share).clamp(i64::MIN.into(), i64::MAX.into());
        Ok(i64::try_from(clamped).expect("invariant: clamped to the range"))
    }
}

fn percentage(text: &str) -> Result<i64, ScaleError> {
    let digits = text.strip_suffix('%').ok_or(ScaleError::NotPercentage)?;
    digits.parse().map_err(|error: std::num::ParseIntError| {
        let is_too_large = matches!(
            error.kind(),
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow
        );
        let problem = if is_too_large {
            "value out of range"
        } else {
            "invalid syntax"
        };
        ScaleError::NotNumber {
            text: text.to_owned(),
            problem,
        }
    })
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => f.pad(text),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i32(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = IntOrString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 32-bit integer or a string")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrString, E> {
        let number = i32::try_from(number);
        number
            .map(IntOrString::Int)
            .map_err(|_| E::invalid_value(de::Unexpected::Other("integer out of range"), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrString, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrString, E> {
        Ok(IntOrString::String(text.to_owned()))
    }

    /// A JSON null leaves the value at its zero.
    fn visit_unit<E: de::Error>(self) -> Result<IntOrString, E> {
        Ok(IntOrString::Int(0))
    }
}
