//! Times: text forms, order and arithmetic.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use windlass_core::{MicroTime, Time};

/// The text, and the text that Kubernetes 1.36 prints for it.
#[rustfmt::skip] // One row per line.
const TIMES: &[(&str, &str)] = &[
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.12345Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05.999999999999Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
    ("2026-01-02T03:04:05.123456+02:00", "2026-01-02T01:04:05Z"),
    ("2026-01-02T03:04:05-11:30", "2026-01-02T14:34:05Z"),
    ("2026-01-02T3:04:05Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05Z"),
    ("2026-01-02T03:04:05,123456Z", "2026-01-02T03:04:05Z"),
    ("2024-02-29T03:04:05Z", "2024-02-29T03:04:05Z"),
    ("2026-01-02T03:04:05+24:00", "2026-01-01T03:04:05Z"),
    ("2026-01-02T03:04:05+23:60", "2026-01-01T03:04:05Z"),
    ("2026-01-02T03:04:05+23:59", "2026-01-01T03:05:05Z"),
    ("0001-01-01T00:00:00Z", "null"),
    ("0001-01-01T00:00:00.000000Z", "null"),
    ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
    ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
    ("1969-12-31T23:59:59.500000Z", "1969-12-31T23:59:59Z"),
    ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59Z"),
    ("2026-01-02T03:04:05.1234560Z", "2026-01-02T03:04:05Z"),
    ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ("1900-03-01T12:00:00Z", "1900-03-01T12:00:00Z"),
    ("2000-02-29T12:00:00.000001-01:00", "2000-02-29T13:00:00Z"),
    ("2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05Z"),
    ("1600-02-29T00:00:00Z", "1600-02-29T00:00:00Z"),
];

/// The same for times with microseconds.
#[rustfmt::skip] // One row per line.
const MICRO_TIMES: &[(&str, &str)] = &[
    ("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.000000Z"),
    ("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123456Z"),
    ("2026-01-02T03:04:05.123456+02:00", "2026-01-02T01:04:05.123456Z"),
    ("2026-01-02T03:04:05,123456Z", "2026-01-02T03:04:05.123456Z"),
    ("0001-01-01T00:00:00.000000Z", "null"),
    ("1969-12-31T23:59:59.500000Z", "1969-12-31T23:59:59.500000Z"),
    ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ("2000-02-29T12:00:00.000001-01:00", "2000-02-29T13:00:00.000001Z"),
];

/// The first and the last second that can be written.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// The JSON of a value, without the quotes.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value)
        .expect("a time has JSON")
        .trim_matches('"')
        .to_owned()
}

#[test]
fn times_print_in_utc_without_fraction() {
    for (text, printed) in TIMES {
        assert_eq!(json(&text.parse::<Time>().unwrap()), *printed, "{text}");
    }
}

#[test]
fn micro_times_print_in_utc_with_six_digits() {
    for (text, printed) in MICRO_TIMES {
        assert_eq!(
            json(&text.parse::<MicroTime>().unwrap()),
            *printed,
            "{text}"
        );
    }
}

#[test]
fn unset_time_is_null_in_json() {
    assert_eq!(serde_json::from_str::<Time>("null").unwrap(), Time::UNSET);
    assert_eq!(
        serde_json::from_str::<MicroTime>("null").unwrap(),
        MicroTime::UNSET
    );
    assert_eq!(json(&Time::UNSET), "null");
    assert_eq!(json(&MicroTime::UNSET), "null");
    assert_eq!(Time::UNSET.to_string(), "0001-01-01T00:00:00Z");
    assert!(serde_json::from_str::<Time>("5").is_err());
}

#[test]
fn arithmetic_rounds_down_to_the_second() {
    let time: Time = "2026-01-01T00:00:00Z".parse().unwrap();
    let half = Duration::from_millis(500);
    assert_eq!(time + half, time);
    assert_eq!((time - half).to_string(), "2025-12-31T23:59:59Z");
    assert_eq!(
        (time + Duration::from_secs(86_400)).to_string(),
        "2026-01-02T00:00:00Z"
    );
    assert_eq!(
        (time + Duration::from_secs(90)).since(time),
        Duration::from_secs(90)
    );
    assert_eq!(time.since(time + Duration::from_secs(90)), Duration::ZERO);
}

#[test]
fn arithmetic_stays_in_the_range_of_the_written_form() {
    let time: Time = "2026-01-01T00:00:00Z".parse().unwrap();
    assert_eq!((time + Duration::MAX).to_string(), "9999-12-31T23:59:59Z");
    assert_eq!((time - Duration::MAX).to_string(), "0000-01-01T00:00:00Z");
    let micro = MicroTime::from(time);
    assert_eq!(
        (micro + Duration::MAX).to_string(),
        "9999-12-31T23:59:59.999999Z"
    );
    assert_eq!(
        (micro - Duration::MAX).to_string(),
        "0000-01-01T00:00:00.000000Z"
    );
    assert_eq!(Time::from_unix(i64::MAX).unix(), LAST);
    assert_eq!(Time::from_unix(i64::MIN).unix(), FIRST);
    assert_eq!(
        MicroTime::from_unix_micros(i64::MIN).to_time().unix(),
        FIRST
    );
}

/// The same cases in every run.
fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig {
        rng_seed,
        failure_persistence: None,
        ..ProptestConfig::with_cases(512)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_printed_reads_back(seconds in FIRST..=LAST, micros in 0..1_000_000_i64) {
        let time = Time::from_unix(seconds);
        prop_assert_eq!(time.to_string().parse::<Time>(), Ok(time));
        let micro = MicroTime::from_unix_micros(seconds * 1_000_000 + micros);
        prop_assert_eq!(micro.to_string().parse::<MicroTime>(), Ok(micro));
        prop_assert_eq!(micro.to_string().parse::<Time>(), Ok(time));
        prop_assert_eq!(micro.to_time(), time);
    }

    #[test]
    fn times_order_as_their_texts_do(a in FIRST..=LAST, b in FIRST..=LAST) {
        let (a, b) = (Time::from_unix(a), Time::from_unix(b));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    }

    #[test]
    fn offset_shifts_the_time(seconds in FIRST + 90_000..=LAST - 90_000, hours in 0..24_i64, minutes in 0..60_i64) {
        let text = Time::from_unix(seconds).to_string();
        let east = text.replace('Z', &format!("+{hours:02}:{minutes:02}"));
        let west = text.replace('Z', &format!("-{hours:02}:{minutes:02}"));
        let shift = hours * 3_600 + minutes * 60;
        prop_assert_eq!(east.parse::<Time>().unwrap().unix(), seconds - shift);
        prop_assert_eq!(west.parse::<Time>().unwrap().unix(), seconds + shift);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), like in "[-0-9TZ:.,+]{0,40}") {
        for text in [text, like] {
            let _ = text.parse::<Time>();
            let _ = text.parse::<MicroTime>();
        }
    }
}
