//! `http_request`: one HTTP request whose parts the model chooses, subject to the egress rules.

use std::collections::BTreeMap;

use bytes::Bytes;
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_executors::egress::{Egress, OutgoingRequest};
use haft_executors::http::{Exchange, OverflowPolicy, exchange};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, SET_COOKIE};
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::tool::{BuiltIn, Describe, describe, invalid};

/// The maximum size of a response.
const MAX_RESPONSE_BYTES: u64 = 1024 * 1024;
/// The maximum size of a request body.
const MAX_BODY: usize = 1024 * 1024;
/// The maximum number of headers of a request or response.
const MAX_HEADERS: usize = 64;
/// The number of characters of a response header that are returned.
const MAX_HEADER_CHARACTERS: usize = 1000;

/// Headers of the connection, which haft sets itself.
const RESERVED_HEADERS: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-authorization",
];

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let scalar = json!({"type": ["string", "number", "boolean"]});
    let mut spec = describe(Describe {
        name: "http_request",
        description: "Send one HTTP request to an API and return the response as {status, headers, body, url}, also for \
                      error statuses; a JSON body is parsed. Prefer a tool made for the API if there is one, and use \
                      web_fetch to read web pages.",
        category: "web",
        tags: &["http", "api"],
        input: json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The URL, starting with http:// or https://"},
                "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "description": "The HTTP method. Default: GET"},
                "headers": {"type": "object", "maxProperties": MAX_HEADERS, "additionalProperties": {"type": "string"}, "description": "Request headers by name"},
                "query": {
                    "type": "object", "maxProperties": 200,
                    "additionalProperties": {"anyOf": [scalar.clone(), {"type": "array", "items": scalar}]},
                    "description": "Query parameters to add to the URL; an array repeats the parameter",
                },
                "body": {"description": "The request body: a string is sent unchanged, any other value as JSON"},
            },
            "required": ["url"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {"status": {"type": "integer"}, "url": {"type": "string"}, "headers": {"type": "object"}, "body": {}},
            "required": ["status", "url", "headers", "body"],
        }),
    })?;
    spec.network = true;
    spec.execution.timeout_ms = Some(30_000);
    Ok(spec)
}

/// The function of `http_request`.
pub(crate) struct HttpRequest(pub(crate) Egress);

#[derive(Deserialize)]
pub(crate) struct Args {
    url: String,
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    query: Map<String, Value>,
    body: Option<Value>,
}

impl BuiltIn for HttpRequest {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let request = build_request(&args)?;
        let response = exchange(&self.0, call, request, MAX_RESPONSE_BYTES, OverflowPolicy::Fail).await?;
        Ok(response_value(&response))
    }
}

/// Parses the URL of a request.
pub(crate) fn parse_url(text: &str) -> Result<Url, CallError> {
    let text = text.trim();
    let url = Url::parse(text).map_err(|error| {
        let hint = if text.contains("://") { "" } else { "; start it with `https://`" };
        invalid(format!("`url`: `{}` is not a valid URL: {error}{hint}", excerpt(text, 200)))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = excerpt(url.scheme(), 20);
        return Err(invalid(format!("`url`: unsupported scheme `{scheme}`; use `http` or `https`")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(
            "`url` must not contain a user name or password; send them in an `Authorization` header",
        ));
    }
    Ok(url)
}

fn build_request(args: &Args) -> Result<OutgoingRequest, CallError> {
    let mut url = parse_url(&args.url)?;
    add_query(&mut url, &args.query);
    let method = args.method.as_deref().unwrap_or("GET");
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| invalid(format!("`method`: `{}` is not a valid HTTP method", excerpt(method, 20))))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &args.headers {
        let (name, value) = header(name, value)?;
        headers.append(name, value);
    }
    let (body, content_type) = match &args.body {
        None | Some(Value::Null) => (None, None),
        Some(Value::String(text)) => (Some(Bytes::from(text.clone())), Some("text/plain; charset=utf-8")),
        Some(other) => (Some(Bytes::from(other.to_string())), Some("application/json")),
    };
    if body.as_ref().is_some_and(|body| body.len() > MAX_BODY) {
        return Err(invalid(format!("`body` exceeds the limit of {MAX_BODY} bytes")));
    }
    if let Some(content_type) = content_type
        && !headers.contains_key(CONTENT_TYPE)
    {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    Ok(OutgoingRequest { method, url, headers, body, accepted_statuses: Vec::new() })
}

fn add_query(url: &mut Url, query: &Map<String, Value>) {
    if query.is_empty() {
        return;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut pairs = url.query_pairs_mut();
    for (name, value) in query {
        match value {
            Value::Array(items) => items.iter().for_each(|item| {
                pairs.append_pair(name, &text(item));
            }),
            one => {
                pairs.append_pair(name, &text(one));
            }
        }
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), CallError> {
    let shown = excerpt(name, 60);
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| invalid(format!("`headers`: `{shown}` is not a valid header name")))?;
    if RESERVED_HEADERS.contains(&parsed.as_str()) {
        return Err(invalid(format!("`headers`: `{shown}` is set by haft; remove it")));
    }
    let value = HeaderValue::from_str(value).map_err(|_| {
        let message = "the value contains a line break or another character that is not allowed in headers";
        invalid(format!("`headers.{shown}`: {message}"))
    })?;
    Ok((parsed, value))
}

fn response_value(response: &Exchange) -> Value {
    let mut headers = Map::new();
    for name in response.headers.keys().filter(|name| **name != SET_COOKIE).take(MAX_HEADERS) {
        let values =
            response.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let text = values.collect::<Vec<_>>().join(", ");
        headers.insert(name.to_string(), excerpt(&text, MAX_HEADER_CHARACTERS).into());
    }
    let (status, url) = (response.status.as_u16(), response.url.as_str());
    json!({"status": status, "url": url, "headers": headers, "body": body(response)})
}

/// Returns parsed JSON or text; for binary content only its type and size.
fn body(response: &Exchange) -> Value {
    if response.bytes.is_empty() {
        return Value::Null;
    }
    if !response.is_text() {
        return json!({"media_type": response.media_type(), "bytes": response.bytes.len(), "note": "binary content is not shown"});
    }
    let text = response.text();
    let parsed = response.is_json().then(|| serde_json::from_str(&text).ok()).flatten();
    parsed.unwrap_or(Value::String(text))
}
