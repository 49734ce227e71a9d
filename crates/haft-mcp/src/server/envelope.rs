//! Checks on a message before rmcp reads it: rmcp misreads some invalid messages, and compares headers with the message
//! only for the newest protocol version.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::exact_json;
use http::HeaderMap;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion, RequestId};
use rmcp::transport::common::http_header::{HEADER_MCP_METHOD, HEADER_MCP_NAME, HEADER_MCP_PROTOCOL_VERSION};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How many characters of a client's text an error message repeats.
const MAX_EXCERPT: usize = 80;

/// The log levels, for error messages.
pub(super) const LEVELS: &str =
    "`debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert`, `emergency`";

/// The fields of a message that are checked.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(default)]
    pub(super) id: Option<RequestId>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    /// The arguments as the client wrote them.
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    cursor: Option<Value>,
    #[serde(default)]
    name: Option<Value>,
    #[serde(default)]
    uri: Option<Value>,
}

impl<'a> Envelope<'a> {
    /// Parses a message; `None` where it is not a JSON-RPC message.
    pub(super) fn parse(message: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(message).ok()
    }

    /// Returns the error of a request that rmcp would read as another one.
    pub(super) fn params_error(&self) -> Option<ErrorData> {
        self.cursor_error().or_else(|| self.arguments_error())
    }

    /// Returns the error of a call whose arguments rmcp would change: it keeps one of duplicate keys, and rounds integers
    /// beyond 64 bits.
    fn arguments_error(&self) -> Option<ErrorData> {
        if self.method.as_deref() != Some("tools/call") {
            return None;
        }
        let arguments = self.params.as_ref()?.arguments?;
        let error = exact_json::check_arguments(arguments.get()).err()?;
        Some(ErrorData::invalid_params(error.to_string(), None))
    }

    fn cursor_error(&self) -> Option<ErrorData> {
        let is_list = self.method.as_deref().is_some_and(|method| method.ends_with("/list"));
        let cursor = self.params.as_ref().and_then(|params| params.cursor.as_ref());
        let is_invalid = is_list && cursor.is_some_and(|cursor| !cursor.is_string());
        is_invalid.then(|| {
            let message = "`params.cursor` must be a string: the `nextCursor` of the page before";
            ErrorData::invalid_params(message, None)
        })
    }

    /// Returns the error of a message that differs from its headers. Missing headers are no difference.
    pub(super) fn header_mismatch(&self, headers: &HeaderMap) -> Option<ErrorData> {
        let method = self.method.as_deref()?;
        let message = differs(headers, HEADER_MCP_METHOD, "method", method).or_else(|| {
            let name = self.name(method);
            let field = if method.starts_with("resources/") { "params.uri" } else { "params.name" };
            name.and_then(|name| differs(headers, HEADER_MCP_NAME, field, name))
        })?;
        Some(ErrorData::new(ErrorCode::HEADER_MISMATCH, message, None))
    }

    /// Returns the error of an `initialize` of version 2026-07-28, which removed it: rmcp would open a session.
    pub(super) fn removed_method(&self, headers: &HeaderMap) -> Option<ErrorData> {
        let version = headers.get(HEADER_MCP_PROTOCOL_VERSION)?;
        let is_removed = self.method.as_deref() == Some("initialize")
            && version.as_bytes() == ProtocolVersion::V_2026_07_28.as_str().as_bytes();
        is_removed.then(|| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "initialize", None))
    }

    fn name(&self, method: &str) -> Option<&str> {
        let params = self.params.as_ref()?;
        let name = match method {
            "tools/call" | "prompts/get" => params.name.as_ref(),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params.uri.as_ref(),
            _ => None,
        };
        name?.as_str()
    }
}

fn differs(headers: &HeaderMap, header: &str, field: &str, expected: &str) -> Option<String> {
    let mut values = headers.get_all(header).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return Some(format!("duplicate header `{header}`"));
    }
    let Some(value) = value.to_str().ok().and_then(decoded) else {
        return Some(format!("invalid value in header `{header}`"));
    };
    let excerpt = |text: &str| haft_core::problem::excerpt(text, MAX_EXCERPT);
    (value != expected).then(|| {
        format!("header `{header}` is `{}`, but `{field}` is `{}`", excerpt(&value), excerpt(expected))
    })
}

/// Decodes a header value: text that a header cannot carry is base64-encoded.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(text));
    };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned)
}

/// Returns the error of a message that is no [`Envelope`] because a key occurs twice; rmcp would keep one of the values.
pub(super) fn duplicate_key_error(message: &[u8]) -> Option<ErrorData> {
    let key = exact_json::duplicate_key(message)?;
    Some(ErrorData::invalid_request(exact_json::InexactJson::DuplicateKey(key).to_string(), None))
}

/// Writes an error response; without a request its id is `null`.
pub(super) fn error(id: Option<&RequestId>, error: &ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_string() {
        for (message, is_invalid) in [
            (json!({"method": "tools/list", "params": {"cursor": 5}}), true),
            (json!({"method": "prompts/list", "params": {"cursor": {"a": 1}}}), true),
            (json!({"method": "tools/list", "params": {"cursor": "5"}}), false),
            (json!({"method": "tools/list", "params": {"cursor": null}}), false),
            (json!({"method": "tools/list"}), false),
            (json!({"method": "tools/call", "params": {"cursor": 5}}), false),
            (json!({"result": {}}), false),
        ] {
            let text = message.to_string();
            let error = Envelope::parse(text.as_bytes()).unwrap().params_error();
            assert_eq!(error.map(|error| error.code.0), is_invalid.then_some(-32602), "{message}");
        }
    }

    #[test]
    fn arguments_are_exact() {
        let check = |method: &str, arguments: &str, expected: Option<&str>| {
            let text =
                format!(r#"{{"method": "{method}", "params": {{"name": "t", "arguments": {arguments}}}}}"#);
            let error = Envelope::parse(text.as_bytes()).unwrap().params_error();
            let message = error.as_ref().map(|error| &*error.message);
            assert_eq!(message, expected, "{text}");
        };
        check("tools/call", r#"{"a": [1, 2.5], "b": null}"#, None);
        check("tools/call", "null", None);
        check("tools/call", r#"{"a": {"b": 1, "b": 2}}"#, Some("argument `a`: duplicate key `b`"));
        check("prompts/get", r#"{"a": 1, "a": 1}"#, None);
        let message = "argument `n`: the integer `18446744073709551616` does not fit in 64 bits and would be rounded; \
                       send it as a string";
        check("tools/call", r#"{"n": 18446744073709551616}"#, Some(message));
        let twice = br#"{"method": "tools/call", "params": {"arguments": {}, "arguments": {"a": 1}}}"#;
        assert!(Envelope::parse(twice).is_none());
        assert_eq!(duplicate_key_error(twice).unwrap().message, "duplicate key `arguments`");
    }

    #[test]
    fn the_newest_version_has_no_initialize() {
        for (method, version, is_removed) in [
            ("initialize", Some("2026-07-28"), true),
            ("initialize", Some("2025-11-25"), false),
            ("initialize", None, false),
            ("tools/list", Some("2026-07-28"), false),
        ] {
            let text = json!({"id": 1, "method": method, "params": {}}).to_string();
            let mut headers = HeaderMap::new();
            if let Some(version) = version {
                headers.insert("mcp-protocol-version", version.parse().unwrap());
            }
            let removed = Envelope::parse(text.as_bytes()).unwrap().removed_method(&headers);
            let code = removed.map(|error| error.code.0);
            assert_eq!(code, is_removed.then_some(-32601), "{method} {version:?}");
        }
    }

    #[test]
    fn headers_match_the_message() {
        let call = json!({"method": "tools/call", "params": {"name": "é"}}).to_string();
        let read = json!({"method": "resources/read", "params": {"uri": "a:b"}}).to_string();
        let list = json!({"method": "tools/list"}).to_string();
        let check = |message: &str, headers: &[(&'static str, &str)], expected: Option<&str>| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            let mismatch = Envelope::parse(message.as_bytes()).unwrap().header_mismatch(&map);
            assert_eq!(mismatch.as_ref().map(|error| &*error.message), expected, "{headers:?}");
        };
        check(&call, &[], None);
        check(&call, &[("mcp-method", "tools/call"), ("mcp-name", "=?base64?w6k=?=")], None);
        check(
            &call,
            &[("mcp-method", "tools/list")],
            Some("header `Mcp-Method` is `tools/list`, but `method` is `tools/call`"),
        );
        check(
            &call,
            &[("mcp-name", "other")],
            Some("header `Mcp-Name` is `other`, but `params.name` is `é`"),
        );
        check(&call, &[("mcp-name", "=?base64?%?=")], Some("invalid value in header `Mcp-Name`"));
        check(&read, &[("mcp-name", "x"), ("mcp-name", "a:b")], Some("duplicate header `Mcp-Name`"));
        check(&list, &[("mcp-name", "whatever")], None);
    }
}
