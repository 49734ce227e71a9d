//! Reads the values of configuration keys that need more than a type.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use haft_core::secret::Secret;
use haft_package::signature::{PublicKey, TrustedKey};
use haft_server::settings::{Prices, VaultSettings, check_host};
use tracing_subscriber::EnvFilter;

use super::resolved::Resolved;
use super::value::{InvalidValue, Value};

/// Parses a retention period in days.
pub(super) fn days(value: &Value) -> Result<u32, InvalidValue> {
    value.number(0..=36_500).map(|days| u32::try_from(days).unwrap_or(u32::MAX))
}

/// Parses a size limit.
pub(super) fn bytes(value: &Value) -> Result<u64, InvalidValue> {
    value.number(0..=1 << 50)
}

/// Parses a number of calls.
pub(super) fn rate(value: &Value) -> Result<u32, InvalidValue> {
    value.number(0..=1_000_000_000).map(|calls| u32::try_from(calls).unwrap_or(u32::MAX))
}

/// Parses a retention limit.
pub(super) fn count(value: &Value) -> Result<u32, InvalidValue> {
    value.number(0..=1_000_000_000).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

pub(super) fn hosts(value: &Value) -> Result<Vec<String>, InvalidValue> {
    let hosts = value.list()?;
    for host in &hosts {
        check_host(host)
            .map_err(|error| InvalidValue(format!("has an invalid host pattern `{host}`: {error}")))?;
    }
    Ok(hosts)
}

pub(super) fn set_database(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let text = value.text()?;
    if !text.is_empty() && !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
        return Err(InvalidValue("must be empty or start with `postgres://`".to_owned()));
    }
    to.settings.database_url = (!text.is_empty()).then(|| Secret::new(text.to_owned()));
    Ok(())
}

pub(super) fn set_blob_url(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let text = value.text()?;
    let bucket = text.strip_prefix("s3://").and_then(|place| place.split('/').next());
    if !text.is_empty() && bucket.is_none_or(str::is_empty) {
        return Err(InvalidValue("must be empty or a bucket such as `s3://bucket/haft`".to_owned()));
    }
    to.settings.blobs.url = optional(text);
    Ok(())
}

/// Returns a text unless it is empty.
pub(super) fn optional(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns an absolute path; `None` if the text is empty.
pub(super) fn optional_path(value: &Value) -> Result<Option<PathBuf>, InvalidValue> {
    let path = optional(value.text()?).map(PathBuf::from);
    if path.as_ref().is_some_and(|path| !path.is_absolute()) {
        return Err(InvalidValue("must be empty or an absolute path".to_owned()));
    }
    Ok(path)
}

/// Returns a secret; `None` if the text is empty.
pub(super) fn optional_secret(value: &Value) -> Result<Option<Secret>, InvalidValue> {
    value.text().map(|text| optional(text).map(Secret::new))
}

/// Rejects a lifetime of zero.
pub(super) fn nonzero(time: Duration) -> Result<Duration, InvalidValue> {
    if time.is_zero() {
        return Err(InvalidValue("must be more than \"0s\"".to_owned()));
    }
    Ok(time)
}

/// Returns how long one request to Vault may take.
pub(super) fn vault_timeout(value: &Value) -> Result<Duration, InvalidValue> {
    let timeout = value.duration()?;
    if timeout.is_zero() || timeout > Duration::from_mins(1) {
        return Err(InvalidValue("must be more than \"0s\" and at most \"1m\"".to_owned()));
    }
    Ok(timeout)
}

pub(super) fn set_jwt_file(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let path = optional_path(value)?;
    to.vault().jwt_file = path.unwrap_or_else(|| VaultSettings::default().jwt_file);
    Ok(())
}

pub(super) fn set_public_url(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let text = value.text()?;
    if !text.is_empty() && !is_http_url(text) {
        return Err(InvalidValue("must be empty or a URL such as `https://tools.example.com`".to_owned()));
    }
    to.settings.mcp.public_url = (!text.is_empty()).then(|| text.to_owned());
    Ok(())
}

pub(super) fn is_http_url(text: &str) -> bool {
    let url = url::Url::parse(text).ok();
    url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

pub(super) fn set_index_url(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let text = value.text()?;
    if !text.is_empty() && (!is_http_url(text) || text.contains(char::is_whitespace)) {
        let message = "must be empty or a URL such as `https://pypi.example.com/simple`";
        return Err(InvalidValue(message.to_owned()));
    }
    to.settings.python.index_url = (!text.is_empty()).then(|| Secret::new(text.to_owned()));
    Ok(())
}

pub(super) fn set_sandboxes(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let invalid = || {
        InvalidValue(
            "must be a list of names and absolute paths, e.g. [\"workspace=/srv/workspace\"]".to_owned(),
        )
    };
    let one = |text: String| {
        let (name, path) = text.split_once('=')?;
        let path = PathBuf::from(path.trim());
        path.is_absolute().then(|| (name.trim().to_owned(), path))
    };
    let list = value.list().map_err(|_| invalid())?;
    to.settings.files.sandboxes = list.into_iter().map(one).collect::<Option<_>>().ok_or_else(invalid)?;
    Ok(())
}

pub(super) fn set_trusted_keys(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let one = |text: String| {
        let (name, key) = text.split_once('=').ok_or_else(|| {
            InvalidValue("must be a list of names and keys, e.g. [\"acme=KEY\"]".to_owned())
        })?;
        let key = PublicKey::parse(key.trim())
            .map_err(|error| InvalidValue(format!("has an invalid key: {error}")))?;
        Ok(TrustedKey { name: name.trim().to_owned(), key })
    };
    to.settings.toolsets.trusted_keys =
        value.list()?.into_iter().map(one).collect::<Result<_, InvalidValue>>()?;
    Ok(())
}

pub(super) fn set_level(to: &mut Resolved, value: &Value) -> Result<(), InvalidValue> {
    let text =
        parse_log_filter(value.text()?).map_err(|expected| InvalidValue(format!("must be {expected}")))?;
    to.log.level = text;
    Ok(())
}

/// Checks a log filter; the error says what is expected.
pub(crate) fn parse_log_filter(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_level = |word: &str| LEVELS.contains(&word.to_lowercase().as_str());
    // A single word that is not a level would be read as the name of a module, and nothing else would be logged.
    let is_word = !text.contains(['=', ',', ':']);
    let is_directive = |part: &str| match part.split_once('=') {
        Some((target, level)) => !target.is_empty() && is_level(level),
        None => !part.is_empty(),
    };
    // Filters on spans, such as `haft_server[call{id=7}]=debug`, have a grammar of their own.
    let is_plain = text.contains(['[', '{']) || text.split(',').all(|part| is_directive(part.trim()));
    if (is_word && !is_level(text)) || !is_plain || EnvFilter::try_new(text).is_err() {
        return Err(format!(
            "a level (`{}`), or a list of `MODULE=LEVEL` and levels such as `haft_server=debug,warn`",
            LEVELS.join("`, `")
        ));
    }
    Ok(text.to_owned())
}

/// Returns the addresses of model servers.
pub(super) fn model_urls(value: &Value) -> Result<Vec<String>, InvalidValue> {
    let urls = value.list()?;
    let is_valid = |text: &String| {
        let parsed = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        parsed.is_some_and(|url| url.host_str().is_some())
    };
    match urls.iter().find(|url| !is_valid(url)) {
        None => Ok(urls),
        Some(_) => Err(InvalidValue("must be a list of URLs, e.g. [\"http://localhost:11434\"]".to_owned())),
    }
}

/// Returns the prices of models: `NAME=INPUT/OUTPUT[/CACHED] [CURRENCY]`.
pub(super) fn model_prices(value: &Value) -> Result<BTreeMap<String, Prices>, InvalidValue> {
    let invalid = |text: &str| {
        InvalidValue(format!("must be a list such as [\"claude-sonnet-5=3/15 USD\"]; `{text}` is invalid"))
    };
    let parsed = value.list()?.into_iter().map(|text| {
        let prices = text.split_once('=').and_then(|(name, prices)| {
            let name = Some(name.trim()).filter(|name| !name.is_empty())?;
            Some((name.to_owned(), parse_prices(prices)?))
        });
        prices.ok_or_else(|| invalid(&text))
    });
    parsed.collect()
}

fn parse_prices(text: &str) -> Option<Prices> {
    let (numbers, currency) = match text.trim().split_once(' ') {
        Some((numbers, currency)) => (numbers, Some(currency.trim())),
        None => (text.trim(), None),
    };
    let price =
        |text: &str| text.trim().parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    let numbers = numbers.split('/').map(price).collect::<Option<Vec<_>>>()?;
    let (input, output, cached) = match numbers.as_slice() {
        [input, output] => (*input, *output, None),
        [input, output, cached] => (*input, *output, Some(*cached)),
        _ => return None,
    };
    let mut prices = Prices { cached, ..Prices::new(input, output) };
    if let Some(currency) = currency {
        let is_currency = (1..=8).contains(&currency.len()) && currency.chars().all(char::is_alphanumeric);
        prices.currency = is_currency.then(|| currency.to_owned())?;
    }
    Some(prices)
}
