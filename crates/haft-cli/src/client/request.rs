//! A request to the API.

use http::Method;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Everything except letters, digits, `-`, `_`, `.`, `~`, `:` and `@` is encoded in a path segment.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'@');
const QUERY: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'&').add(b'+').add(b'%').add(b'=');

/// Encodes a text as a path segment.
pub(crate) fn segment(text: &str) -> String {
    match text {
        // HTTP clients would resolve these.
        "." | ".." => text.replace('.', "%2E"),
        _ => utf8_percent_encode(text, SEGMENT).to_string(),
    }
}

/// Path segments below `/api/tools` that are routes; a tool with such a name is addressed as `:name`.
const TOOL_ROUTES: [&str; 5] = ["bundles", "builtins", "definitions", "search", "tools"];

/// Encodes a reference to a tool as a path segment below `/api/tools`.
pub(crate) fn tool_segment(reference: &str) -> String {
    let prefix = if TOOL_ROUTES.contains(&reference) { ":" } else { "" };
    format!("{prefix}{}", segment(reference))
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// No body.
    Empty,
    /// JSON.
    Json(Value),
    /// Bytes with a media type.
    Bytes {
        /// The media type.
        content_type: &'static str,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Text with a media type.
    Text {
        /// The media type.
        content_type: &'static str,
        /// The text.
        text: String,
    },
}

/// A request to the API.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The method.
    pub(crate) method: Method,
    /// The path, with encoded segments, and the query.
    pub(crate) path: String,
    /// Additional headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(crate) body: Body,
}

impl Request {
    /// Creates a request without a body.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Body::Empty }
    }

    /// Creates a `GET` request.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Creates a `POST` request with JSON.
    pub(crate) fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::POST, path).with_body(Body::Json(body))
    }

    /// Creates a `DELETE` request.
    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Returns the progress text for this request.
    pub(crate) fn purpose(&self) -> &'static str {
        let path = self.path.split('?').next().unwrap_or_default();
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').skip(1).collect();
        if self.method == Method::GET {
            return "waiting for the server";
        }
        match segments.as_slice() {
            ["mcp-servers"] => "adding the MCP server",
            ["mcp-servers", _, "refresh"] => "starting the MCP server and loading its tools",
            ["toolsets", ..] => "installing the toolset and its packages",
            ["pipelines", _, "documents"] => "sending documents",
            ["pipelines", _, "query"] => "searching documents",
            ["import", ..] => "importing tools",
            ["apply", ..] => "applying the folder",
            ["tools", _, "invoke" | "test", ..] => "running the tool",
            ["runs" | "agents", ..] => "waiting for the agent",
            _ => "waiting for the server",
        }
    }

    /// Sets the body.
    pub(crate) fn with_body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(name);
        self.path.push('=');
        self.path.extend(utf8_percent_encode(value, QUERY));
        self
    }

    /// Adds a query parameter if there is a value.
    pub(crate) fn query_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_take_long_have_a_purpose() {
        let refresh = Request::post("/api/mcp-servers/time/refresh", Value::Null);
        assert_eq!(refresh.purpose(), "starting the MCP server and loading its tools");
        let documents = Request::post("/api/pipelines/docs/documents", Value::Null).query("name", "a/b");
        assert_eq!(documents.purpose(), "sending documents");
        assert_eq!(Request::get("/api/mcp-servers").purpose(), "waiting for the server");
    }

    #[test]
    fn paths_and_queries_are_encoded() {
        for (text, expected) in [
            ("web:weather@1.0", "web:weather@1.0"),
            ("../tokens", "..%2Ftokens"),
            ("..", "%2E%2E"),
            ("a?b#c d", "a%3Fb%23c%20d"),
            ("天", "%E5%A4%A9"),
        ] {
            assert_eq!(segment(text), expected);
        }
        let request = Request::get("/api/tools").query("q", "a&b=c +%ü").query_some("tag", None);
        assert_eq!(request.path, "/api/tools?q=a%26b%3Dc%20%2B%25%C3%BC");
        assert_eq!(request.query("limit", "5").path, "/api/tools?q=a%26b%3Dc%20%2B%25%C3%BC&limit=5");
    }
}
