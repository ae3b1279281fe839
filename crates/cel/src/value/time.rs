//! Times and durations.

use std::fmt;

const NANOS: i64 = 1_000_000_000;
const DAY: i64 = 86_400;
/// The first second of year 1 and the last one of year 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A point in time with nanoseconds, within the years 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// The parts of a time on a calendar.
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    /// From 0, the first of January.
    pub(crate) day_of_year: i64,
    /// From 0, Sunday.
    pub(crate) day_of_week: i64,
    /// Seconds since midnight.
    pub(crate) second_of_day: i64,
}

impl Timestamp {
    pub(crate) fn new(seconds: i64, nanos: u32) -> Option<Self> {
        SECONDS
            .contains(&seconds)
            .then_some(Self { seconds, nanos })
    }

    pub(crate) fn seconds(self) -> i64 {
        self.seconds
    }

    pub(crate) fn nanos(self) -> u32 {
        self.nanos
    }

    /// The time so much later.
    pub(crate) fn plus(self, nanos: i64) -> Option<Self> {
        let total = i128::from(self.seconds) * i128::from(NANOS)
            + i128::from(self.nanos)
            + i128::from(nanos);
        let seconds = i64::try_from(total.div_euclid(i128::from(NANOS))).ok()?;
        let rest = u32::try_from(total.rem_euclid(i128::from(NANOS))).ok()?;
        Self::new(seconds, rest)
    }

    /// The nanoseconds since another time.
    pub(crate) fn since(self, other: Self) -> Option<i64> {
        let seconds = self
            .seconds
            .checked_sub(other.seconds)?
            .checked_mul(NANOS)?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    /// The calendar in a zone so many seconds east of Greenwich.
    pub(crate) fn civil(self, offset: i64) -> Civil {
        let local = self.seconds + offset;
        let days = local.div_euclid(DAY);
        let (year, month, day) = date_of(days);
        Civil {
            year,
            month,
            day,
            day_of_year: days - days_of(year, 1, 1),
            day_of_week: (days + 4).rem_euclid(7),
            second_of_day: local.rem_euclid(DAY),
        }
    }
}

/// The date of a day counted from the start of 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The day of a date, counted from the start of 1970.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

/// A time in RFC 3339.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| -> Option<i64> {
        let part = bytes.get(range)?;
        part.iter()
            .all(u8::is_ascii_digit)
            .then(|| std::str::from_utf8(part).ok()?.parse().ok())?
    };
    let symbol = |at: usize, symbols: &[u8]| bytes.get(at).is_some_and(|c| symbols.contains(c));
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    let is_shaped = symbol(4, b"-")
        && symbol(7, b"-")
        && symbol(10, b"T")
        && symbol(13, b":")
        && symbol(16, b":");
    if !is_shaped
        || hour > 23
        || minute > 59
        || second > 59
        || date_of(days_of(year, month, day)) != (year, month, day)
    {
        return None;
    }
    let (nanos, zone) = fraction(&text[19..])?;
    let seconds = days_of(year, month, day) * DAY + hour * 3600 + minute * 60 + second
        - written_offset(zone)?;
    Timestamp::new(seconds, nanos)
}

fn fraction(rest: &str) -> Option<(u32, &str)> {
    let Some(digits) = rest.strip_prefix('.') else {
        return Some((0, rest));
    };
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let nanos: u32 = format!("{:0<9}", &digits[..end.min(9)]).parse().ok()?;
    Some((nanos, &digits[end..]))
}

/// Seconds east of Greenwich of `Z` or `+01:00`.
fn written_offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.as_bytes().first()? {
        b'Z' if zone.len() == 1 => return Some(0),
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, limit: i64| -> Option<i64> {
        let is_shaped = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_shaped)?;
        (number < limit).then_some(number)
    };
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 60)? * 60))
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.civil(0);
        let (hour, minute, second) = (
            civil.second_of_day / 3600,
            civil.second_of_day / 60 % 60,
            civil.second_of_day % 60,
        );
        let Civil {
            year, month, day, ..
        } = civil;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// A duration as Go writes it: `1h2m3.5s`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let (unit, after) = duration_unit(after)?;
        total += scaled(number, unit)?;
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
    }
    i64::try_from(if is_negative { -total } else { total }).ok()
}

fn duration_unit(text: &str) -> Option<(i128, &str)> {
    [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ]
    .into_iter()
    .find_map(|(unit, nanos)| Some((nanos, text.strip_prefix(unit)?)))
}

fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') || whole.len() > 19 {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut total = whole * unit;
    let mut scale = unit;
    for digit in part.chars() {
        scale /= 10;
        total += i128::from(digit.to_digit(10)?) * scale;
    }
    Some(total)
}

/// A duration in seconds, as converting it to a string gives it.
pub(crate) fn duration_text(nanos: i64) -> String {
    let seconds = nanos.unsigned_abs() / NANOS.unsigned_abs();
    let rest = nanos.unsigned_abs() % NANOS.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let digits = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", digits.trim_end_matches('0'))
}
