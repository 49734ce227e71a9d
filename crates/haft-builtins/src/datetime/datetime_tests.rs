use serde_json::{Value, json};

use super::*;

fn call(args: Value) -> Result<Value, String> {
    let now = "2026-11-15T08:30:00.5Z".parse().unwrap();
    run(&serde_json::from_value(args).unwrap(), now).map_err(|error| error.message)
}

fn iso(args: Value) -> String {
    match call(args) {
        Ok(value) => value["iso"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned(),
        Err(message) => message,
    }
}

#[test]
fn a_time_has_all_fields() {
    assert_eq!(
        call(json!({"operation": "now", "timezone": "Europe/Berlin"})),
        Ok(json!({
            "iso": "2026-11-15T09:30:00.5+01:00", "utc": "2026-11-15T08:30:00.5Z", "timezone": "Europe/Berlin",
            "unix": 1_794_731_400, "date": "2026-11-15", "time": "09:30:00", "weekday": "Sunday"
        }))
    );
}

#[test]
fn times_are_parsed_in_many_formats() {
    for (time, expected) in [
        (json!("2026-11-15T09:30:00Z"), "2026-11-15T09:30:00+00:00"),
        (json!("2026-11-15T09:30:00+05:30"), "2026-11-15T09:30:00+05:30"),
        (json!("2026-11-15T09:30[America/New_York]"), "2026-11-15T09:30:00-05:00"),
        (json!("2026-11-15 09:30"), "2026-11-15T09:30:00+00:00"),
        (json!("2026-11-15"), "2026-11-15T00:00:00+00:00"),
        (json!(0), "1970-01-01T00:00:00+00:00"),
        (json!("1794731400"), "2026-11-15T08:30:00+00:00"),
        (json!(1.5), "1970-01-01T00:00:01.5+00:00"),
        (json!("Sun, 15 Nov 2026 09:30:00 +0100"), "2026-11-15T09:30:00+01:00"),
        (json!(" now "), "2026-11-15T08:30:00.5+00:00"),
        (
            json!("yesterday-ish"),
            "`time`: `yesterday-ish` is not a valid time; use a form such as 2026-11-15T09:30:00Z, 2026-11-15 09:30 or 2026-11-15, or set `format`",
        ),
        (json!("2026-11-15T23:30:00-05:00"), "2026-11-15T23:30:00-05:00"),
        (json!("2026-11-15T23:30:00-05:00[America/New_York]"), "2026-11-15T23:30:00-05:00"),
        (json!("2026-11-15T23:30:00Z"), "2026-11-15T23:30:00+00:00"),
        (
            json!(1_794_731_400_000_u64),
            "`time`: `1794731400000` is not a valid time; numbers are Unix seconds, not milliseconds",
        ),
        (
            json!("9999-12-31T23:00:00Z"),
            "`time`: `9999-12-31T23:00:00Z` is out of range; use a time from -9999-01-03 to 9999-12-29",
        ),
        (
            json!(1e300),
            "`time`: `1e+300` is not a valid time; use a form such as 2026-11-15T09:30:00Z, 2026-11-15 09:30 or 2026-11-15, or set `format`",
        ),
    ] {
        assert_eq!(iso(json!({"operation": "parse", "time": time})), expected, "{time}");
    }
    let by = |time: &str, format: &str| {
        iso(json!({"operation": "parse", "time": time, "format": format, "timezone": "Asia/Tokyo"}))
    };
    assert_eq!(by("15/11/2026", "%d/%m/%Y"), "2026-11-15T00:00:00+09:00");
    assert_eq!(by("15.11.2026 7:05 PM", "%d.%m.%Y %I:%M %p"), "2026-11-15T19:05:00+09:00");
    assert_eq!(by("x", "%d/%m/%Y"), "`time`: `x` does not match the format `%d/%m/%Y`");
}

#[test]
fn time_zones_and_daylight_saving_time() {
    let check = |args: Value, expected: &str| assert_eq!(iso(args.clone()), expected, "{args}");
    check(
        json!({"operation": "convert", "time": "2026-07-01T12:00:00Z", "timezone": "America/New_York"}),
        "2026-07-01T08:00:00-04:00",
    );
    check(
        json!({"operation": "convert", "time": "2026-07-01T12:00:00Z", "timezone": "+05:30"}),
        "2026-07-01T17:30:00+05:30",
    );
    // The day on which the clocks go forward has 23 hours.
    check(
        json!({"operation": "add", "time": "2026-03-28 12:00", "timezone": "Europe/Berlin", "duration": "1 day"}),
        "2026-03-29T12:00:00+02:00",
    );
    check(
        json!({"operation": "add", "time": "2026-03-28 12:00", "timezone": "Europe/Berlin", "duration": "24h"}),
        "2026-03-29T13:00:00+02:00",
    );
    check(
        json!({"operation": "subtract", "time": "2026-03-31", "duration": "P1M"}),
        "2026-02-28T00:00:00+00:00",
    );
    check(
        json!({"operation": "start_of", "time": "2026-11-15 09:30", "unit": "week"}),
        "2026-11-09T00:00:00+00:00",
    );
    check(
        json!({"operation": "start_of", "time": "2026-11-15 09:30:15.25", "unit": "hour"}),
        "2026-11-15T09:00:00+00:00",
    );
    check(
        json!({"operation": "end_of", "time": "2024-02-10", "unit": "month"}),
        "2024-02-29T23:59:59.999999999+00:00",
    );
    check(
        json!({"operation": "end_of", "time": "2026-11-15", "unit": "quarter"}),
        "2026-12-31T23:59:59.999999999+00:00",
    );
    check(
        json!({"operation": "start_of", "time": "2026-06-01T12:00", "unit": "year", "timezone": "Asia/Tokyo"}),
        "2026-01-01T00:00:00+09:00",
    );
}

#[test]
fn differences_and_formats() {
    let difference = |args: Value| call(args).unwrap();
    assert_eq!(
        difference(json!({"operation": "difference", "time": "2026-01-01", "other": "2026-03-02T01:00:00Z"})),
        json!({"text": "60d 1h", "iso": "P60DT1H", "seconds": 5_187_600.0})
    );
    assert_eq!(
        difference(
            json!({"operation": "difference", "time": "2026-03-02", "other": "2026-01-01", "unit": "month"})
        ),
        json!({"text": "2mo 1d ago", "iso": "-P2M1D", "seconds": -5_184_000.0})
    );
    assert_eq!(
        call(json!({"operation": "format", "time": "2026-11-15", "format": "%A, %d %B %Y"})),
        Ok(json!({"text": "Sunday, 15 November 2026"}))
    );
}

#[test]
fn errors_name_the_field_and_the_fix() {
    for (args, expected) in [
        (
            json!({"operation": "now", "timezone": "Europe/Berln"}),
            "`timezone`: unknown time zone `Europe/Berln`; similar names: `Europe/Berlin`, ",
        ),
        (json!({"operation": "now", "timezone": "new york"}), "`America/New_York`"),
        (json!({"operation": "now", "timezone": ""}), "`timezone`: unknown time zone ``"),
        (
            json!({"operation": "now", "timezone": "../../etc/passwd"}),
            "`timezone`: unknown time zone `../../etc/passwd`",
        ),
        (json!({"operation": "add", "time": "2026-01-01"}), "`duration` is missing"),
        (json!({"operation": "add", "duration": "soon"}), "`duration`: `soon` is not a valid duration"),
        (json!({"operation": "add", "duration": "19998 years"}), "the time is out of range"),
        (json!({"operation": "format"}), "`format` is missing"),
        (json!({"operation": "format", "format": "%"}), "`format`: `%` is not a valid format"),
        (json!({"operation": "difference"}), "`other` is missing"),
        (json!({"operation": "start_of"}), "`unit` is missing"),
        (json!({"operation": "end_of", "time": "9999-06-01", "unit": "year"}), "the time is out of range"),
    ] {
        let message = call(args.clone()).unwrap_err();
        assert!(message.contains(expected), "{args}: {message}");
    }
}
