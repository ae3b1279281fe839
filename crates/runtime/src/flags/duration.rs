//! Durations as Go writes them.

use std::time::Duration;

/// A text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {0:?}: expected numbers with units, such as 1h30m or 500ms")]
pub struct DurationError(String);

/// Reads a duration such as `15s`, `1h30m` or `1.5h`; `0` needs no unit.
///
/// # Errors
/// When the text has another form, or is longer than time itself.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError(text.to_owned());
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(error)?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let number: f64 = number.parse().map_err(|_| error())?;
        let seconds = number * seconds_of(unit).ok_or_else(error)?;
        let part = Duration::try_from_secs_f64(seconds).map_err(|_| error())?;
        total = total.checked_add(part).ok_or_else(error)?;
        rest = next;
    }
    if text.is_empty() {
        Err(error())
    } else {
        Ok(total)
    }
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}
