//! Parses durations at compile time, in the syntax of definitions: `500ms`, `30s`, `1m30s`.

use std::time::Duration;

use syn::{LitStr, Result};

/// The maximum timeout of a tool, as in definitions.
const MAX_DURATION: Duration = Duration::from_hours(1);

/// Parses a duration literal.
pub(crate) fn from_literal(literal: &LitStr) -> Result<Duration> {
    parse(&literal.value()).ok_or_else(|| {
        let message = "invalid duration; use a form such as `500ms`, `30s`, `5m` or `1m30s`, at most `1h`";
        syn::Error::new_spanned(literal, message)
    })
}

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let seconds = match unit {
            "ms" => 0.001,
            "s" | "sec" | "secs" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part).filter(|sum| *sum <= MAX_DURATION)?;
        rest = next;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (text, millis) in [
            ("30s", Some(30_000)),
            ("250ms", Some(250)),
            ("5m", Some(300_000)),
            ("1m30s", Some(90_000)),
            ("1.5s", Some(1500)),
            ("1h", Some(3_600_000)),
            ("59m60s", Some(3_600_000)),
            ("0s", Some(0)),
            ("1h1ms", None),
            ("", None),
            ("10", None),
            ("soon", None),
            ("-1s", None),
            ("1d", None),
            ("10 s", None),
            ("25h", None),
            ("1s2", None),
        ] {
            assert_eq!(parse(text), millis.map(Duration::from_millis), "{text}");
        }
    }
}
