//! Amounts of resources, such as `500m` of a processor or `1Gi` of memory.
//!
//! A [`Quantity`] is an exact number of billionths, of any size, with the format it prints in. No
//! floating point number is involved anywhere. It reads, prints, compares and adds as Kubernetes
//! does, except where upstream's own arithmetic goes wrong:
//!
//! * upstream prints 10^21 and beyond without their suffix, here `1000E` stays `1000E`;
//! * [`Quantity::value`] and [`Quantity::milli_value`] saturate where upstream wraps or says zero,
//!   and always round away from zero;
//! * a number without digits, such as `Ki`, is an error (upstream takes some of them for zero);
//! * length and exponent have a limit, as upstream can be kept busy with `1e2000000000`.

mod amount;
mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{AddAssign, Neg, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use parse::QuantityError;

use amount::Amount;

const NANOS_PER_UNIT: i64 = 1_000_000_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The format in which a quantity prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuantityFormat {
    /// With a suffix for a power of ten: `12M`.
    DecimalSi,
    /// With a suffix for a power of two: `12Mi`. Fractions and amounts below 1024 print as
    /// [`QuantityFormat::DecimalSi`].
    BinarySi,
    /// With an exponent: `12e6`.
    DecimalExponent,
}

/// An exact amount of a resource.
///
/// Two quantities are equal when the amounts are, whatever their formats: `1000m` is `1`.
#[derive(Clone)]
pub struct Quantity {
    /// Billionths; whatever is finer was rounded away from zero when read.
    nanos: Amount,
    format: QuantityFormat,
    /// The text that was read, if upstream prints it again although it is not canonical: `1.500`.
    text: Option<Box<str>>,
}

impl Quantity {
    /// No amount.
    pub const ZERO: Self = Self {
        nanos: Amount::ZERO,
        format: QuantityFormat::DecimalSi,
        text: None,
    };

    /// So many whole units.
    #[must_use]
    pub fn new(units: i64, format: QuantityFormat) -> Self {
        Self::from_nanos(Amount::from_product(units, NANOS_PER_UNIT), format)
    }

    /// So many thousandths.
    #[must_use]
    pub fn from_milli(milli: i64, format: QuantityFormat) -> Self {
        Self::from_nanos(Amount::from_product(milli, NANOS_PER_MILLI), format)
    }

    fn from_nanos(nanos: Amount, format: QuantityFormat) -> Self {
        Self {
            nanos,
            format,
            text: None,
        }
    }

    /// The format this quantity prints in.
    #[must_use]
    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    /// Returns true if the amount is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.nanos.sign() == Ordering::Equal
    }

    /// Returns true if the amount is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.nanos.sign() == Ordering::Less
    }

    /// Whole units, rounded away from zero, or the nearest number that fits.
    #[must_use]
    pub fn value(&self) -> i64 {
        self.nanos.div_away(NANOS_PER_UNIT).saturating_i64()
    }

    /// Thousandths, rounded away from zero, or the nearest number that fits.
    #[must_use]
    pub fn milli_value(&self) -> i64 {
        self.nanos.div_away(NANOS_PER_MILLI).saturating_i64()
    }

    /// Prints whole units with the largest binary suffix that keeps the number whole.
    fn write_binary(&self, f: &mut fmt::Formatter<'_>, units: Amount) -> fmt::Result {
        let (number, power) = units.strip(1024, BINARY_SUFFIXES.len() - 1);
        write!(f, "{number}{}", BINARY_SUFFIXES[power])
    }

    fn write_decimal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, power) = self.nanos.clone().strip(1000, DECIMAL_SUFFIXES.len() - 1);
        write!(f, "{number}{}", DECIMAL_SUFFIXES[power])
    }

    fn write_exponent(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, power) = self.nanos.clone().strip(1000, usize::MAX);
        match i64::try_from(power)
            .unwrap_or(i64::MAX)
            .saturating_mul(3)
            .saturating_sub(9)
        {
            0 => write!(f, "{number}"),
            exponent => write!(f, "{number}e{exponent}"),
        }
    }

    /// The whole units to print with a binary suffix, if that loses nothing and is not too small.
    fn binary_units(&self) -> Option<Amount> {
        let units = self.nanos.div_exact(NANOS_PER_UNIT)?;
        units.reaches(1024).then_some(units)
    }

    /// Prepares for a change: the text read says nothing any more, and no amount has no format.
    fn change(&mut self, by: &Self) {
        self.text = None;
        if self.is_zero() {
            self.format = by.format;
        }
    }
}

impl AddAssign<&Self> for Quantity {
    /// Adds an amount. The format stays, unless there was no amount before.
    fn add_assign(&mut self, other: &Self) {
        self.change(other);
        self.nanos = self.nanos.plus(&other.nanos);
    }
}

impl SubAssign<&Self> for Quantity {
    /// Takes an amount away. The format stays, unless there was no amount before.
    fn sub_assign(&mut self, other: &Self) {
        self.change(other);
        self.nanos = self.nanos.plus(&other.nanos.negated());
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self::from_nanos(self.nanos.negated(), self.format)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse::quantity(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        match self.format {
            QuantityFormat::DecimalExponent => self.write_exponent(f),
            QuantityFormat::DecimalSi => self.write_decimal(f),
            QuantityFormat::BinarySi => match self.binary_units() {
                Some(units) => self.write_binary(f, units),
                None => self.write_decimal(f),
            },
        }
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantity({self})")
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as \"500m\" or 2")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
        Ok(Quantity::new(units, QuantityFormat::DecimalSi))
    }

    fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
        self.visit_str(&units.to_string())
    }

    /// A number with a fraction has lost its text before it comes here. Its shortest decimal form
    /// is that text again, for up to 15 digits.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    /// A JSON null is no amount.
    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}
