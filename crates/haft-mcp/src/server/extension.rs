//! The extension point for programs that serve more than tools over MCP: prompts, resources, completions, and tools
//! that send requests to the client (sampling, elicitation).
//!
//! Requests and results are JSON as the protocol spells them, so an extension does not depend on rmcp.

use haft_core::BoxFuture;
use rmcp::model::{ErrorCode, InputRequiredResult, ServerRequest};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::broadcast;

use super::client_context::SessionKey;
use super::handler::McpServer;

/// Handles MCP requests that haft itself does not serve, or handles before haft does.
///
/// An extension sees `tools/call`, the `prompts/` and `resources/` methods and `completion/complete`. A `tools/call`
/// that it handles does not run through the pipeline; ordinary tools are functions of the program.
pub trait ProtocolExtension: Send + Sync {
    /// Returns the server capabilities to declare besides tools and logging.
    fn capabilities(&self) -> Value;

    /// Handles a request; `None` leaves it to haft.
    fn handle<'a>(&'a self, request: ExtensionRequest<'a>) -> BoxFuture<'a, Option<ExtensionResult>>;
}

/// The `result` of a handled request, or its `error`.
pub type ExtensionResult = Result<Value, ExtensionError>;

/// A request of a client.
pub struct ExtensionRequest<'a> {
    /// The method, such as `prompts/get`.
    pub method: &'a str,
    /// The parameters.
    pub params: Value,
    /// The client that sent the request.
    pub client: ExtensionClient<'a>,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ExtensionError {
    /// The code.
    pub code: i32,
    /// The message.
    pub message: String,
    /// More for the client to read.
    pub data: Option<Value>,
}

impl ExtensionError {
    /// Rejects the parameters of a request.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::INVALID_PARAMS.0, message: message.into(), data: None }
    }

    /// Reports a failure of the extension itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::INTERNAL_ERROR.0, message: message.into(), data: None }
    }
}

/// The client that sent a request.
pub struct ExtensionClient<'a> {
    context: &'a RequestContext<RoleServer>,
    owner: SessionKey,
    list_changed: &'a broadcast::Sender<SessionKey>,
}

impl ExtensionClient<'_> {
    /// Returns the capabilities that the client declared.
    pub fn capabilities(&self) -> Value {
        serde_json::to_value(self.context.client_capabilities()).unwrap_or_default()
    }

    /// Sends a request to the client and returns its result. Clients of version 2026-07-28 accept none: return a result
    /// of the type `input_required` to them.
    pub async fn request(&self, request: Value) -> ExtensionResult {
        let request: ServerRequest =
            serde_json::from_value(request).map_err(|error| ExtensionError::internal(error.to_string()))?;
        let response = self.context.peer.send_request(request).await;
        let response = response.map_err(|error| ExtensionError::internal(error.to_string()))?;
        serde_json::to_value(response).map_err(|error| ExtensionError::internal(error.to_string()))
    }

    /// Notifies the client that its list of tools has changed.
    pub fn notify_tool_list_changed(&self) {
        // An error means that no client is listening.
        let _ = self.list_changed.send(self.owner.clone());
    }
}

/// Offers a request to the extension; `None` where there is none or it leaves the request to haft.
pub(super) async fn handle(
    server: &McpServer,
    method: &str,
    params: &(impl Serialize + Sync),
    context: &RequestContext<RoleServer>,
) -> Option<Result<Value, ErrorData>> {
    let extension = server.shared.settings.extension.as_ref()?;
    let owner = match server.client(&context.extensions) {
        Ok(client) => client.session_key(),
        Err(error) => return Some(Err(error)),
    };
    let params = serde_json::to_value(params).unwrap_or_default();
    let client = ExtensionClient { context, owner, list_changed: &server.shared.list_changed };
    let result = extension.handle(ExtensionRequest { method, params, client }).await?;
    Some(
        result
            .map_err(|ExtensionError { code, message, data }| ErrorData::new(ErrorCode(code), message, data)),
    )
}

/// Reads a complete result.
pub(super) fn complete<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    if let Some(map) = result.as_object_mut() {
        map.entry("resultType").or_insert_with(|| "complete".into());
    }
    serde_json::from_value(result).map_err(|error| {
        ErrorData::internal_error(format!("the extension returned an invalid result: {error}"), None)
    })
}

/// Reads a result that is complete or requests more input from the client.
pub(super) fn response<T, R>(result: Value) -> Result<R, ErrorData>
where
    T: DeserializeOwned,
    R: From<T> + From<InputRequiredResult>,
{
    if result.get("resultType").is_some_and(|kind| kind == "input_required") {
        return complete::<InputRequiredResult>(result).map(R::from);
    }
    complete::<T>(result).map(R::from)
}
