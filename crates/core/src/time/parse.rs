//! Reads RFC 3339 as Kubernetes does.
//!
//! The rules are those of Go's `time.Parse`, which are laxer than the RFC: the hour may have one
//! digit, a comma may stand before the fraction, and an offset may be of 24 hours.

use super::calendar::{DateTime, days_in};
use super::{MICROS_PER_SECOND, SECONDS};
use crate::quote;

const SECONDS_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICROS_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
const MICRO_DIGITS: usize = 6;

/// A text is not a point in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The text does not have the form; the message names the place by the rest of the text, and
    /// what was to stand there by an example of the form.
    #[error("parsing time {} as {}: cannot parse {} as {}",
        quote(.text), quote(.layout), quote(.rest), quote(.element))]
    Form {
        /// The whole text.
        text: String,
        /// An example of the form.
        layout: &'static str,
        /// The text from the place that does not fit.
        rest: String,
        /// The part of the example that was expected there.
        element: &'static str,
    },
    /// The text goes on after the time.
    #[error("parsing time {}: extra text: {}", quote(.text), quote(.rest))]
    Extra {
        /// The whole text.
        text: String,
        /// The text behind the time.
        rest: String,
    },
    /// A part is a number, but there is no such month, day, hour and so on.
    #[error("parsing time {}: {part} out of range", quote(.text))]
    Range {
        /// The whole text.
        text: String,
        /// The name of the part.
        part: &'static str,
    },
}

/// Seconds since the start of 1970; a fraction is cut.
pub(super) fn seconds(text: &str) -> Result<i64, TimeError> {
    let mut reader = Reader {
        text,
        layout: SECONDS_LAYOUT,
        rest: text,
    };
    let local = reader.date_and_time()?;
    reader.skip_fraction();
    reader.finish(local)
}

/// Microseconds since the start of 1970.
pub(super) fn micros(text: &str) -> Result<i64, TimeError> {
    let mut reader = Reader {
        text,
        layout: MICROS_LAYOUT,
        rest: text,
    };
    let local = reader.date_and_time()?;
    let micros = reader.micros()?;
    Ok(reader.finish(local)? * MICROS_PER_SECOND + micros)
}

/// The text and what of it is not read yet.
struct Reader<'a> {
    text: &'a str,
    layout: &'static str,
    rest: &'a str,
}

impl Reader<'_> {
    fn date_and_time(&mut self) -> Result<DateTime, TimeError> {
        let year = self.number(4, "2006")?;
        self.literal("-")?;
        let month = self.number(2, "01")?;
        self.check("month", (1..=12).contains(&month))?;
        self.literal("-")?;
        let day = self.number(2, "02")?;
        self.literal("T")?;
        let hour = self.number(2, "15").or_else(|_| self.number(1, "15"))?;
        self.check("hour", hour < 24)?;
        self.literal(":")?;
        let minute = self.number(2, "04")?;
        self.check("minute", minute < 60)?;
        self.literal(":")?;
        let second = self.number(2, "05")?;
        self.check("second", second < 60)?;
        Ok(DateTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
        })
    }

    /// Reads the zone, checks what only the whole shows, and gives seconds since 1970.
    fn finish(&mut self, local: DateTime) -> Result<i64, TimeError> {
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(TimeError::Extra {
                text: self.text.into(),
                rest: self.rest.into(),
            });
        }
        self.check(
            "day",
            (1..=days_in(local.year, local.month)).contains(&local.day),
        )?;
        let unix = local.unix() - offset;
        self.check("year", SECONDS.contains(&unix))?;
        Ok(unix)
    }

    fn skip_fraction(&mut self) {
        let Some(rest) = self.rest.strip_prefix(['.', ',']) else {
            return;
        };
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.len() < rest.len() {
            self.rest = after;
        }
    }

    fn micros(&mut self) -> Result<i64, TimeError> {
        let wrong = self.form(".000000");
        self.rest = self
            .rest
            .strip_prefix(['.', ','])
            .ok_or_else(|| wrong.clone())?;
        self.number(MICRO_DIGITS, ".000000").map_err(|_| wrong)
    }

    /// Seconds east of UTC.
    fn offset(&mut self) -> Result<i64, TimeError> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let wrong = self.form("Z07:00");
        let (hours, minutes, sign) = self.offset_parts().map_err(|_| wrong)?;
        self.check("time zone offset hour", hours <= 24)?;
        self.check("time zone offset minute", minutes <= 60)?;
        Ok(sign * (hours * 3_600 + minutes * 60))
    }

    fn offset_parts(&mut self) -> Result<(i64, i64, i64), TimeError> {
        let sign = if self.literal("-").is_ok() { -1 } else { 1 };
        if sign == 1 {
            self.literal("+")?;
        }
        let hours = self.number(2, "Z07:00")?;
        self.literal(":")?;
        Ok((hours, self.number(2, "Z07:00")?, sign))
    }

    fn literal(&mut self, expected: &'static str) -> Result<(), TimeError> {
        self.rest = self
            .rest
            .strip_prefix(expected)
            .ok_or_else(|| self.form(expected))?;
        Ok(())
    }

    /// Reads exactly `len` digits.
    fn number(&mut self, len: usize, element: &'static str) -> Result<i64, TimeError> {
        let (digits, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| self.form(element))?;
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.form(element));
        }
        self.rest = rest;
        digits.parse().map_err(|_| self.form(element))
    }

    fn check(&self, part: &'static str, is_in_range: bool) -> Result<(), TimeError> {
        if is_in_range {
            Ok(())
        } else {
            Err(TimeError::Range {
                text: self.text.into(),
                part,
            })
        }
    }

    fn form(&self, element: &'static str) -> TimeError {
        TimeError::Form {
            text: self.text.into(),
            layout: self.layout,
            rest: self.rest.into(),
            element,
        }
    }
}
