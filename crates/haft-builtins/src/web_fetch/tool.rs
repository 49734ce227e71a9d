//! The tool: fetch, decode, make readable, cut to size.

use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::ToolSpec;
use haft_runtime::egress::{Egress, OutgoingRequest};
use haft_runtime::http::{Exchange, OverflowPolicy, exchange};
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::page::{self, Page};
use crate::http_request::address;
use crate::tool::{BuiltIn, Describe, describe};

/// How much of an answer is read.
const MAX_PAGE: u64 = 4 * 1024 * 1024;
/// How many characters come back where nobody says.
const USUAL_LENGTH: usize = 20_000;
/// How many come back at most.
const MAX_LENGTH: usize = 200_000;

const ACCEPTED: &str = "text/html,application/xhtml+xml,application/json;q=0.9,text/plain;q=0.8,*/*;q=0.5";

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "web_fetch",
        description: "Read a web page or a file on the web. HTML comes back as readable Markdown of the main content, with \
                      title and, if asked for, links; JSON comes back parsed, other text as it is. Long content is cut: \
                      `truncated` is true then, and `start` reads on. Use web_search to find pages.",
        category: "web",
        tags: &["web", "fetch", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The address, with http:// or https://"},
                "max_length": {"type": "integer", "minimum": 1, "maximum": MAX_LENGTH, "description": "The most characters of content; 20000 where it is left out"},
                "start": {"type": "integer", "minimum": 0, "description": "How many characters of the content to skip, to read on"},
                "links": {"type": "boolean", "description": "Whether to list the links of the page"},
                "raw": {"type": "boolean", "description": "Whether to return HTML as it is"},
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

/// Fetches pages.
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
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(ACCEPTED))]);
        let request = OutgoingRequest {
            method: Method::GET,
            url: address(&args.url)?,
            headers,
            body: None,
            accepted_statuses: Vec::new(),
        };
        let answer = exchange(&self.0, call, request, MAX_PAGE, OverflowPolicy::Truncate).await?;
        if !answer.status.is_success() {
            return Err(answer.to_error(call).retryable(answer.is_temporary()));
        }
        // A large page takes a moment, which threads that serve others do not have.
        let work = tokio::task::spawn_blocking(move || shown(&answer, &args));
        work.await.unwrap_or_else(|error| Err(CallError::internal(format!("read a page: {error}"))))
    }
}

fn shown(answer: &Exchange, args: &Args) -> Outcome {
    let mut shown = Map::new();
    shown.insert("url".to_owned(), answer.url.as_str().into());
    shown.insert("content_type".to_owned(), answer.media_type().into());
    if answer.bytes.is_empty() {
        return Ok(with_content(shown, "", answer, args));
    }
    if !answer.is_text() {
        let message =
            format!("the page is not text but `{}`; only text, HTML and JSON are read", answer.media_type());
        return Err(CallError::new(ErrorCode::InvalidResponse, message));
    }
    let text = answer.text();
    if answer.is_json()
        && !answer.truncated
        && text.len() <= length(args)
        && let Ok(value) = serde_json::from_str::<Value>(&text)
    {
        shown.insert("content".to_owned(), value);
        shown.insert("truncated".to_owned(), false.into());
        return Ok(Value::Object(shown));
    }
    if !answer.is_html() || args.raw {
        return Ok(with_content(shown, &text, answer, args));
    }
    let Page { title, description, content, links } = page::read(&text, &answer.url);
    if !title.is_empty() {
        shown.insert("title".to_owned(), title.into());
    }
    if !description.is_empty() {
        shown.insert("description".to_owned(), description.into());
    }
    if args.links {
        let links = links.into_iter().map(|link| json!({"text": link.text, "url": link.url}));
        shown.insert("links".to_owned(), links.collect());
    }
    Ok(with_content(shown, &content, answer, args))
}

fn length(args: &Args) -> usize {
    args.max_length.unwrap_or(USUAL_LENGTH).min(MAX_LENGTH)
}

fn with_content(mut shown: Map<String, Value>, content: &str, answer: &Exchange, args: &Args) -> Value {
    let mut rest = content.chars().skip(args.start);
    let part: String = rest.by_ref().take(length(args)).collect();
    let truncated = rest.next().is_some() || answer.truncated;
    shown.insert("content".to_owned(), part.into());
    shown.insert("truncated".to_owned(), truncated.into());
    Value::Object(shown)
}
