//! Reads quantities.

use super::amount::Amount;
use super::{NANOS_PER_UNIT, Quantity, QuantityFormat};

/// The most bytes of a quantity.
const BYTES_MAX: usize = 1_024;
/// The largest exponent of a quantity.
const EXPONENT_MAX: i64 = 1_000;
/// Quantities keep nine digits after the point.
const NANO_DIGITS: i64 = 9;
/// With more digits than this, upstream never prints again what it read.
const KEPT_DECIMAL_DIGITS: usize = 18;

/// A text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// There is a character that no quantity has at that place.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Form,
    /// There are no digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The text is longer than any sensible quantity.
    #[error("quantity has {bytes} bytes, more than {BYTES_MAX}")]
    TooLong {
        /// The length of the text.
        bytes: usize,
    },
    /// The exponent is larger than any sensible one.
    #[error("exponent of quantity is {exponent}, more than {EXPONENT_MAX}")]
    TooLarge {
        /// The exponent.
        exponent: i64,
    },
}

/// A text cut into the parts of a quantity.
struct Parts<'a> {
    is_negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    suffix: Suffix,
}

/// The factor of a suffix: `number * 2^shift * 10^exponent`.
#[derive(Clone, Copy)]
struct Suffix {
    format: QuantityFormat,
    shift: u32,
    exponent: i64,
}

pub(super) fn quantity(text: &str) -> Result<Quantity, QuantityError> {
    let parts = split(text)?;
    let mut format = parts.suffix.format;
    let mut nanos = parts.nanos();
    if format == QuantityFormat::BinarySi {
        nanos = nanos.min(Amount::from_product(i64::MAX, NANOS_PER_UNIT));
        // The unit of a fraction is decimal in any case.
        if nanos > Amount::ZERO && nanos < Amount::from_product(1, NANOS_PER_UNIT) {
            format = QuantityFormat::DecimalSi;
        }
    }
    let signed = if parts.is_negative {
        nanos.negated()
    } else {
        nanos
    };
    let mut quantity = Quantity::from_nanos(signed, format);
    if parts.is_printed_as_read() && quantity.to_string() != text {
        quantity.text = Some(text.into());
    }
    Ok(quantity)
}

impl Parts<'_> {
    /// The magnitude in billionths.
    fn nanos(&self) -> Amount {
        let Suffix {
            shift, exponent, ..
        } = self.suffix;
        let power = exponent
            .saturating_add(NANO_DIGITS)
            .saturating_sub(len(self.fraction));
        Amount::from_digits(&format!("0{}{}", self.whole, self.fraction), shift, power)
    }

    /// Returns true if upstream prints this again as it was read. It remembers a text that looks
    /// canonical at first sight: a full group of three digits, and not ending in three zeros.
    fn is_printed_as_read(&self) -> bool {
        let (whole, fraction) = (self.whole, self.fraction);
        match self.suffix.format {
            QuantityFormat::BinarySi => {
                let digits_max = 14_usize.saturating_sub(self.suffix.shift as usize * 3 / 10);
                let is_short = whole.len() <= digits_max && fraction.is_empty();
                is_short && whole.parse::<u64>().is_ok_and(|number| number % 8 != 0)
            }
            QuantityFormat::DecimalSi | QuantityFormat::DecimalExponent => {
                let power = self.suffix.exponent.saturating_sub(len(fraction));
                let is_short = whole.len() + fraction.len() <= KEPT_DECIMAL_DIGITS;
                let is_grouped = power >= -NANO_DIGITS && power % 3 == 0;
                is_short && is_grouped && !whole.is_empty() && !ends_in_zeros(whole, fraction)
            }
        }
    }
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Form);
    }
    if text.len() > BYTES_MAX {
        return Err(QuantityError::TooLong { bytes: text.len() });
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = split_digits(unsigned);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let suffix = suffix(rest)?;
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::Number);
    }
    let is_negative = text.starts_with('-');
    let whole = whole.trim_start_matches('0');
    if suffix.format == QuantityFormat::DecimalExponent {
        check_printed(whole, fraction, suffix.exponent)?;
    }
    Ok(Parts {
        is_negative,
        whole,
        fraction,
        suffix,
    })
}

fn suffix(text: &str) -> Result<Suffix, QuantityError> {
    let letters_end = text
        .find(|c| !"eEinumkKMGTP".contains(c))
        .unwrap_or(text.len());
    let after = &text[letters_end..];
    let (_, rest) = split_digits(after.strip_prefix(['+', '-']).unwrap_or(after));
    if !rest.is_empty() {
        return Err(QuantityError::Form);
    }
    let decimal = |exponent| Suffix {
        format: QuantityFormat::DecimalSi,
        shift: 0,
        exponent,
    };
    let binary = |shift| Suffix {
        format: QuantityFormat::BinarySi,
        shift,
        exponent: 0,
    };
    Ok(match text {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => Suffix {
            format: QuantityFormat::DecimalExponent,
            shift: 0,
            exponent: exponent(text)?,
        },
    })
}

/// Refuses a number that would be printed with an exponent which cannot be read again: groups of
/// three zeros at its end join the exponent.
fn check_printed(whole: &str, fraction: &str, exponent: i64) -> Result<(), QuantityError> {
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let shift = len(whole).saturating_sub(len(significant));
    let power = exponent.saturating_add(shift);
    let printed = power.saturating_sub(power.rem_euclid(3));
    if !significant.is_empty() && printed > EXPONENT_MAX {
        return Err(QuantityError::TooLarge { exponent: printed });
    }
    Ok(())
}

fn exponent(suffix: &str) -> Result<i64, QuantityError> {
    let number = suffix
        .strip_prefix(['e', 'E'])
        .ok_or(QuantityError::Suffix)?;
    let exponent = number.parse().map_err(|_| QuantityError::Suffix)?;
    if exponent > EXPONENT_MAX {
        Err(QuantityError::TooLarge { exponent })
    } else {
        Ok(exponent)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

fn ends_in_zeros(whole: &str, fraction: &str) -> bool {
    let last = fraction.bytes().rev().chain(whole.bytes().rev());
    last.take_while(|b| *b == b'0').count() >= 3
}

fn len(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}
