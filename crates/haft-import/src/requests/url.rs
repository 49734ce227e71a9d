//! The URLs of saved requests.

use haft_core::problem::excerpt;
use serde_json::json;

use super::draft::{Draft, TextUse, has_variable, typed};
use super::{Field, SavedRequest};
use crate::openapi::{escape_template, normalize_base};

/// The maximum number of segments of a path and of query parameters.
const MAX_PARTS: usize = 200;

/// Why a request has no URL.
#[derive(Debug, thiserror::Error)]
pub(super) enum UrlError {
    #[error(
        "the server of `{0}` is unknown: its variable has no value; set the base URL (`base_url`, `--base-url`)"
    )]
    Variable(String),
    #[error("`{0}` is not an `http` or `https` URL without user name")]
    Invalid(String),
}

/// A URL in parts.
pub(super) struct RequestUrl {
    /// The scheme and host, and with `base_url` its path.
    pub(super) server: String,
    /// The path as saved.
    pub(super) path: String,
    query: String,
}

impl RequestUrl {
    /// Parses a saved URL. The server is the part before the path, or a variable at the start.
    pub(super) fn parse(
        saved: &str,
        base_url: Option<&str>,
        expand: impl Fn(&str) -> String,
    ) -> Result<Self, UrlError> {
        let saved = saved.trim().split('#').next().unwrap_or_default();
        let (address, query) = saved.split_once('?').unwrap_or((saved, ""));
        let shown = || excerpt(address, 100);
        let after_server = if let Some(rest) = address.strip_prefix("{{") {
            rest.find("}}").map_or(address.len(), |end| end + 4)
        } else {
            let scheme = address.find("://").map_or(0, |at| at + 3);
            address.get(scheme..).and_then(|rest| rest.find('/')).map_or(address.len(), |at| scheme + at)
        };
        let (server, rest) = address.split_at_checked(after_server).unwrap_or((address, ""));
        // What follows the variable, up to the path, belongs to the server: `{{host}}:8080/x`.
        let (port, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let server = match base_url {
            Some(base) => base.to_owned(),
            None => expand(&format!("{server}{port}")),
        };
        if has_variable(&server) {
            return Err(UrlError::Variable(shown()));
        }
        let server = if server.contains("://") { server } else { format!("http://{server}") };
        let server = normalize_base(&server).ok_or_else(|| UrlError::Invalid(shown()))?;
        Ok(Self { server, path: path.to_owned(), query: query.to_owned() })
    }

    /// Returns the path as a template; `:name` and variables become arguments.
    pub(super) fn path_template(&self, request: &SavedRequest, draft: &mut Draft<'_>) -> String {
        let segments: Vec<String> = self
            .path
            .split('/')
            .take(MAX_PARTS)
            .map(|segment| match segment.strip_prefix(':').filter(|name| !name.is_empty()) {
                Some(name) => path_argument(name, request, draft),
                None => draft.template(segment, TextUse::Url),
            })
            .collect();
        segments.join("/")
    }

    /// Returns the query parameters of the request, or those of its URL.
    pub(super) fn query(&self, request: &SavedRequest) -> Vec<Field> {
        if !request.query.is_empty() {
            return request.query.iter().take(MAX_PARTS).cloned().collect();
        }
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty()).take(MAX_PARTS);
        let decode = |text: &str| {
            percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
        };
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Field { name: decode(name), value: decode(value), ..Field::default() }
            })
            .collect()
    }
}

fn path_argument(name: &str, request: &SavedRequest, draft: &mut Draft<'_>) -> String {
    let saved = request.path.iter().find(|field| field.name == name);
    let value = saved.map_or("", |field| field.value.as_str());
    if has_variable(value) {
        return draft.template(value, TextUse::Url);
    }
    let mut schema = json!({"type": "string", "minLength": 1});
    if let serde_json::Value::Object(map) = &mut schema {
        if !value.is_empty() {
            map.insert("examples".to_owned(), json!([value]));
        }
        let description = crate::api::text::clean(saved.map_or("", |field| &field.description), 1000);
        if !description.is_empty() {
            map.insert("description".to_owned(), json!(description));
        }
        if typed(value).is_i64() {
            map.insert("type".to_owned(), json!(["string", "integer"]));
        }
    }
    draft.argument(name, schema, true).unwrap_or_else(|| escape_template(value))
}
