//! `http_request`: one request that a model makes up, through the guard.

use std::collections::BTreeMap;

use bytes::Bytes;
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, Outcome};
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_runtime::egress::{Egress, OutgoingRequest};
use haft_runtime::http::{Exchange, OverflowPolicy, exchange};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, SET_COOKIE};
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::tool::{BuiltIn, Describe, describe, invalid};

/// The largest answer that is read.
const MAX_ANSWER: u64 = 1024 * 1024;
/// The largest body that is sent.
const MAX_BODY: usize = 1024 * 1024;
/// How many headers are told, and how much of each.
const MAX_HEADERS: usize = 64;
const MAX_VALUE: usize = 1000;

/// Headers that belong to the connection, not to the request.
const OURS: [&str; 10] = [
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
        description: "Send one HTTP request to an API and return its answer, whatever the status: {status, headers, body, \
                      url}, with JSON parsed. Use web_fetch to read pages, and a tool made for an API where there is one.",
        category: "web",
        tags: &["http", "api"],
        input: json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The address, with http:// or https://"},
                "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "description": "GET where it is left out"},
                "headers": {"type": "object", "maxProperties": MAX_HEADERS, "additionalProperties": {"type": "string"}, "description": "Header names and values"},
                "query": {
                    "type": "object", "maxProperties": 200,
                    "additionalProperties": {"anyOf": [scalar.clone(), {"type": "array", "items": scalar}]},
                    "description": "Query parameters that are added to the address; a list repeats its parameter",
                },
                "body": {"description": "A text is sent as it is, anything else as JSON"},
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

/// Sends requests.
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
        let request = outgoing(&args)?;
        let answer = exchange(&self.0, call, request, MAX_ANSWER, OverflowPolicy::Fail).await?;
        Ok(describe_answer(&answer))
    }
}

/// Reads the address of a request or a page.
pub(crate) fn address(text: &str) -> Result<Url, CallError> {
    let text = text.trim();
    let url = Url::parse(text).map_err(|why| {
        let hint = if text.contains("://") { "" } else { "; begin with `https://`" };
        invalid(format!("`url`: `{}` is not an address: {why}{hint}", excerpt(text, 200)))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = excerpt(url.scheme(), 20);
        return Err(invalid(format!(
            "`url` begins with `{scheme}:`; only `http://` and `https://` are fetched"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("`url` holds a user name or a password; send them in an `Authorization` header"));
    }
    Ok(url)
}

fn outgoing(args: &Args) -> Result<OutgoingRequest, CallError> {
    let mut url = address(&args.url)?;
    add_query(&mut url, &args.query);
    let method = args.method.as_deref().unwrap_or("GET");
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| invalid(format!("`method`: `{}` is not a method", excerpt(method, 20))))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &args.headers {
        let (name, value) = header(name, value)?;
        headers.append(name, value);
    }
    let (body, kind) = match &args.body {
        None | Some(Value::Null) => (None, None),
        Some(Value::String(text)) => (Some(Bytes::from(text.clone())), Some("text/plain; charset=utf-8")),
        Some(other) => (Some(Bytes::from(other.to_string())), Some("application/json")),
    };
    if body.as_ref().is_some_and(|body| body.len() > MAX_BODY) {
        return Err(invalid(format!("`body` has more than {MAX_BODY} bytes")));
    }
    if let Some(kind) = kind
        && !headers.contains_key(CONTENT_TYPE)
    {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
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
        .map_err(|_| invalid(format!("`headers`: `{shown}` is not the name of a header")))?;
    if OURS.contains(&parsed.as_str()) {
        return Err(invalid(format!("`headers`: `{shown}` is set by haft; leave it out")));
    }
    let value = HeaderValue::from_str(value).map_err(|_| {
        invalid(format!(
            "`headers.{shown}`: the value has a line break or another character that no header takes"
        ))
    })?;
    Ok((parsed, value))
}

fn describe_answer(answer: &Exchange) -> Value {
    let mut headers = Map::new();
    for name in answer.headers.keys().filter(|name| **name != SET_COOKIE).take(MAX_HEADERS) {
        let values =
            answer.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let text = values.collect::<Vec<_>>().join(", ");
        headers.insert(name.to_string(), excerpt(&text, MAX_VALUE).into());
    }
    json!({"status": answer.status.as_u16(), "url": answer.url.as_str(), "headers": headers, "body": body(answer)})
}

/// JSON where it is, else text; of anything else only how much there is.
fn body(answer: &Exchange) -> Value {
    if answer.bytes.is_empty() {
        return Value::Null;
    }
    if !answer.is_text() {
        return json!({"media_type": answer.media_type(), "bytes": answer.bytes.len(), "note": "binary content is not shown"});
    }
    let text = answer.text();
    let parsed = answer.is_json().then(|| serde_json::from_str(&text).ok()).flatten();
    parsed.unwrap_or(Value::String(text))
}
