//! The Gregorian calendar, extended to before its start.
//!
//! Years are counted from March, so that the leap day is the last day of a year; the days before
//! a month are then a linear function of the month, and 400 years always have the same length.

use std::fmt;

const SECONDS_PER_DAY: i64 = 86_400;
/// Days from 1 March of year 0 to 1 January 1970.
const DAYS_TO_1970: i64 = 719_468;
const DAYS_PER_ERA: i64 = 146_097;
const YEARS_PER_ERA: i64 = 400;

/// Date and time of day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DateTime {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
}

impl DateTime {
    /// Seconds since the start of 1970.
    pub(super) fn unix(self) -> i64 {
        let days = days_since_1970(self.year, self.month, self.day);
        days * SECONDS_PER_DAY + self.hour * 3_600 + self.minute * 60 + self.second
    }

    /// The date and time so many seconds after the start of 1970.
    pub(super) fn from_unix(seconds: i64) -> Self {
        let (year, month, day) = date_after_1970(seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
        }
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
        } = self;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )
    }
}

/// The number of days of a month; months are 1 to 12.
pub(super) fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let from_march = (month + 9) % 12;
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (
        year.div_euclid(YEARS_PER_ERA),
        year.rem_euclid(YEARS_PER_ERA),
    );
    let day_of_year = days_before(from_march) + day - 1;
    era * DAYS_PER_ERA + days_before_year(year_of_era) + day_of_year - DAYS_TO_1970
}

fn date_after_1970(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    // The estimate is off by at most one, at the turn of a year.
    let estimate = (day_of_era / 365).min(YEARS_PER_ERA - 1);
    let is_early = days_before_year(estimate) > day_of_era;
    let year_of_era = if is_early { estimate - 1 } else { estimate };
    let day_of_year = day_of_era - days_before_year(year_of_era);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - days_before(from_march) + 1;
    let (month, next) = if from_march < 10 {
        (from_march + 3, 0)
    } else {
        (from_march - 9, 1)
    };
    (era * YEARS_PER_ERA + year_of_era + next, month, day)
}

/// Days before a month that is counted from March.
fn days_before(from_march: i64) -> i64 {
    (153 * from_march + 2) / 5
}

/// Days before a year that starts in March, inside an era.
fn days_before_year(year_of_era: i64) -> i64 {
    year_of_era * 365 + year_of_era / 4 - year_of_era / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_range_has_one_number_and_back() {
        let mut days = days_since_1970(0, 1, 1);
        for year in 0..=9999 {
            for month in 1..=12 {
                for day in 1..=days_in(year, month) {
                    assert_eq!(days_since_1970(year, month, day), days);
                    assert_eq!(date_after_1970(days), (year, month, day));
                    days += 1;
                }
            }
        }
        assert_eq!(days_since_1970(1970, 1, 1), 0);
    }
}
