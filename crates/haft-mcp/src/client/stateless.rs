//! Calls to stateless HTTP servers (version 2026-07-28). A call is one request and its response, so the caller sends it
//! directly. rmcp would pass each message between tasks, which takes longer than everything else that haft does for a call.

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

use super::handler::{self, NotificationHandler};
use super::http::{EgressClient, HttpError};

/// Marks an argument that is repeated in a header. rmcp makes such calls.
const HEADER_KEYWORD: &str = "x-mcp-header";

/// Sends calls to one stateless server.
pub(super) struct StatelessCaller {
    client: EgressClient,
    url: Arc<str>,
    headers: HashMap<HeaderName, HeaderValue>,
    /// The metadata of every request.
    meta: RequestMetaObject,
    requests: AtomicU64,
    handler: NotificationHandler,
    /// The tools that can be called directly.
    supported: RwLock<HashSet<String>>,
}

impl StatelessCaller {
    pub(super) fn new(
        client: EgressClient,
        url: &str,
        version: &ProtocolVersion,
        handler: NotificationHandler,
    ) -> Result<Self, http::Error> {
        let mut meta = RequestMetaObject::new();
        let ClientConfig { capabilities, client_info, .. } = handler::client_config();
        meta.set_protocol_version(version.clone());
        meta.set_client_info(client_info);
        meta.set_client_capabilities(capabilities);
        let mut headers = HashMap::new();
        for (name, value) in
            [(HEADER_MCP_PROTOCOL_VERSION, version.as_str()), (HEADER_MCP_METHOD, "tools/call")]
        {
            headers.insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let (requests, supported) = (AtomicU64::default(), RwLock::default());
        Ok(Self { client, url: url.into(), headers, meta, requests, handler, supported })
    }

    /// Sets the tools of the server.
    pub(super) fn set_tools(&self, tools: &[ListedTool]) {
        let supported =
            tools.iter().filter(|tool| is_supported(tool)).map(|tool| tool.name.clone()).collect();
        *self.supported.write().unwrap_or_else(PoisonError::into_inner) = supported;
    }

    /// Returns whether a tool can be called directly.
    pub(super) fn supports(&self, tool: &str) -> bool {
        self.supported.read().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }

    /// Calls a tool. Dropping the future closes the connection, which cancels the call.
    pub(super) async fn call(
        &self,
        request: CallToolRequest,
        progress: &Arc<dyn EventSink>,
    ) -> Result<ServerResult, ServiceError> {
        let result = self.send(request, progress).await;
        let call_errors = [ErrorCode::INVALID_PARAMS, ErrorCode::INTERNAL_ERROR];
        match &result {
            Ok(_) => {}
            Err(ServiceError::McpError(error)) if call_errors.contains(&error.code) => {}
            // The server may be gone or restarted: reading the list finds out.
            Err(_) => self.handler.list_changed.notify_one(),
        }
        result
    }

    async fn send(
        &self,
        request: CallToolRequest,
        progress: &Arc<dyn EventSink>,
    ) -> Result<ServerResult, ServiceError> {
        let mut headers = self.headers.clone();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(HEADER_MCP_NAME.as_bytes()), HeaderValue::from_str(&request.params.name))
        {
            headers.insert(name, value);
        }
        // Strings, to differ from the numbers that rmcp uses.
        let id =
            NumberOrString::String(format!("call-{}", self.requests.fetch_add(1, Ordering::Relaxed)).into());
        let mut meta = self.meta.clone();
        // Progress keeps the call alive, whether or not its caller sees it.
        meta.set_progress_token(ProgressToken(id.clone()));
        let mut request = ClientRequest::CallToolRequest(request);
        request.get_meta_mut().extend(meta);
        let message = ClientJsonRpcMessage::request(request, id.clone());
        let response = self.client.post_message(Arc::clone(&self.url), message, None, None, headers).await;
        match response.map_err(transport_error)? {
            StreamableHttpPostResponse::Json(message, _) => {
                self.receive(message, &id, progress).unwrap_or(Err(ServiceError::UnexpectedResponse))
            }
            StreamableHttpPostResponse::Sse(mut stream, _) => {
                while let Some(event) = stream.next().await {
                    let event = event.map_err(|error| transport_error(StreamableHttpError::Sse(error)))?;
                    let Some(text) = event.data.filter(|text| !text.trim().is_empty()) else { continue };
                    let message =
                        serde_json::from_str(&text).map_err(|error| transport_error(error.into()))?;
                    if let Some(result) = self.receive(message, &id, progress) {
                        return result;
                    }
                }
                Err(ServiceError::TransportClosed)
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    /// Handles a message of a running call; returns the result if it is the response.
    fn receive(
        &self,
        message: ServerJsonRpcMessage,
        id: &RequestId,
        progress: &Arc<dyn EventSink>,
    ) -> Option<Result<ServerResult, ServiceError>> {
        match message {
            JsonRpcMessage::Response(response) if response.id == *id => Some(Ok(response.result)),
            JsonRpcMessage::Error(error) if error.id.as_ref().is_none_or(|of| of == id) => {
                Some(Err(ServiceError::McpError(error.error)))
            }
            JsonRpcMessage::Notification(message) => {
                match message.notification {
                    ServerNotification::ProgressNotification(message)
                        if message.params.progress_token.0 == *id =>
                    {
                        progress.emit(handler::progress_event(message.params));
                    }
                    ServerNotification::ToolListChangedNotification(_) => {
                        self.handler.list_changed.notify_one();
                    }
                    _ => {}
                }
                None
            }
            _ => None,
        }
    }
}

fn transport_error(error: StreamableHttpError<HttpError>) -> ServiceError {
    let error = DynamicTransportError::new::<StreamableHttpClientTransport<EgressClient>, RoleClient>(error);
    ServiceError::TransportSend(error)
}

/// Returns whether a tool can be called without further headers or encodings.
fn is_supported(tool: &ListedTool) -> bool {
    // Other names have to be encoded in the header.
    let fits_header = tool.name.bytes().all(|byte| byte.is_ascii_graphic()) && !tool.name.starts_with("=?");
    fits_header && !has_header_keyword(&tool.input_schema)
}

fn has_header_keyword(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.iter().any(|(key, inner)| key == HEADER_KEYWORD || has_header_keyword(inner))
        }
        Value::Array(items) => items.iter().any(has_header_keyword),
        _ => false,
    }
}
