//! Reading times and zones.

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

/// How many zones are named where one is not known.
const NEAREST: usize = 3;

/// What to write where a format means nothing.
pub(super) const NO_PERCENT: &str = "its parts begin with `%`, such as `%Y-%m-%d %H:%M`";

/// Finds a zone, or says which ones have a similar name.
pub(super) fn zone(name: Option<&str>) -> Result<TimeZone, CallError> {
    let Some(name) = name else { return Ok(TimeZone::UTC) };
    db().get(name).or_else(|_| offset(name)).map_err(|()| {
        let near = nearest(name);
        let hint = near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        invalid(format!(
            "`timezone`: there is no time zone `{}`; the nearest names are {hint}",
            excerpt(name, 60)
        ))
    })
}

/// A fixed offset, as in `+02:00`.
fn offset(name: &str) -> Result<TimeZone, ()> {
    let moment = format!("2000-01-01T00:00:00{name}[{name}]");
    let fixed = name.starts_with(['+', '-']).then(|| moment.parse::<Zoned>().ok()).flatten();
    fixed.map(|time| time.time_zone().clone()).ok_or(())
}

fn nearest(name: &str) -> Vec<String> {
    let wanted = name.to_lowercase().replace(' ', "_");
    let likeness = |zone: &str| {
        let zone = zone.to_lowercase();
        let city = zone.rsplit('/').next().unwrap_or(&zone);
        strsim::jaro_winkler(&wanted, &zone).max(strsim::jaro_winkler(&wanted, city))
    };
    let mut known: Vec<(f64, String)> =
        db().available().map(|zone| (likeness(zone.as_str()), zone.as_str().to_owned())).collect();
    known.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    known.into_iter().take(NEAREST).map(|(_, zone)| zone).collect()
}

/// Reads a time in any usual form, or in the given one. What has no offset is in the zone.
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
    let read = match format {
        Some(format) => by_format(format, &text, zone),
        None => usual(&text, zone),
    };
    read.ok_or_else(|| {
        // In some zone, the first and the last day that can be written begin or end in another year.
        if format.is_none() && text.trim_end_matches('Z').parse::<DateTime>().is_ok() {
            let message = format!("`{field}`: `{}` is too far away; use a time", excerpt(&text, 60));
            return invalid(message + " from -9999-01-03 to 9999-12-29");
        }
        let how = match format {
            Some(format) if !format.contains('%') => {
                format!("as `{}` says; {NO_PERCENT}", excerpt(format, 60))
            }
            Some(format) => format!("as `{}` says", excerpt(format, 60)),
            None if text.len() > 11 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                "; numbers are seconds since 1970, not milliseconds".to_owned()
            }
            None => "; write it like 2026-11-15T09:30:00Z, 2026-11-15 09:30 or 2026-11-15, or give `format`"
                .to_owned(),
        };
        invalid(
            format!("`{field}`: `{}` cannot be read as a time {how}", excerpt(&text, 60)).replace(" ;", ";"),
        )
    })
}

fn usual(text: &str, zone: &TimeZone) -> Option<Zoned> {
    if let Ok(time) = text.parse::<Zoned>() {
        return Some(time);
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        // The day is that of the offset which was written.
        return Some(moment.to_zoned(written_offset(text).unwrap_or_else(|| zone.clone())));
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        return civil.to_zoned(zone.clone()).ok();
    }
    if let Some(moment) = unix(text) {
        return Some(moment.to_zoned(zone.clone()));
    }
    rfc2822::DateTimeParser::new().parse_zoned(text).ok()
}

fn written_offset(text: &str) -> Option<TimeZone> {
    match Pieces::parse(text).ok()?.offset()? {
        PiecesOffset::Numeric(numeric) => Some(TimeZone::fixed(numeric.offset())),
        _ => None,
    }
}

/// Unix seconds, with a fraction or without.
fn unix(text: &str) -> Option<Timestamp> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Timestamp::from_second(seconds).ok();
    }
    let seconds: f64 =
        text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && seconds.abs() < 3e11)?;
    let duration = jiff::SignedDuration::try_from_secs_f64(seconds).ok()?;
    Timestamp::from_duration(duration).ok()
}

fn by_format(format: &str, text: &str, zone: &TimeZone) -> Option<Zoned> {
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

/// Reads a duration, in ISO 8601 or in words.
pub(super) fn span(text: Option<&str>) -> Result<Span, CallError> {
    let text =
        text.ok_or_else(|| invalid("`duration` is missing: how far to go, such as `1 month 2 days`"))?;
    text.trim().parse().map_err(|_| {
        invalid(format!(
            "`duration`: `{}` is not a duration; write it like `1 month 2 days`, `90m` or `P1DT12H`",
            excerpt(text, 60)
        ))
    })
}
