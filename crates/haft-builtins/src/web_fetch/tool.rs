//! The definition and the function of `web_fetch`.

use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::ToolSpec;
use haft_executors::egress::{Egress, OutgoingRequest};
use haft_executors::http::{Exchange, OverflowPolicy, exchange};
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::page::{self, Page};
use crate::http_request::parse_url;
use crate::tool::{BuiltIn, Describe, describe};

/// The number of bytes of a response that are read.
const MAX_RESPONSE_BYTES: u64 = 4 * 1024 * 1024;
/// The default and the maximum number of characters to return.
const DEFAULT_LENGTH: usize = 20_000;
const MAX_LENGTH: usize = 200_000;

const ACCEPT_TYPES: &str =
    "text/html,application/xhtml+xml,application/json;q=0.9,text/plain;q=0.8,*/*;q=0.5";

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "web_fetch",
        description: "Fetch a web page or a text file by URL. HTML is converted to Markdown of the main content, with the \
                      title and optionally the links; JSON is parsed; other text is returned unchanged. If `truncated` is \
                      true, use `start` to continue. Use web_search to find pages.",
        category: "web",
        tags: &["web", "fetch", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The URL, starting with http:// or https://"},
                "max_length": {"type": "integer", "minimum": 1, "maximum": MAX_LENGTH, "description": "The maximum number of characters to return. Default: 20000"},
                "start": {"type": "integer", "minimum": 0, "description": "The number of characters to skip, to continue a truncated page"},
                "links": {"type": "boolean", "description": "Whether to return the links of the page"},
                "raw": {"type": "boolean", "description": "Whether to return the HTML source"},
            },
            "required": ["url"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {
                "url": {"type": "string"}, "content_type": {"type": "string"}, "title": {"type": "string"},
                "description": {"type": "string"}, "content": {}, "truncated": {"type": "boolean"},
                "links": {"type": "array"},
            },
            "required": ["url", "content_type", "content", "truncated"],
        }),
    })?;
    spec.network = true;
    spec.execution.timeout_ms = Some(30_000);
    Ok(spec)
}

/// The function of `web_fetch`.
pub(crate) struct WebFetch(pub(crate) Egress);

#[derive(Deserialize)]
pub(crate) struct Args {
    url: String,
    max_length: Option<usize>,
    #[serde(default)]
    start: usize,
    #[serde(default)]
    links: bool,
    #[serde(default)]
    raw: bool,
}

impl BuiltIn for WebFetch {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(ACCEPT_TYPES))]);
        let request = OutgoingRequest {
            method: Method::GET,
            url: parse_url(&args.url)?,
            headers,
            body: None,
            accepted_statuses: Vec::new(),
        };
        let response = exchange(&self.0, call, request, MAX_RESPONSE_BYTES, OverflowPolicy::Truncate).await?;
        if !response.status.is_success() {
            return Err(response.to_error(call).retryable(response.is_temporary()));
        }
        // Converting a large page would block an async worker.
        let task = tokio::task::spawn_blocking(move || page_value(&response, &args));
        task.await.unwrap_or_else(|error| Err(CallError::internal(format!("convert a page: {error}"))))
    }
}

fn page_value(response: &Exchange, args: &Args) -> Outcome {
    let mut value = Map::new();
    value.insert("url".to_owned(), response.url.as_str().into());
    value.insert("content_type".to_owned(), response.media_type().into());
    if response.bytes.is_empty() {
        return Ok(with_content(value, "", response, args));
    }
    if !response.is_text() {
        let media_type = response.media_type();
        let message =
            format!("unsupported content type `{media_type}`; only text, HTML and JSON are supported");
        return Err(CallError::new(ErrorCode::InvalidResponse, message));
    }
    let text = response.text();
    if response.is_json()
        && !response.truncated
        && text.len() <= max_length(args)
        && let Ok(json) = serde_json::from_str::<Value>(&text)
    {
        value.insert("content".to_owned(), json);
        value.insert("truncated".to_owned(), false.into());
        return Ok(Value::Object(value));
    }
    if !response.is_html() || args.raw {
        return Ok(with_content(value, &text, response, args));
    }
    let Page { title, description, content, links } = page::read(&text, &response.url);
    if !title.is_empty() {
        value.insert("title".to_owned(), title.into());
    }
    if !description.is_empty() {
        value.insert("description".to_owned(), description.into());
    }
    if args.links {
        let links = links.into_iter().map(|link| json!({"text": link.text, "url": link.url}));
        value.insert("links".to_owned(), links.collect());
    }
    Ok(with_content(value, &content, response, args))
}

fn max_length(args: &Args) -> usize {
    args.max_length.unwrap_or(DEFAULT_LENGTH).min(MAX_LENGTH)
}

fn with_content(mut value: Map<String, Value>, content: &str, response: &Exchange, args: &Args) -> Value {
    let mut rest = content.chars().skip(args.start);
    let part: String = rest.by_ref().take(max_length(args)).collect();
    let truncated = rest.next().is_some() || response.truncated;
    value.insert("content".to_owned(), part.into());
    value.insert("truncated".to_owned(), truncated.into());
    Value::Object(value)
}
