//! Determines the base URL of operations.

use serde_json::{Map, Value};
use url::Url;

use super::document::{Document, Operation};
use haft_core::problem::{Problem, excerpt};

/// Why an operation has no base URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ServerError {
    #[error("the document has no server; set the base URL (`base_url`, `--base-url`)")]
    None,
    #[error(
        "the server `{0}` is relative, and the URL of the document is unknown; set the base URL (`base_url`, `--base-url`)"
    )]
    Relative(String),
    #[error(
        "the server `{0}` is not an `http` or `https` URL without user name; set the base URL (`base_url`, `--base-url`)"
    )]
    Invalid(String),
    #[error(
        "the server `{url}` has the variable `{name}` without a default; set the base URL (`base_url`, `--base-url`)"
    )]
    Variable { url: String, name: String },
}

/// Base URLs from outside the document.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BaseUrls<'a> {
    /// The base URL of the import options, which takes precedence over all servers.
    pub(super) given: Option<&'a str>,
    /// The URL of the document, to resolve relative server URLs.
    pub(super) fetched: Option<&'a str>,
}

/// Returns the base URL of an operation, without a trailing slash.
pub(super) fn base(
    document: &Document,
    operation: &Operation<'_>,
    base_urls: BaseUrls<'_>,
) -> Result<String, ServerError> {
    if let Some(given) = base_urls.given {
        return finish(given, given);
    }
    let server = first(operation.value)
        .or_else(|| first(operation.item))
        .or_else(|| document.root.as_object().and_then(first));
    let Some(server) = server else {
        return match base_urls.fetched {
            Some(fetched) => relative(fetched, "/"),
            None => Err(ServerError::None),
        };
    };
    let url = substitute_variables(server)?;
    let lower = url.get(..8).unwrap_or(&url).to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return finish(&url, &url);
    }
    match base_urls.fetched {
        Some(fetched) => relative(fetched, &url),
        None => Err(ServerError::Relative(excerpt(&url, 80))),
    }
}

/// Validates the base URL of the import options, so that an error is not reported for each operation.
pub(crate) fn check_given(given: &str) -> Result<(), Problem> {
    finish(given, given).map(drop).map_err(|_| {
        let message = format!("`{}` is not an `http` or `https` URL without user name", excerpt(given, 80));
        Problem::new("base_url", "invalid_url", message)
    })
}

/// Returns a base URL without a trailing slash, as a template; `None` if it is not an `http` or `https` URL.
pub(crate) fn normalize_base(url: &str) -> Option<String> {
    finish(url, url).ok()
}

fn first(holder: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let servers = holder.get("servers").and_then(Value::as_array)?;
    servers.iter().filter_map(Value::as_object).find(|server| server.get("url").is_some_and(Value::is_string))
}

/// Replaces the variables of a server URL by their defaults.
fn substitute_variables(server: &Map<String, Value>) -> Result<String, ServerError> {
    let url = server.get("url").and_then(Value::as_str).unwrap_or_default().trim();
    let variables = server.get("variables").and_then(Value::as_object);
    let mut out = String::with_capacity(url.len());
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        let variable = variables.and_then(|variables| variables.get(name));
        let value = match variable.and_then(|variable| variable.get("default")) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(ServerError::Variable { url: excerpt(url, 80), name: excerpt(name, 40) }),
        };
        out.push_str(before);
        out.push_str(&value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn relative(fetched: &str, url: &str) -> Result<String, ServerError> {
    let joined = Url::parse(fetched).and_then(|base| base.join(url));
    let joined = joined.map_err(|_| ServerError::Relative(excerpt(url, 80)))?;
    finish(joined.as_str(), url)
}

fn finish(url: &str, shown: &str) -> Result<String, ServerError> {
    let invalid = || ServerError::Invalid(excerpt(shown, 80));
    let mut url = Url::parse(url.trim()).map_err(|_| invalid())?;
    let plain =
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    if !plain || url.host_str().is_none_or(str::is_empty) {
        return Err(invalid());
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(escape_template(url.as_str().trim_end_matches('/')))
}

/// Escapes a text for a URL template, so that it never contains a reference.
pub(crate) fn escape_template(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let odd = c.is_control()
            || c.is_whitespace()
            || !c.is_ascii()
            || matches!(c, '$' | '{' | '}' | '"' | '<' | '>' | '\\' | '^' | '`' | '|');
        if odd {
            out.push_str(&haft_core::encode::percent_encode(c.encode_utf8(&mut [0; 4])));
        } else {
            out.push(c);
        }
    }
    out
}
