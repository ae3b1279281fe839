//! Timestamps of API objects.
//!
//! [`Time`] has whole seconds and [`MicroTime`] microseconds, as the two forms on the wire do.
//! Both read every RFC 3339 text that Kubernetes reads and print in UTC. The calendar is a few
//! lines of integer arithmetic here, since nothing else of a date library would be used.

mod calendar;
mod parse;

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use parse::TimeError;

use calendar::DateTime;

/// The first second of year 0 and the last one of year 9999, the range with a written form.
const SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;
/// The first second of year 1, which Kubernetes takes for an unset time.
const UNSET: i64 = -62_135_596_800;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// A point in time in whole seconds, printed `2026-01-02T03:04:05Z`.
///
/// Fractions of a second are cut when read. Arithmetic stays inside the years 0 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// A point in time in microseconds, printed `2026-01-02T03:04:05.000000Z`.
///
/// Leases and events have it. Arithmetic stays inside the years 0 to 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroTime(i64);

impl Time {
    /// The time that stands for none: the first second of year 1. It is `null` on the wire.
    pub const UNSET: Self = Self(UNSET);

    /// The time so many seconds after the start of 1970, or before it.
    #[must_use]
    pub fn from_unix(seconds: i64) -> Self {
        Self(seconds.clamp(*SECONDS.start(), *SECONDS.end()))
    }

    /// Seconds since the start of 1970.
    #[must_use]
    pub fn unix(self) -> i64 {
        self.0
    }

    /// Returns true if this is [`Time::UNSET`].
    #[must_use]
    pub fn is_unset(self) -> bool {
        self == Self::UNSET
    }

    /// The time passed since `earlier`, zero if that is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

impl MicroTime {
    /// The time that stands for none: the first instant of year 1. It is `null` on the wire.
    pub const UNSET: Self = Self(UNSET * MICROS_PER_SECOND);

    /// The time so many microseconds after the start of 1970, or before it.
    #[must_use]
    pub fn from_unix_micros(micros: i64) -> Self {
        let first = SECONDS.start() * MICROS_PER_SECOND;
        let last = SECONDS.end() * MICROS_PER_SECOND + MICROS_PER_SECOND - 1;
        Self(micros.clamp(first, last))
    }

    /// Microseconds since the start of 1970.
    #[must_use]
    pub fn unix_micros(self) -> i64 {
        self.0
    }

    /// Returns true if this is [`MicroTime::UNSET`].
    #[must_use]
    pub fn is_unset(self) -> bool {
        self == Self::UNSET
    }

    /// The whole second this time lies in.
    #[must_use]
    pub fn to_time(self) -> Time {
        Time(self.0.div_euclid(MICROS_PER_SECOND))
    }

    /// The time passed since `earlier`, zero if that is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

impl From<Time> for MicroTime {
    fn from(time: Time) -> Self {
        Self(time.0 * MICROS_PER_SECOND)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// The second in which `duration` after this time lies.
    fn add(self, duration: Duration) -> Self {
        (MicroTime::from(self) + duration).to_time()
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    /// The second in which `duration` before this time lies.
    fn sub(self, duration: Duration) -> Self {
        (MicroTime::from(self) - duration).to_time()
    }
}

impl Add<Duration> for MicroTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_unix_micros(self.0.saturating_add(micros))
    }
}

impl Sub<Duration> for MicroTime {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(i64::MAX);
        Self::from_unix_micros(self.0.saturating_sub(micros))
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        parse::seconds(text).map(Self)
    }
}

impl FromStr for MicroTime {
    type Err = TimeError;

    /// Reads a time with exactly six digits after the seconds, the only form that Kubernetes takes.
    fn from_str(text: &str) -> Result<Self, TimeError> {
        parse::micros(text).map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", DateTime::from_unix(self.0))
    }
}

impl fmt::Display for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = self.0.rem_euclid(MICROS_PER_SECOND);
        write!(
            f,
            "{}.{fraction:06}Z",
            DateTime::from_unix(self.to_time().0)
        )
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Time({self})")
    }
}

impl fmt::Debug for MicroTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MicroTime({self})")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_unset() {
            serializer.serialize_unit()
        } else {
            serializer.collect_str(self)
        }
    }
}

impl Serialize for MicroTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_unset() {
            serializer.serialize_unit()
        } else {
            serializer.collect_str(self)
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map_or(Ok(Self::UNSET), |text| {
            text.parse().map_err(de::Error::custom)
        })
    }
}

impl<'de> Deserialize<'de> for MicroTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map_or(Ok(Self::UNSET), |text| {
            text.parse().map_err(de::Error::custom)
        })
    }
}
