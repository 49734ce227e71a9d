//! What a message says of itself, read before rmcp reads all of it: rmcp takes some wrong messages for others, and
//! leaves it to the newest version to compare headers with the message.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion, RequestId};
use rmcp::transport::common::http_header::{HEADER_MCP_METHOD, HEADER_MCP_NAME, HEADER_MCP_PROTOCOL_VERSION};
use serde::Deserialize;
use serde_json::{Value, json};

/// The most messages that one batch may hold.
pub(super) const MAX_IN_BATCH: usize = 100;

/// How much a text of the client is repeated in an answer.
const SHOWN: usize = 80;

/// The levels of log lines.
pub(super) const LEVELS: &str =
    "`debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert`, `emergency`";

/// As much of a message as is needed.
#[derive(Deserialize)]
pub(super) struct Peek<'a> {
    #[serde(default)]
    pub(super) id: Option<RequestId>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(default)]
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    #[serde(default)]
    cursor: Option<Value>,
    #[serde(default)]
    name: Option<Value>,
    #[serde(default)]
    uri: Option<Value>,
}

impl<'a> Peek<'a> {
    /// Reads a message; `None` where it is none of which anything could be said.
    pub(super) fn of(message: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(message).ok()
    }

    /// Says what is wrong with a request that rmcp would take for another one.
    pub(super) fn fault(&self) -> Option<ErrorData> {
        let is_list = self.method.as_deref().is_some_and(|method| method.ends_with("/list"));
        let cursor = self.params.as_ref().and_then(|params| params.cursor.as_ref());
        let is_wrong = is_list && cursor.is_some_and(|cursor| !cursor.is_string());
        is_wrong.then(|| {
            let why = "`params.cursor` must be a string: the `nextCursor` of the page before";
            ErrorData::invalid_params(why, None)
        })
    }

    /// Says in what the headers and the message differ. What is not said in a header is no difference.
    pub(super) fn mismatch(&self, headers: &HeaderMap) -> Option<ErrorData> {
        let method = self.method.as_deref()?;
        let why = differs(headers, HEADER_MCP_METHOD, "method", method).or_else(|| {
            let name = self.name(method);
            let field = if method.starts_with("resources/") { "params.uri" } else { "params.name" };
            // Only these methods have a name.
            name.and_then(|name| differs(headers, HEADER_MCP_NAME, field, name))
        })?;
        Some(ErrorData::new(ErrorCode::HEADER_MISMATCH, why, None))
    }

    /// Says that version 2026-07-28 has no `initialize`: rmcp would open a session, whatever the header says.
    pub(super) fn removed(&self, headers: &HeaderMap) -> Option<ErrorData> {
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

fn differs(headers: &HeaderMap, header: &str, field: &str, said: &str) -> Option<String> {
    let mut values = headers.get_all(header).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return Some(format!("the header `{header}` came more than once"));
    }
    let Some(value) = value.to_str().ok().and_then(unpacked) else {
        return Some(format!("the header `{header}` cannot be read"));
    };
    let shown = |text: &str| haft_core::problem::excerpt(text, SHOWN);
    (value != said).then(|| {
        format!("the header `{header}` says `{}`, and `{field}` says `{}`", shown(&value), shown(said))
    })
}

/// What does not fit into a header comes in base64.
fn unpacked(text: &str) -> Option<Cow<'_, str>> {
    let Some(packed) = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(text));
    };
    String::from_utf8(STANDARD.decode(packed).ok()?).ok().map(Cow::Owned)
}

/// Tells whether a message is a batch.
pub(super) fn is_batch(message: &[u8]) -> bool {
    message.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Reads a batch for a session of this version; `None` where none is open.
///
/// Batches came with JSON-RPC and went with version 2025-06-18.
pub(super) fn batch(message: &[u8], version: Option<&str>) -> Result<Vec<Value>, ErrorData> {
    let last = ProtocolVersion::V_2025_03_26;
    if version.is_none_or(|version| version > last.as_str()) {
        let spoken = version.map_or_else(
            || "none is open here".to_owned(),
            |version| format!("this one speaks {version}, so send the messages one by one"),
        );
        let why =
            format!("a batch is taken in a session of protocol version {last} or before only; {spoken}");
        return Err(ErrorData::invalid_request(why, None));
    }
    let messages: Vec<Value> = serde_json::from_slice(message)
        .map_err(|error| ErrorData::parse_error(format!("the batch is not JSON: {error}"), None))?;
    if messages.is_empty() {
        return Err(ErrorData::invalid_request("the batch is empty", None));
    }
    if messages.len() > MAX_IN_BATCH {
        let why = format!("a batch has at most {MAX_IN_BATCH} messages; this one has {}", messages.len());
        return Err(ErrorData::invalid_request(why, None));
    }
    if messages.iter().any(|message| message.get("method").is_some_and(|method| method == "initialize")) {
        return Err(ErrorData::invalid_request("`initialize` cannot be part of a batch", None));
    }
    Ok(messages)
}

/// Writes an error as a message; one that answers nothing in particular has the id `null`.
pub(super) fn error(id: Option<&RequestId>, error: &ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_text() {
        for (message, is_wrong) in [
            (json!({"method": "tools/list", "params": {"cursor": 5}}), true),
            (json!({"method": "prompts/list", "params": {"cursor": {"a": 1}}}), true),
            (json!({"method": "tools/list", "params": {"cursor": "5"}}), false),
            (json!({"method": "tools/list", "params": {"cursor": null}}), false),
            (json!({"method": "tools/list"}), false),
            (json!({"method": "tools/call", "params": {"cursor": 5}}), false),
            (json!({"result": {}}), false),
        ] {
            let text = message.to_string();
            let fault = Peek::of(text.as_bytes()).unwrap().fault();
            assert_eq!(fault.map(|fault| fault.code.0), is_wrong.then_some(-32602), "{message}");
        }
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
            let removed = Peek::of(text.as_bytes()).unwrap().removed(&headers);
            let code = removed.map(|error| error.code.0);
            assert_eq!(code, is_removed.then_some(-32601), "{method} {version:?}");
        }
    }

    #[test]
    fn headers_that_are_there_say_what_the_message_says() {
        let call = json!({"method": "tools/call", "params": {"name": "é"}}).to_string();
        let read = json!({"method": "resources/read", "params": {"uri": "a:b"}}).to_string();
        let list = json!({"method": "tools/list"}).to_string();
        let check = |message: &str, headers: &[(&'static str, &str)], expected: Option<&str>| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().unwrap());
            }
            let mismatch = Peek::of(message.as_bytes()).unwrap().mismatch(&map);
            assert_eq!(mismatch.as_ref().map(|error| &*error.message), expected, "{headers:?}");
        };
        check(&call, &[], None);
        check(&call, &[("mcp-method", "tools/call"), ("mcp-name", "=?base64?w6k=?=")], None);
        check(
            &call,
            &[("mcp-method", "tools/list")],
            Some("the header `Mcp-Method` says `tools/list`, and `method` says `tools/call`"),
        );
        check(
            &call,
            &[("mcp-name", "other")],
            Some("the header `Mcp-Name` says `other`, and `params.name` says `é`"),
        );
        check(&call, &[("mcp-name", "=?base64?%?=")], Some("the header `Mcp-Name` cannot be read"));
        check(
            &read,
            &[("mcp-name", "x"), ("mcp-name", "a:b")],
            Some("the header `Mcp-Name` came more than once"),
        );
        check(&list, &[("mcp-name", "whatever")], None);
    }

    #[test]
    fn batches_are_of_older_versions_and_bounded() {
        let check = |text: &str, version: Option<&str>, expected: Result<usize, &str>| {
            let read = batch(text.as_bytes(), version);
            let read = read.as_ref().map(Vec::len).map_err(|error| &*error.message);
            assert_eq!(read, expected, "{text} {version:?}");
        };
        let only = "a batch is taken in a session of protocol version 2025-03-26 or before only; ";
        check("[1, {}]", Some("2025-03-26"), Ok(2));
        check("[1]", Some("2024-11-05"), Ok(1));
        let later = format!("{only}this one speaks 2025-06-18, so send the messages one by one");
        check("[1]", Some("2025-06-18"), Err(&later));
        check("[1]", None, Err(&format!("{only}none is open here")));
        check("[]", Some("2025-03-26"), Err("the batch is empty"));
        let many = format!("[{}1]", "1,".repeat(100));
        check(&many, Some("2025-03-26"), Err("a batch has at most 100 messages; this one has 101"));
        let initialize = r#"[{"method": "initialize"}]"#;
        check(initialize, Some("2025-03-26"), Err("`initialize` cannot be part of a batch"));
        assert!(is_batch(b" \n[") && !is_batch(b"{\"a\": []}") && !is_batch(b""));
    }
}
