//! What a surface passes to the pipeline.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::EventSink;
use haft_core::id::{ApprovalId, WebhookId};
use haft_core::invocation::Lineage;
pub use haft_core::principal::Principal;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::workspace::{WorkspaceFolder, WorkspaceName};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::registry::ResolvedTool;

/// The tool to call.
#[derive(Clone)]
pub enum CallTarget {
    /// By reference.
    Named(ToolRef),
    /// Already resolved in the registry by the surface.
    Resolved(ResolvedTool),
}

impl From<ToolRef> for CallTarget {
    fn from(tool: ToolRef) -> Self {
        CallTarget::Named(tool)
    }
}

/// A request to call a tool.
#[derive(Clone)]
pub struct Request {
    /// Who calls.
    pub principal: Arc<Principal>,
    /// The arguments.
    pub args: Map<String, Value>,
    /// The mode: production runs the published revision, debug the newest.
    pub mode: Mode,
    /// The surface: `rest`, `mcp`, `library`, …
    pub surface: &'static str,
    /// Overrides the timeout of the definition, up to a maximum.
    pub timeout: Option<Duration>,
    /// Receives the events of a call in the foreground; queued calls have their own channel.
    pub events: Option<Arc<dyn EventSink>>,
    /// The call that makes this one.
    pub lineage: Lineage,
    /// The workspace of the call that makes this one, which this call shares.
    pub workspace: Option<Arc<WorkspaceFolder>>,
    /// Cancels the call, also if it has an idempotency key and so runs on when its client is gone.
    pub cancel: Option<CancellationToken>,
    /// Whether a person tries the tool, who thereby confirms the call. Policy rules still hold.
    pub is_test: bool,
    /// Whether the call is stored and waits if its person has to connect an account first. Otherwise it fails.
    pub waits_for_account: bool,
    /// The wait for an account that the request answers: it is the same call again, which may have run meanwhile.
    pub resumes: Option<ApprovalId>,
    /// The context of the call: chat, workspace, session.
    pub options: Option<Box<CallOptions>>,
}

impl Request {
    /// Creates a request with neither timeout nor options, in production mode.
    pub fn new(principal: Arc<Principal>, surface: &'static str, args: Map<String, Value>) -> Self {
        Self {
            principal,
            args,
            mode: Mode::Production,
            surface,
            timeout: None,
            events: None,
            lineage: Lineage::default(),
            workspace: None,
            cancel: None,
            is_test: false,
            waits_for_account: false,
            resumes: None,
            options: None,
        }
    }
}

/// The context of a call, which its record also contains.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The key by which a repeated request finds this call.
    pub idempotency_key: Option<String>,
    /// The id of the HTTP or MCP request.
    pub request_id: Option<String>,
    /// The chat the call belongs to.
    pub chat_id: Option<String>,
    /// The message the call belongs to.
    pub message_id: Option<String>,
    /// The workspace the call works in.
    pub workspace: Option<WorkspaceName>,
    /// The connection of a client, or another session; default: the chat.
    pub session: Option<Arc<str>>,
    /// The webhook that the end of the call is delivered to.
    pub webhook: Option<WebhookId>,
}

impl CallOptions {
    /// Returns options with this request id, if there is one.
    pub fn of_request(request_id: Option<String>) -> Option<Box<Self>> {
        request_id.map(|id| Box::new(Self { request_id: Some(id), ..Self::default() }))
    }
}
