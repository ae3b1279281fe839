use super::*;

fn next(schedule: &str, zone: &str, after: &str) -> Option<String> {
    let schedule = Schedule::parse(schedule, zone).unwrap();
    schedule
        .next(after.parse().unwrap())
        .map(|it| it.to_string())
}

#[test]
fn fields_are_numbers_ranges_steps_names_and_words() {
    // 2026-01-02 is a Friday.
    for (schedule, expected) in [
        ("* * * * *", "2026-01-02T03:05:00Z"),
        ("*/15 * * * *", "2026-01-02T03:15:00Z"),
        ("7/20 * * * *", "2026-01-02T03:07:00Z"),
        ("0 9 * * *", "2026-01-02T09:00:00Z"),
        ("0 2 * * *", "2026-01-03T02:00:00Z"),
        ("30 4-6/2 * * *", "2026-01-02T04:30:00Z"),
        ("0 0 1 * *", "2026-02-01T00:00:00Z"),
        ("0 0 ? MAR sun", "2026-03-01T00:00:00Z"),
        ("0 0 * * mon-Wed", "2026-01-05T00:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0,30 3 * * *", "2026-01-02T03:30:00Z"),
        ("@hourly", "2026-01-02T04:00:00Z"),
        ("@midnight", "2026-01-03T00:00:00Z"),
        ("@weekly", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-02-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
        ("@every 90s", "2026-01-02T03:05:35Z"),
        ("@every 1h30m", "2026-01-02T04:34:05Z"),
        ("@every 10ms", "2026-01-02T03:04:06Z"),
    ] {
        let found = next(schedule, "", "2026-01-02T03:04:05Z");
        assert_eq!(found.as_deref(), Some(expected), "{schedule}");
    }
}

#[test]
fn days_of_month_and_week_are_alternatives_if_both_are_said() {
    let after = "2026-01-02T00:00:00Z";
    let found = |schedule| next(schedule, "", after).unwrap();
    assert_eq!(found("0 0 13 * 1"), "2026-01-05T00:00:00Z");
    assert_eq!(found("0 0 4 * 1"), "2026-01-04T00:00:00Z");
    assert_eq!(found("0 0 */2 * 1"), "2026-01-03T00:00:00Z");
    assert_eq!(found("0 0 * * 1"), "2026-01-05T00:00:00Z");
}

#[test]
fn a_day_that_never_comes_is_none() {
    assert_eq!(next("59 23 31 2 *", "", "2026-01-02T00:00:00Z"), None);
}

#[test]
fn zones_shift_the_time() {
    let tokyo = next("0 9 * * *", "Asia/Tokyo", "2026-01-02T03:00:00Z");
    assert_eq!(tokyo.as_deref(), Some("2026-01-03T00:00:00Z"));
    let inline = next("TZ=Asia/Tokyo 0 9 * * *", "", "2026-01-02T03:00:00Z");
    assert_eq!(inline, tokyo);
    let zone = zone("Asia/Tokyo").unwrap();
    let time = "2026-01-03T00:00:00Z".parse().unwrap();
    assert_eq!(Schedule::in_zone(&zone, time), "2026-01-03T09:00:00+09:00");
    let utc = super::zone("").unwrap();
    assert_eq!(Schedule::in_zone(&utc, time), "2026-01-03T00:00:00Z");
}

#[test]
fn skipped_local_times_do_not_fire_and_repeated_ones_fire_twice() {
    let berlin = |schedule, after| next(schedule, "Europe/Berlin", after).unwrap();
    // On 29 March 2026 the clock goes from 2:00 to 3:00.
    assert_eq!(
        berlin("30 2 * * *", "2026-03-28T12:00:00Z"),
        "2026-03-30T00:30:00Z"
    );
    // On 25 October 2026 the clock goes from 3:00 back to 2:00.
    assert_eq!(
        berlin("30 2 * * *", "2026-10-24T12:00:00Z"),
        "2026-10-25T00:30:00Z"
    );
    assert_eq!(
        berlin("30 2 * * *", "2026-10-25T00:30:00Z"),
        "2026-10-25T01:30:00Z"
    );
}

#[test]
fn what_is_no_schedule_is_refused_with_the_reason() {
    for (schedule, text) in [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        (
            "9-3 * * * *",
            "beginning of range (9) beyond end of range (3): 9-3",
        ),
        (
            "*/0 * * * *",
            "step of range should be a positive number: */0",
        ),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("x * * * *", "failed to parse int from x: invalid syntax"),
        ("@often", "unrecognized descriptor: @often"),
        (
            "TZ=No/Where * * * * *",
            "provided bad location No/Where: unknown time zone No/Where",
        ),
    ] {
        let error = Schedule::parse(schedule, "").unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}
