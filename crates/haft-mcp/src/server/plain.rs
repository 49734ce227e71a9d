//! Calls that stand for themselves: one request of the newest version, one answer, nothing told in between. rmcp would
//! make a service, a transport and some tasks for each, which cost more than all else that haft does for it. Whatever
//! is not exactly such a call is left to rmcp, with all its checks.

use std::convert::Infallible;

use bytes::Bytes;
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

use super::compact;
use super::handler::McpServer;
use super::listing;
use super::seat::ClientContext;

const CALL: &str = "tools/call";
/// Headers that repeat arguments begin so.
const PARAMETERS: &str = "mcp-param-";

/// A call, as far as it is needed.
pub(super) struct PlainCall {
    id: RequestId,
    name: String,
    arguments: Map<String, Value>,
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
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

/// What a request has to say of its client. Whoever says more wants to hear more.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: String,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    _info: Implementation,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    _capabilities: ClientCapabilities,
}

/// Tells whether the head of a request promises such a call.
pub(super) fn is_promised(method: &Method, headers: &HeaderMap) -> bool {
    let one = |name: &str| {
        let mut all = headers.get_all(name).iter();
        all.next().filter(|_| all.next().is_none())?.to_str().ok()
    };
    let accepted = one(ACCEPT.as_str()).unwrap_or_default();
    method == Method::POST
        && one(HEADER_MCP_METHOD) == Some(CALL)
        && one(HEADER_MCP_PROTOCOL_VERSION) == Some(ProtocolVersion::V_2026_07_28.as_str())
        && one(CONTENT_TYPE.as_str()) == Some("application/json")
        && accepted.contains("application/json")
        && accepted.contains("text/event-stream")
        && !headers.keys().any(|name| name.as_str().starts_with(PARAMETERS))
}

/// Reads the call, if it is one and says the same as its headers.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Option<PlainCall> {
    let Message { jsonrpc, id, method, params } = serde_json::from_slice(body).ok()?;
    let Params { name, arguments, meta } = params;
    let said = headers.get(HEADER_MCP_NAME)?;
    // A name that is packed for its header begins so.
    let agrees = said.as_bytes() == name.as_bytes() && !name.starts_with("=?");
    let is_single = headers.get_all(HEADER_MCP_NAME).iter().count() == 1;
    let is_call =
        jsonrpc == "2.0" && method == CALL && meta.version == ProtocolVersion::V_2026_07_28.as_str();
    (agrees && is_single && is_call).then_some(PlainCall { id, name, arguments })
}

impl McpServer {
    /// Answers a call; `None` where it has to go the long way.
    pub(super) async fn answer_plain(
        &self,
        seat: &ClientContext,
        call: PlainCall,
    ) -> Option<Response<BoxBody<Bytes, Infallible>>> {
        let PlainCall { id, name, mut arguments } = call;
        if name == compact::CALL || self.has_fixtures() {
            return None;
        }
        let entry = self.meant(seat, &name, &mut arguments).ok()?;
        let (_, spec) = entry.definition(seat.mode.into())?;
        if listing::with_headers(&name, &spec.input_schema).is_some() {
            return None;
        }
        let result = self.called(seat, &entry, arguments, None).await?;
        let message = ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), id);
        let body = serde_json::to_vec(&message).ok()?;
        let mut response = Response::new(Full::from(body).boxed());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Some(response)
    }
}
