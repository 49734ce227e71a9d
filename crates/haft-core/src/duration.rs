//! Parses and formats durations in every notation of the dialects: `30s`, `1m30s`, `250ms`, `10`.

use std::borrow::Cow;
use std::time::Duration;

/// The error of parsing a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration `{text}`; {}", .hint.as_deref().unwrap_or("expected a value such as `500ms`, `30s`, `5m` or `1m30s`"))]
pub struct DurationError {
    /// The text, truncated.
    text: String,
    /// How to write what was probably meant.
    hint: Option<Cow<'static, str>>,
}

/// The maximum duration in a definition: one day.
pub const MAX_LENGTH: Duration = Duration::from_hours(24);

/// Parses `500ms`, `30s`, `1.5s`, `5m`, `2h` and sequences of them; a bare number is in `unit`.
///
/// ```
/// use std::time::Duration;
/// let second = Duration::from_secs(1);
/// assert_eq!(haft_core::duration::parse("1m30s", second), Ok(Duration::from_secs(90)));
/// assert_eq!(haft_core::duration::parse("10", second), Ok(Duration::from_secs(10)));
/// assert!(haft_core::duration::parse("soon", second).is_err());
/// ```
pub fn parse(text: &str, unit: Duration) -> Result<Duration, DurationError> {
    let fail =
        || DurationError { text: crate::problem::excerpt(text, 40), hint: hint(text).map(Cow::Borrowed) };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(fail());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let amount: f64 = number.parse().map_err(|_| fail())?;
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (name, next) = after.split_at(letters);
        let one = match name {
            "" if next.is_empty() && total.is_zero() => unit,
            "ms" => Duration::from_millis(1),
            "s" | "sec" | "secs" => Duration::from_secs(1),
            "m" | "min" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            _ => return Err(fail()),
        };
        let part = Duration::try_from_secs_f64(one.as_secs_f64() * amount).map_err(|_| fail())?;
        total = total.checked_add(part).filter(|sum| *sum <= MAX_LENGTH).ok_or_else(fail)?;
        rest = next;
    }
    Ok(total)
}

/// Parses a duration that may be longer than a day: `90d`, `48h`, or one that [`parse`] accepts.
///
/// ```
/// use std::time::Duration;
/// let second = Duration::from_secs(1);
/// assert_eq!(haft_core::duration::parse_long("90d", second), Ok(Duration::from_hours(90 * 24)));
/// let error = haft_core::duration::parse_long("90 days", second).unwrap_err();
/// assert_eq!(error.to_string(), "invalid duration `90 days`; write `90d`");
/// ```
pub fn parse_long(text: &str, unit: Duration) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    let letters = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = trimmed.get(..trimmed.len() - letters.len()).unwrap_or_default();
    let (name, hours) = match letters.trim().to_lowercase().as_str() {
        "d" | "day" | "days" => ("d", 24),
        "w" | "week" | "weeks" => ("w", 24 * 7),
        "h" | "hr" | "hrs" | "hour" | "hours" => ("h", 1),
        _ => {
            let general = || Cow::Borrowed("expected a value such as `30s`, `5m`, `12h` or `90d`");
            return parse(text, unit)
                .map_err(|error| DurationError { hint: Some(error.hint.unwrap_or_else(general)), ..error });
        }
    };
    let fail = |hint: String| DurationError {
        text: crate::problem::excerpt(text, 40),
        hint: Some(Cow::Owned(hint)),
    };
    let count = number.parse::<u64>().ok().and_then(|count| count.checked_mul(hours));
    let seconds = count.and_then(|hours| hours.checked_mul(3600));
    let seconds = seconds.ok_or_else(|| fail("expected a value such as `12h` or `90d`".to_owned()))?;
    match name {
        "w" => Err(fail(format!("write `{}d`", seconds / 86_400))),
        _ if letters == name => Ok(Duration::from_secs(seconds)),
        _ => Err(fail(format!("write `{number}{name}`"))),
    }
}

/// Returns a hint for an unsupported unit.
fn hint(text: &str) -> Option<&'static str> {
    let unit =
        text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace()).trim_end();
    if unit.len() == text.len() {
        return None;
    }
    match unit.to_lowercase().as_str() {
        "d" | "day" | "days" => Some("write days in hours, such as `24h`; the maximum is one day"),
        "h" | "hr" | "hrs" | "hour" | "hours" => {
            Some("write hours as `2h`, without a space; the maximum is `24h`")
        }
        "m" | "min" | "mins" | "minute" | "minutes" => Some("write minutes as `5m`, without a space"),
        "s" | "sec" | "secs" | "second" | "seconds" => Some("write seconds as `30s`, without a space"),
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => {
            Some("write milliseconds as `500ms`, without a space")
        }
        "us" | "µs" | "μs" | "ns" => Some("the smallest unit is the millisecond, such as `1ms`"),
        _ => None,
    }
}

/// Formats a duration in its shortest exact form.
pub fn format(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 => "0s".to_owned(),
        m if m % 3_600_000 == 0 => format!("{}h", m / 3_600_000),
        m if m % 60_000 == 0 => format!("{}m", m / 60_000),
        m if m % 1000 == 0 => format!("{}s", m / 1000),
        m => format!("{m}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let second = Duration::from_secs(1);
        for (text, millis) in [
            ("30s", 30_000),
            ("250ms", 250),
            ("5m", 300_000),
            ("1m30s", 90_000),
            ("1.5s", 1500),
            ("10", 10_000),
            ("2h", 7_200_000),
        ] {
            assert_eq!(parse(text, second), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "soon", "-1s", "1d", "10 s", "s", "99999h", "1e9s", "1s2"] {
            assert!(parse(bad, second).is_err(), "{bad}");
        }
    }

    #[test]
    fn hints_for_wrong_units() {
        let messages = ["1d", "30 s", "5 minutes", "99h", "10us", "2S", "soon", "1s2", "-1s"]
            .map(|text| parse(text, Duration::from_secs(1)).unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
invalid duration `1d`; write days in hours, such as `24h`; the maximum is one day
invalid duration `30 s`; write seconds as `30s`, without a space
invalid duration `5 minutes`; write minutes as `5m`, without a space
invalid duration `99h`; write hours as `2h`, without a space; the maximum is `24h`
invalid duration `10us`; the smallest unit is the millisecond, such as `1ms`
invalid duration `2S`; write seconds as `30s`, without a space
invalid duration `soon`; expected a value such as `500ms`, `30s`, `5m` or `1m30s`
invalid duration `1s2`; expected a value such as `500ms`, `30s`, `5m` or `1m30s`
invalid duration `-1s`; expected a value such as `500ms`, `30s`, `5m` or `1m30s`
");
    }

    #[test]
    fn durations_of_several_days() {
        let second = Duration::from_secs(1);
        for (text, hours) in [("90d", 2160), ("48h", 48), (" 7d ", 168), ("24h", 24)] {
            assert_eq!(parse_long(text, second), Ok(Duration::from_hours(hours)), "{text}");
        }
        let messages = ["90 days", "2 weeks", "1 hour", "d", "soon", "30 seconds"]
            .map(|text| parse_long(text, second).unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        invalid duration `90 days`; write `90d`
        invalid duration `2 weeks`; write `14d`
        invalid duration `1 hour`; write `1h`
        invalid duration `d`; expected a value such as `12h` or `90d`
        invalid duration `soon`; expected a value such as `30s`, `5m`, `12h` or `90d`
        invalid duration `30 seconds`; write seconds as `30s`, without a space
        ");
    }

    #[test]
    fn formatted_durations_round_trip() {
        for millis in [0, 1, 999, 1000, 1500, 60_000, 90_000, 3_600_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(&format(duration), Duration::from_secs(1)), Ok(duration));
        }
    }
}
