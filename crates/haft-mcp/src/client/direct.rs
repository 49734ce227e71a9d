//! Calls of servers of the newer kind that are addresses. Such a server keeps no session: a call is one request and its
//! answer, so whoever calls sends it. rmcp would hand each message from task to task, which takes longer than all else
//! that haft does for a call.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::StreamExt as _;
use haft_core::executor::EventSink;
use haft_core::mcp::ListedTool;
use http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, ClientConfig, ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta as _,
    JsonRpcMessage, NumberOrString, ProgressToken, ProtocolVersion, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::service::ServiceError;
use rmcp::transport::common::http_header::{HEADER_MCP_METHOD, HEADER_MCP_NAME, HEADER_MCP_PROTOCOL_VERSION};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient as _, StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use serde_json::Value;

use super::handler::{self, Listener};
use super::http::{Failed, Guarded};

/// Marks an argument of which a server wants a copy in a header; such calls are left to rmcp, which makes it.
const COPIED: &str = "x-mcp-header";

/// Sends calls to one server.
pub(super) struct Direct {
    client: Guarded,
    url: Arc<str>,
    headers: HashMap<HeaderName, HeaderValue>,
    /// What every request says of this client.
    meta: RequestMetaObject,
    requests: AtomicU64,
    listener: Listener,
    /// The tools whose calls need nothing special.
    plain: RwLock<HashSet<String>>,
}

impl Direct {
    pub(super) fn new(
        client: Guarded,
        url: &str,
        version: &ProtocolVersion,
        listener: Listener,
    ) -> Result<Self, http::Error> {
        let mut meta = RequestMetaObject::new();
        let ClientConfig { capabilities, client_info, .. } = handler::described();
        meta.set_protocol_version(version.clone());
        meta.set_client_info(client_info);
        meta.set_client_capabilities(capabilities);
        let mut headers = HashMap::new();
        for (name, value) in
            [(HEADER_MCP_PROTOCOL_VERSION, version.as_str()), (HEADER_MCP_METHOD, "tools/call")]
        {
            headers.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let (requests, plain) = (AtomicU64::default(), RwLock::default());
        Ok(Self { client, url: url.into(), headers, meta, requests, listener, plain })
    }

    /// Learns which tools there are.
    pub(super) fn learn(&self, listed: &[ListedTool]) {
        let plain = listed.iter().filter(|tool| is_plain(tool)).map(|tool| tool.name.clone()).collect();
        *self.plain.write().unwrap_or_else(PoisonError::into_inner) = plain;
    }

    /// Tells whether a tool may be called in this way.
    pub(super) fn takes(&self, tool: &str) -> bool {
        self.plain.read().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }

    /// Calls a tool. Dropping the future closes the connection, by which the server learns that nobody waits.
    pub(super) async fn call(
        &self,
        request: CallToolRequest,
        events: Option<&Arc<dyn EventSink>>,
    ) -> Result<ServerResult, ServiceError> {
        let answer = self.send(request, events).await;
        let known = [ErrorCode::INVALID_PARAMS, ErrorCode::INTERNAL_ERROR];
        match &answer {
            Ok(_) => {}
            Err(ServiceError::McpError(error)) if known.contains(&error.code) => {}
            // It may be gone, or be another one now: whoever keeps the connection finds out.
            Err(_) => self.listener.list_changed.notify_one(),
        }
        answer
    }

    async fn send(
        &self,
        request: CallToolRequest,
        events: Option<&Arc<dyn EventSink>>,
    ) -> Result<ServerResult, ServiceError> {
        let mut headers = self.headers.clone();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(HEADER_MCP_NAME.as_bytes()), HeaderValue::from_str(&request.params.name))
        {
            headers.insert(name, value);
        }
        // Told apart from those that rmcp numbers.
        let id =
            NumberOrString::String(format!("call-{}", self.requests.fetch_add(1, Ordering::Relaxed)).into());
        let mut meta = self.meta.clone();
        if events.is_some() {
            meta.set_progress_token(ProgressToken(id.clone()));
        }
        let mut request = ClientRequest::CallToolRequest(request);
        request.get_meta_mut().extend(meta);
        let message = ClientJsonRpcMessage::request(request, id.clone());
        let sent = self.client.post_message(Arc::clone(&self.url), message, None, None, headers).await;
        match sent.map_err(broken)? {
            StreamableHttpPostResponse::Json(answer, _) => {
                self.take(answer, &id, events).unwrap_or(Err(ServiceError::UnexpectedResponse))
            }
            StreamableHttpPostResponse::Sse(mut stream, _) => {
                while let Some(event) = stream.next().await {
                    let event = event.map_err(|error| broken(StreamableHttpError::Sse(error)))?;
                    let Some(text) = event.data.filter(|text| !text.trim().is_empty()) else { continue };
                    let message = serde_json::from_str(&text).map_err(|error| broken(error.into()))?;
                    if let Some(answer) = self.take(message, &id, events) {
                        return answer;
                    }
                }
                Err(ServiceError::TransportClosed)
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    /// Takes what a server says while a call runs; returns the answer, once it comes.
    fn take(
        &self,
        message: ServerJsonRpcMessage,
        id: &RequestId,
        events: Option<&Arc<dyn EventSink>>,
    ) -> Option<Result<ServerResult, ServiceError>> {
        match message {
            JsonRpcMessage::Response(response) if response.id == *id => Some(Ok(response.result)),
            JsonRpcMessage::Error(error) if error.id.as_ref().is_none_or(|of| of == id) => {
                Some(Err(ServiceError::McpError(error.error)))
            }
            JsonRpcMessage::Notification(told) => {
                match told.notification {
                    ServerNotification::ProgressNotification(progress)
                        if progress.params.progress_token.0 == *id =>
                    {
                        if let Some(events) = events {
                            events.emit(handler::event(progress.params));
                        }
                    }
                    ServerNotification::ToolListChangedNotification(_) => {
                        self.listener.list_changed.notify_one();
                    }
                    _ => {}
                }
                None
            }
            _ => None,
        }
    }
}

fn broken(error: StreamableHttpError<Failed>) -> ServiceError {
    let error = DynamicTransportError::new::<StreamableHttpClientTransport<Guarded>, RoleClient>(error);
    ServiceError::TransportSend(error)
}

/// Tells whether a call of a tool is the same request but for its name and its arguments.
fn is_plain(tool: &ListedTool) -> bool {
    // Any other name would have to be packed to stand in a header.
    let fits = tool.name.bytes().all(|byte| byte.is_ascii_graphic()) && !tool.name.starts_with("=?");
    fits && !has_copies(&tool.input_schema)
}

fn has_copies(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, inner)| key == COPIED || has_copies(inner)),
        Value::Array(items) => items.iter().any(has_copies),
        _ => false,
    }
}
