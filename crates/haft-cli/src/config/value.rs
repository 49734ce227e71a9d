//! Values of the configuration, and their conversion to settings.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use haft_core::duration;

/// A value from a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A string.
    Text(String),
    /// An integer, as its digits.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
    /// A list of strings.
    List(Vec<String>),
    /// Another type, by name.
    Other(&'static str),
}

/// What was expected. The value is not repeated, because it may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidValue(pub(crate) String);

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn invalid<T>(text: &str) -> Result<T, InvalidValue> {
    Err(InvalidValue(text.to_owned()))
}

impl Value {
    /// Converts the text of an environment variable; `list` is whether the key takes a list.
    pub(crate) fn from_environment(text: &str, list: bool) -> Self {
        if list {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            return Self::List(items.map(str::to_owned).collect());
        }
        Self::Text(text.trim().to_owned())
    }

    /// Returns the string.
    pub(crate) fn text(&self) -> Result<&str, InvalidValue> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Number(_) => invalid("must be a string, not a number"),
            Self::Boolean(_) => invalid("must be a string, not a boolean"),
            Self::List(_) => invalid("must be a string, not a list"),
            Self::Other(kind) => Err(InvalidValue(format!("must be a string, not {kind}"))),
        }
    }

    /// Returns the list.
    pub(crate) fn list(&self) -> Result<Vec<String>, InvalidValue> {
        match self {
            Self::List(items) => Ok(items.clone()),
            Self::Text(_) | Self::Number(_) | Self::Boolean(_) | Self::Other(_) => {
                invalid("must be a list of strings, e.g. [\"one\", \"two\"]")
            }
        }
    }

    /// Returns a list of origins.
    pub(crate) fn origins(&self) -> Result<Vec<String>, InvalidValue> {
        let list = self.list()?;
        let is_valid = |origin: &String| {
            let parsed = url::Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            origin == "*" || parsed.is_some_and(|url| url.origin().ascii_serialization() == *origin)
        };
        match list.iter().find(|origin| !is_valid(origin)) {
            None => Ok(list),
            Some(_) => invalid(
                "must be a list of origins, e.g. [\"https://app.example.com\"], without path or trailing `/`",
            ),
        }
    }

    /// Returns the boolean.
    pub(crate) fn boolean(&self) -> Result<bool, InvalidValue> {
        match self {
            Self::Boolean(on) => Ok(*on),
            Self::Text(text) if text == "true" => Ok(true),
            Self::Text(text) if text == "false" => Ok(false),
            Self::Text(_) | Self::Number(_) | Self::List(_) | Self::Other(_) => {
                invalid("must be true or false")
            }
        }
    }

    /// Returns an integer within bounds.
    pub(crate) fn number(&self, bounds: RangeInclusive<u64>) -> Result<u64, InvalidValue> {
        let digits = match self {
            Self::Text(text) | Self::Number(text) => text.replace('_', ""),
            Self::Boolean(_) | Self::List(_) | Self::Other(_) => String::new(),
        };
        digits.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(|| {
            InvalidValue(format!("must be an integer from {} to {}", bounds.start(), bounds.end()))
        })
    }

    /// Returns an integer within bounds as a size.
    pub(crate) fn size(&self, bounds: RangeInclusive<u64>) -> Result<usize, InvalidValue> {
        usize::try_from(self.number(bounds)?)
            .map_err(|_| InvalidValue("is too large for this machine".to_owned()))
    }

    /// Returns a duration such as `30s`.
    pub(crate) fn duration(&self) -> Result<Duration, InvalidValue> {
        let text =
            self.text().map_err(|_| InvalidValue("must be a duration string, e.g. \"30s\"".to_owned()))?;
        duration::parse(text, Duration::from_secs(1))
            .map_err(|error| InvalidValue(format!("is invalid: {error}")))
    }

    /// Returns a duration that may be longer than a day: `30s`, `24h`, `7d`.
    pub(crate) fn long_duration(&self) -> Result<Duration, InvalidValue> {
        let text =
            self.text().map_err(|_| InvalidValue("must be a duration string, e.g. \"7d\"".to_owned()))?;
        let time = duration::parse_long(text, Duration::from_secs(1));
        let time = time.map_err(|error| InvalidValue(format!("is invalid: {error}")))?;
        if time > Duration::from_hours(24 * u64::from(MAX_DAYS)) {
            return Err(InvalidValue(format!("must be at most \"{MAX_DAYS}d\"")));
        }
        Ok(time)
    }

    /// Returns an address such as `127.0.0.1:18789`.
    pub(crate) fn addr(&self) -> Result<SocketAddr, InvalidValue> {
        parse_addr(self.text()?).ok_or_else(|| {
            InvalidValue("must be an IP address with a port, e.g. \"127.0.0.1:18789\"".to_owned())
        })
    }

    /// Returns one of a set of values.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, InvalidValue> {
        let text = self.text()?;
        choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            InvalidValue(format!("must be {}", words.join(" or ")))
        })
    }
}

/// The longest duration in days.
const MAX_DAYS: u32 = 36_500;

/// Parses `HOST:PORT`, where the host is an IP address or `localhost`.
pub(crate) fn parse_addr(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?)),
        None => text.parse().ok(),
    }
}
