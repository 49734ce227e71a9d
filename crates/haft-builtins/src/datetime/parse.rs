//! Parses times, time zones and durations.

use haft_core::Timestamp;
use haft_core::outcome::CallError;
use haft_core::problem::excerpt;
use jiff::civil::DateTime;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::{TimeZone, db};
use jiff::{Span, Zoned};
use serde_json::Value;

use crate::tool::invalid;

/// The number of suggestions for an unknown time zone.
const MAX_SUGGESTIONS: usize = 3;

/// The hint for a format without conversion specifiers.
pub(super) const FORMAT_HINT: &str = "use conversion specifiers such as `%Y-%m-%d %H:%M`";

/// Returns a time zone by name; the error suggests similar names.
pub(super) fn zone(name: Option<&str>) -> Result<TimeZone, CallError> {
    let Some(name) = name else { return Ok(TimeZone::UTC) };
    db().get(name).or_else(|_| offset(name)).map_err(|()| {
        let similar = similar_zones(name).iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
        let (name, hint) = (excerpt(name, 60), similar.join(", "));
        invalid(format!("`timezone`: unknown time zone `{name}`; similar names: {hint}"))
    })
}

/// Parses a fixed offset such as `+02:00`.
fn offset(name: &str) -> Result<TimeZone, ()> {
    let moment = format!("2000-01-01T00:00:00{name}[{name}]");
    let fixed = name.starts_with(['+', '-']).then(|| moment.parse::<Zoned>().ok()).flatten();
    fixed.map(|time| time.time_zone().clone()).ok_or(())
}

fn similar_zones(name: &str) -> Vec<String> {
    let name = name.to_lowercase().replace(' ', "_");
    let similarity = |zone: &str| {
        let zone = zone.to_lowercase();
        let city = zone.rsplit('/').next().unwrap_or(&zone);
        strsim::jaro_winkler(&name, &zone).max(strsim::jaro_winkler(&name, city))
    };
    let mut zones: Vec<(f64, String)> =
        db().available().map(|zone| (similarity(zone.as_str()), zone.as_str().to_owned())).collect();
    zones.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    zones.into_iter().take(MAX_SUGGESTIONS).map(|(_, zone)| zone).collect()
}

/// Parses a time in a common format, or in the given one. A time without an offset is in `zone`.
pub(super) fn time(
    field: &str,
    value: Option<&Value>,
    format: Option<&str>,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<Zoned, CallError> {
    let text = match value {
        None => return Ok(now.to_zoned(zone.clone())),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(number) => number.to_string(),
    };
    if text == "now" {
        return Ok(now.to_zoned(zone.clone()));
    }
    let parsed = match format {
        Some(format) => with_format(format, &text, zone),
        None => common_format(&text, zone),
    };
    parsed.ok_or_else(|| {
        let shown = excerpt(&text, 60);
        // The first and the last days do not exist in every time zone.
        if format.is_none() && text.trim_end_matches('Z').parse::<DateTime>().is_ok() {
            return invalid(format!(
                "`{field}`: `{shown}` is out of range; use a time from -9999-01-03 to 9999-12-29"
            ));
        }
        let reason = match format {
            Some(format) if !format.contains('%') => {
                format!(" does not match the format `{}`; {FORMAT_HINT}", excerpt(format, 60))
            }
            Some(format) => format!(" does not match the format `{}`", excerpt(format, 60)),
            None if text.len() > 11 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                " is not a valid time; numbers are Unix seconds, not milliseconds".to_owned()
            }
            None => " is not a valid time; use a form such as 2026-11-15T09:30:00Z, 2026-11-15 09:30 or \
                     2026-11-15, or set `format`"
                .to_owned(),
        };
        invalid(format!("`{field}`: `{shown}`{reason}"))
    })
}

fn common_format(text: &str, zone: &TimeZone) -> Option<Zoned> {
    if let Ok(time) = text.parse::<Zoned>() {
        return Some(time);
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        // Keep the offset of the text, so that the date stays the same.
        return Some(moment.to_zoned(explicit_offset(text).unwrap_or_else(|| zone.clone())));
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        return civil.to_zoned(zone.clone()).ok();
    }
    if let Some(moment) = unix_seconds(text) {
        return Some(moment.to_zoned(zone.clone()));
    }
    rfc2822::DateTimeParser::new().parse_zoned(text).ok()
}

fn explicit_offset(text: &str) -> Option<TimeZone> {
    match Pieces::parse(text).ok()?.offset()? {
        PiecesOffset::Numeric(numeric) => Some(TimeZone::fixed(numeric.offset())),
        _ => None,
    }
}

/// Parses Unix seconds with an optional fraction.
fn unix_seconds(text: &str) -> Option<Timestamp> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Timestamp::from_second(seconds).ok();
    }
    let seconds: f64 =
        text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && seconds.abs() < 3e11)?;
    let duration = jiff::SignedDuration::try_from_secs_f64(seconds).ok()?;
    Timestamp::from_duration(duration).ok()
}

fn with_format(format: &str, text: &str, zone: &TimeZone) -> Option<Zoned> {
    let parsed = strtime::parse(format, text).ok()?;
    if let Ok(time) = parsed.to_zoned() {
        return Some(time);
    }
    if let Ok(moment) = parsed.to_timestamp() {
        return Some(moment.to_zoned(zone.clone()));
    }
    let civil = parsed.to_datetime().or_else(|_| parsed.to_date().map(|date| date.at(0, 0, 0, 0))).ok()?;
    civil.to_zoned(zone.clone()).ok()
}

/// Parses a duration in ISO 8601 or in words.
pub(super) fn duration(text: Option<&str>) -> Result<Span, CallError> {
    let text =
        text.ok_or_else(|| invalid("`duration` is missing; pass a duration such as `1 month 2 days`"))?;
    text.trim().parse().map_err(|_| {
        invalid(format!(
            "`duration`: `{}` is not a valid duration; use a form such as `1 month 2 days`, `90m` or `P1DT12H`",
            excerpt(text, 60)
        ))
    })
}
