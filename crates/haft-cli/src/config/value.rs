//! A value on its way from a layer to the settings, and how it is read.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use haft_core::duration;

/// A value as a layer has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A text.
    Text(String),
    /// A whole number, as its digits.
    Number(String),
    /// `true` or `false`.
    Switch(bool),
    /// A list of texts.
    List(Vec<String>),
    /// Anything that no key takes, by its name.
    Other(&'static str),
}

/// Says what was expected. It never repeats the value, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong(pub(crate) String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrong<T>(text: &str) -> Result<T, Wrong> {
    Err(Wrong(text.to_owned()))
}

impl Value {
    /// Reads the text of an environment variable for a key whose default is a list or not.
    pub(crate) fn from_environment(text: &str, list: bool) -> Self {
        if list {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            return Self::List(items.map(str::to_owned).collect());
        }
        Self::Text(text.trim().to_owned())
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> Result<&str, Wrong> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Number(_) => wrong("must be a text in quotes, not a number"),
            Self::Switch(_) => wrong("must be a text in quotes, not a boolean"),
            Self::List(_) => wrong("must be a text in quotes, not a list"),
            Self::Other(kind) => Err(Wrong(format!("must be a text in quotes, not {kind}"))),
        }
    }

    /// Returns the list.
    pub(crate) fn list(&self) -> Result<Vec<String>, Wrong> {
        match self {
            Self::List(items) => Ok(items.clone()),
            Self::Text(_) | Self::Number(_) | Self::Switch(_) | Self::Other(_) => {
                wrong("must be a list of texts, as in [\"one\", \"two\"]")
            }
        }
    }

    /// Returns origins, as browsers name them.
    pub(crate) fn origins(&self) -> Result<Vec<String>, Wrong> {
        let list = self.list()?;
        let fits = |origin: &String| {
            let parsed = url::Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            origin == "*" || parsed.is_some_and(|url| url.origin().ascii_serialization() == *origin)
        };
        match list.iter().find(|origin| !fits(origin)) {
            None => Ok(list),
            Some(_) => {
                wrong("must be origins, as in [\"https://app.example.com\"]: no path, no `/` at the end")
            }
        }
    }

    /// Returns whether something is on.
    pub(crate) fn switch(&self) -> Result<bool, Wrong> {
        match self {
            Self::Switch(on) => Ok(*on),
            Self::Text(text) if text == "true" => Ok(true),
            Self::Text(text) if text == "false" => Ok(false),
            Self::Text(_) | Self::Number(_) | Self::List(_) | Self::Other(_) => {
                wrong("must be true or false")
            }
        }
    }

    /// Returns a whole number within bounds.
    pub(crate) fn number(&self, bounds: RangeInclusive<u64>) -> Result<u64, Wrong> {
        let digits = match self {
            Self::Text(text) | Self::Number(text) => text.replace('_', ""),
            Self::Switch(_) | Self::List(_) | Self::Other(_) => String::new(),
        };
        digits.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(|| {
            Wrong(format!("must be a whole number from {} to {}", bounds.start(), bounds.end()))
        })
    }

    /// Returns a whole number within bounds as a size.
    pub(crate) fn size(&self, bounds: RangeInclusive<u64>) -> Result<usize, Wrong> {
        usize::try_from(self.number(bounds)?).map_err(|_| Wrong("is too large for this machine".to_owned()))
    }

    /// Returns a duration such as `30s`.
    pub(crate) fn duration(&self) -> Result<Duration, Wrong> {
        let text =
            self.text().map_err(|_| Wrong("must be a duration in quotes, as in \"30s\"".to_owned()))?;
        duration::parse(text, Duration::from_secs(1)).map_err(|error| Wrong(format!("does not fit: {error}")))
    }

    /// Returns an address such as `127.0.0.1:18789`.
    pub(crate) fn addr(&self) -> Result<SocketAddr, Wrong> {
        parse_addr(self.text()?)
            .ok_or_else(|| Wrong("must be an address with a port, as in \"127.0.0.1:18789\"".to_owned()))
    }

    /// Returns one of a few words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Wrong> {
        let text = self.text()?;
        choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            Wrong(format!("must be {}", words.join(" or ")))
        })
    }
}

/// Reads `HOST:PORT`, where the host is an IP address or `localhost`.
pub(crate) fn parse_addr(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?)),
        None => text.parse().ok(),
    }
}
