//! Whole numbers of any size.
//!
//! 128 bits hold billionths up to 10^29, which no real quantity exceeds; only what does not fit
//! is on the heap. A number has one form, and so equality and hash can be derived.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, Sign};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Amount {
    Small(i128),
    /// Never a number that fits [`Amount::Small`].
    Big(Box<BigInt>),
}

impl Amount {
    pub(super) const ZERO: Self = Self::Small(0);

    pub(super) fn from_product(a: i64, b: i64) -> Self {
        Self::Small(i128::from(a) * i128::from(b))
    }

    /// `digits * 2^shift * 10^power`, rounded up to a whole number; `digits` are decimal digits.
    pub(super) fn from_digits(digits: &str, shift: u32, power: i64) -> Self {
        if let Some(small) = small_from_digits(digits, shift, power) {
            return Self::Small(small);
        }
        let mantissa = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default() << shift;
        let exponent = u32::try_from(power.unsigned_abs()).unwrap_or(u32::MAX);
        if power >= 0 {
            return Self::from_big(mantissa * BigInt::from(10).pow(exponent));
        }
        // A divisor with more digits than the number gives one whatever its size.
        let digits_max = u32::try_from(mantissa.bits()).unwrap_or(u32::MAX);
        let divisor = BigInt::from(10).pow(exponent.min(digits_max));
        let up = &divisor - 1;
        Self::from_big((mantissa + up) / divisor)
    }

    fn from_big(big: BigInt) -> Self {
        i128::try_from(&big).map_or_else(|_| Self::Big(Box::new(big)), Self::Small)
    }

    fn to_big(&self) -> BigInt {
        match self {
            Self::Small(small) => BigInt::from(*small),
            Self::Big(big) => BigInt::clone(big),
        }
    }

    pub(super) fn sign(&self) -> Ordering {
        match self {
            Self::Small(small) => small.cmp(&0),
            Self::Big(big) if big.sign() == Sign::Minus => Ordering::Less,
            Self::Big(_) => Ordering::Greater,
        }
    }

    /// Returns true if the number is at least `limit` away from zero.
    pub(super) fn reaches(&self, limit: u128) -> bool {
        match self {
            Self::Small(small) => small.unsigned_abs() >= limit,
            Self::Big(_) => true,
        }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        if let (Self::Small(a), Self::Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Self::Small(sum);
        }
        Self::from_big(self.to_big() + other.to_big())
    }

    pub(super) fn negated(&self) -> Self {
        match self {
            Self::Small(small) => small
                .checked_neg()
                .map_or_else(|| Self::from_big(-self.to_big()), Self::Small),
            Self::Big(big) => Self::from_big(-BigInt::clone(big)),
        }
    }

    /// The quotient, if nothing remains.
    pub(super) fn div_exact(&self, divisor: i64) -> Option<Self> {
        match self {
            Self::Small(small) => {
                let divisor = i128::from(divisor);
                (small % divisor == 0).then(|| Self::Small(small / divisor))
            }
            Self::Big(big) => {
                let is_exact = BigInt::ZERO == &**big % divisor;
                is_exact.then(|| Self::from_big(&**big / divisor))
            }
        }
    }

    /// The quotient, rounded away from zero.
    pub(super) fn div_away(&self, divisor: i64) -> Self {
        if let Some(exact) = self.div_exact(divisor) {
            return exact;
        }
        let away = if self.sign() == Ordering::Less { -1 } else { 1 };
        match self {
            Self::Small(small) => Self::Small(small / i128::from(divisor) + away),
            Self::Big(big) => Self::from_big(&**big / divisor + away),
        }
    }

    /// Divides by `factor` as often as nothing remains, but at most `times`; and how often it was.
    pub(super) fn strip(self, factor: i64, times: usize) -> (Self, usize) {
        let (mut number, mut power) = (self, 0);
        while power < times
            && let Some(quotient) = number.div_exact(factor)
        {
            (number, power) = (quotient, power + 1);
        }
        (number, power)
    }

    pub(super) fn saturating_i64(&self) -> i64 {
        let nearest = match self {
            Self::Small(small) => *small,
            Self::Big(_) if self.sign() == Ordering::Less => i128::MIN,
            Self::Big(_) => i128::MAX,
        };
        let clamped = nearest.clamp(i64::MIN.into(), i64::MAX.into());
        i64::try_from(clamped).expect("invariant: clamped to the range")
    }
}

/// The same as [`Amount::from_digits`] where 128 bits hold every step of it.
fn small_from_digits(digits: &str, shift: u32, power: i64) -> Option<i128> {
    let mantissa = digits
        .parse::<i128>()
        .ok()?
        .checked_mul(1_i128.checked_shl(shift)?)?;
    let factor = 10_i128.checked_pow(u32::try_from(power.unsigned_abs()).ok()?)?;
    if power >= 0 {
        return mantissa.checked_mul(factor);
    }
    Some(mantissa / factor + i128::from(mantissa % factor != 0))
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(a), Self::Small(b)) => a.cmp(b),
            _ => self.to_big().cmp(&other.to_big()),
        }
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small(small) => small.fmt(f),
            Self::Big(big) => big.fmt(f),
        }
    }
}
