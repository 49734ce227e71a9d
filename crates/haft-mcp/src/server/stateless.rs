//! A shortcut for stateless calls: one `tools/call` request of version 2026-07-28, one JSON response, no notifications.
//!
//! For each request rmcp creates a service, a transport and several tasks, which costs more than everything else that
//! haft does for a call. Any request that is not exactly such a call goes through rmcp and all its checks.

use std::convert::Infallible;

use bytes::Bytes;
use haft_core::exact_json;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{
    ClientCapabilities, Implementation, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::common::http_header::{HEADER_MCP_METHOD, HEADER_MCP_NAME, HEADER_MCP_PROTOCOL_VERSION};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::approvals::{Elicitation, opens_pages, shows_forms};
use super::apps;
use super::calls::CallSource;
use super::client_context::ClientContext;
use super::compact;
use super::handler::McpServer;
use super::listing;

const CALL: &str = "tools/call";
/// The prefix of headers that repeat arguments.
const PARAM_HEADER_PREFIX: &str = "mcp-param-";

/// A stateless call.
pub(super) struct StatelessCall {
    id: RequestId,
    name: String,
    arguments: Map<String, Value>,
    /// Whether the client can ask its person.
    shows_forms: bool,
    /// Whether the client can open pages for its person.
    opens_pages: bool,
    /// Whether the client shows pages.
    shows_pages: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    jsonrpc: String,
    id: RequestId,
    method: String,
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    #[serde(default, deserialize_with = "exact_json::object")]
    arguments: Map<String, Value>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

/// The required metadata. Any other field, such as a progress token, requests something that the shortcut cannot do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: String,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    _info: Implementation,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: ClientCapabilities,
}

/// Returns whether the method and the headers of a request are those of a stateless call.
pub(super) fn is_candidate(method: &Method, headers: &HeaderMap) -> bool {
    let single = |name: &str| {
        let mut all = headers.get_all(name).iter();
        all.next().filter(|_| all.next().is_none())?.to_str().ok()
    };
    let accepted = single(ACCEPT.as_str()).unwrap_or_default();
    method == Method::POST
        && single(HEADER_MCP_METHOD) == Some(CALL)
        && single(HEADER_MCP_PROTOCOL_VERSION) == Some(ProtocolVersion::V_2026_07_28.as_str())
        && single(CONTENT_TYPE.as_str()) == Some("application/json")
        && accepted.contains("application/json")
        && accepted.contains("text/event-stream")
        && !headers.keys().any(|name| name.as_str().starts_with(PARAM_HEADER_PREFIX))
}

/// Parses the body; `None` where it is not a stateless call or differs from its headers.
pub(super) fn parse(headers: &HeaderMap, body: &[u8]) -> Option<StatelessCall> {
    let Message { jsonrpc, id, method, params } = serde_json::from_slice(body).ok()?;
    let Params { name, arguments, meta } = params;
    let header = headers.get(HEADER_MCP_NAME)?;
    // `=?` begins a base64-encoded header value.
    let agrees = header.as_bytes() == name.as_bytes() && !name.starts_with("=?");
    let is_single = headers.get_all(HEADER_MCP_NAME).iter().count() == 1;
    let is_call =
        jsonrpc == "2.0" && method == CALL && meta.version == ProtocolVersion::V_2026_07_28.as_str();
    let is_exact = exact_json::rounded_integer(body).is_none();
    let call = StatelessCall {
        id,
        name,
        arguments,
        shows_forms: shows_forms(&meta.capabilities),
        opens_pages: opens_pages(&meta.capabilities),
        shows_pages: apps::shows_pages(&meta.capabilities),
    };
    (agrees && is_single && is_call && is_exact).then_some(call)
}

/// Runs a call; `None` where rmcp has to handle it.
pub(super) async fn respond(
    server: &McpServer,
    client: &ClientContext,
    call: StatelessCall,
) -> Option<Response<BoxBody<Bytes, Infallible>>> {
    let StatelessCall { id, name, mut arguments, shows_forms, opens_pages, shows_pages } = call;
    if name == compact::CALL || server.shared.settings.extension.is_some() {
        return None;
    }
    let entry = server.resolve(client, &name, &mut arguments).ok()?;
    let (_, spec) = entry.definition(client.mode.into())?;
    if listing::with_headers(&name, &spec.input_schema).is_some() {
        return None;
    }
    let asks = |can: bool| if can { Elicitation::Result(None) } else { Elicitation::Unsupported };
    let (elicitation, connection) = (asks(shows_forms), asks(opens_pages));
    let source = CallSource { elicitation, connection, context: None, shows_pages };
    let response = server.call_entry(client, &entry, arguments, source).await?;
    let message = ServerJsonRpcMessage::response(ServerResult::from(response), id);
    let body = serde_json::to_vec(&message).ok()?;
    let mut response = Response::new(Full::from(body).boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Some(response)
}
