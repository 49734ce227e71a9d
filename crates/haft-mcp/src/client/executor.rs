//! The `mcp` executor: calls tools of MCP servers.

use std::fmt::{self, Display};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::account::AccountUser;
use haft_core::executor::{CallContext, EventSink, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind};
use haft_core::name::BundleSlug;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ClientRequest,
    RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};

use super::ad_hoc::ServerAddress;
use super::call_timer::{CallTimer, MAX_EXTENSION, ProgressSink};
use super::clients::{McpClients, UsedConnection, not_connected};
use super::connection::{Link, LinkError};
use super::workspace_program::WorkspaceCall;
use super::{errors, value};

/// Runs tools of MCP servers. It exists before the store does, so it gets its clients later.
#[derive(Default)]
pub struct McpExecutor {
    clients: ClientsHandle,
}

/// Weak, because the clients own the store, which refers to the registry, which owns the executor.
type ClientsHandle = Arc<OnceLock<Weak<McpClients>>>;

impl McpExecutor {
    /// Sets the clients, once.
    pub fn connect(&self, clients: &Arc<McpClients>) {
        let _ = self.clients.set(Arc::downgrade(clients));
    }
}

impl Executor for McpExecutor {
    fn kind(&self) -> Kind {
        Kind::Mcp
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::Mcp(mcp) = &spec.implementation else {
            return Err(vec![Problem::new("implementation.type", "wrong_type", "expected `mcp`")]);
        };
        let server = match (&mcp.server, &mcp.server_url) {
            (Some(id), _) => Server::Configured(BundleSlug::new(id).map_err(|error| {
                vec![Problem::new("implementation.server", "invalid_name", error.to_string())]
            })?),
            (None, Some(url)) => {
                Server::Address(ServerAddress { url: url.clone(), headers: mcp.headers.clone() })
            }
            (None, None) => {
                let message = "set `server` to a configured server, or `server_url` to a URL";
                return Err(vec![Problem::new("implementation.server_url", "not_configured", message)]);
            }
        };
        Ok(Arc::new(McpTool {
            clients: Arc::clone(&self.clients),
            server,
            name: spec.name.to_string(),
            tool: mcp.tool_name.clone(),
            is_pure: spec.execution.is_pure,
            works_in_workspace: mcp.workspace,
        }))
    }
}

struct McpTool {
    clients: ClientsHandle,
    server: Server,
    /// The name in the catalog.
    name: String,
    /// The name on the server.
    tool: String,
    is_pure: bool,
    /// Whether calls run in the folder of their workspace.
    works_in_workspace: bool,
}

/// The server of a tool.
enum Server {
    Configured(BundleSlug),
    Address(ServerAddress),
}

impl Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Server::Configured(id) => id.fmt(f),
            // Only the host: the rest of a URL may contain secrets.
            Server::Address(address) => {
                let rest = address.url.split_once("://").map_or(address.url.as_str(), |(_, rest)| rest);
                let host = rest.split(['/', '?', '#']).next().and_then(|host| host.rsplit('@').next());
                f.write_str(host.unwrap_or_default())
            }
        }
    }
}

impl Server {
    async fn connection(
        &self,
        clients: &McpClients,
        call: &CallContext,
    ) -> Result<UsedConnection, CallError> {
        match self {
            Server::Configured(id) => clients.connect_for(&call.account_user(), id).await,
            Server::Address(address) => {
                let connection = clients.ad_hoc.connection(call.tenant(), address);
                let connection = connection.map_err(|error| CallError::internal(error.to_string()))?;
                Ok(UsedConnection { connection, person: None })
            }
        }
    }
}

impl McpTool {
    async fn call_on(
        &self,
        clients: &McpClients,
        used: &UsedConnection,
        (call, args): (&CallContext, &Map<String, Value>),
        timer: &Arc<CallTimer>,
    ) -> Outcome {
        let connection = &used.connection;
        let link = match connection.link().await {
            Ok(link) => link,
            Err(LinkError::Denied(why)) => return Err(errors::egress_refused(&self.server, &why)),
            Err(LinkError::NotConnected(why)) => return Err(not_connected(&self.server, &why)),
            Err(LinkError::NeedsAuth(why)) => return Err(self.login_required(clients, used, &why).await),
        };
        let hide = || link.scrubber.secrets().into_iter().for_each(|secret| call.hide(secret));
        hide();
        let progress = ProgressSink {
            timer: Arc::clone(timer),
            sink: call.events.clone(),
            scrubber: link.scrubber.clone(),
        };
        let response = call_tool(&link, &self.tool, Arc::new(progress), args).await;
        // The access token may have been renewed during the call.
        hide();
        let response = match response {
            Ok(response) => response,
            Err(error) => {
                connection.report_failure(&link, &error);
                let failed = errors::call_error(&self.server, &error);
                if used.person.is_some() && errors::is_login_required(&error) {
                    return Err(self.login_required(clients, used, &failed.message).await);
                }
                return Err(failed);
            }
        };
        let (outcome, attachments) = value::outcome(response);
        call.report_content(attachments);
        outcome
    }

    /// Returns the error of a call on a connection that needs a login.
    async fn login_required(&self, clients: &McpClients, used: &UsedConnection, why: &str) -> CallError {
        match (&used.person, &self.server) {
            (Some(person), Server::Configured(id)) => clients.login_rejected(person, id).await,
            _ => not_connected(&self.server, why),
        }
    }

    fn timed_out(&self, timer: &CallTimer) -> CallError {
        let allowed = haft_core::duration::format(timer.allowed);
        let message = format!(
            "`{}` timed out: MCP server `{}` sent no result and no progress for {allowed}",
            self.name, self.server
        );
        // The call may have run.
        CallError::new(ErrorCode::Timeout, message)
            .for_model(format!("the tool timed out after {allowed}"))
            .retryable(self.is_pure)
    }
}

impl Prepared for McpTool {
    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let args = serde_json::to_string_pretty(args).ok()?;
        Some(format!("call the tool `{}` of the MCP server `{}` with:\n\n{args}", self.tool, self.server))
    }

    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let clients = self
                .clients
                .get()
                .and_then(Weak::upgrade)
                .ok_or_else(|| not_connected(&self.server, "the MCP clients are not running"))?;
            let timer = Arc::new(CallTimer::new(call));
            let connection = timer.limit(self.server.connection(&clients, call)).await;
            let used = connection.unwrap_or_else(|| Err(self.timed_out(&timer)))?;
            if let Some(workspace) = call.workspace.as_deref()
                && let server = used.connection.server()
                && server.transport.works_in_workspace()
            {
                let shared = AccountUser { tenant: call.tenant().clone(), actor: None };
                let user = used.person.as_ref().unwrap_or(&shared);
                let job = WorkspaceCall { server: &server, user, workspace, tool: &self.tool, call, args };
                let outcome = Box::pin(clients.workspace_programs.call(clients.parts(), job, &timer)).await;
                return outcome.unwrap_or_else(|| Err(self.timed_out(&timer)));
            }
            let outcome = timer.limit(self.call_on(&clients, &used, (call, args), &timer)).await;
            outcome.unwrap_or_else(|| {
                used.connection.check();
                Err(self.timed_out(&timer))
            })
        })
    }

    fn works_with_files(&self) -> bool {
        self.works_in_workspace
    }

    fn needs_account(&self) -> bool {
        matches!(self.server, Server::Configured(_))
    }

    fn missing_account<'a>(&'a self, call: &'a CallContext) -> BoxFuture<'a, Option<CallError>> {
        Box::pin(async move {
            let clients = self.clients.get().and_then(Weak::upgrade)?;
            let error = self.server.connection(&clients, call).await.err()?;
            (error.code == ErrorCode::CredentialRequired).then_some(error)
        })
    }

    // The timer of the call ends it, unless there is progress.
    fn grace(&self) -> Duration {
        MAX_EXTENSION
    }
}

pub(super) async fn call_tool(
    link: &Link,
    tool: &str,
    progress: Arc<dyn EventSink>,
    args: &Map<String, Value>,
) -> Result<CallToolResponse, ServiceError> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
    let request = CallToolRequest::new(params);
    if let Some(stateless) = link.stateless.as_ref().filter(|stateless| stateless.supports(tool)) {
        return call_response(stateless.call(request, &progress).await?);
    }
    let request = ClientRequest::CallToolRequest(request);
    let handle = link.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let _progress = link.handler.subscribe(handle.progress_token.clone(), progress);
    let mut guard = CancelOnDrop { peer: link.peer.clone(), id: Some(handle.id.clone()) };
    let result = handle.await_response().await;
    guard.id = None;
    call_response(result?)
}

fn call_response(result: ServerResult) -> Result<CallToolResponse, ServiceError> {
    match result {
        ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
        ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
        ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Sends `notifications/cancelled` when a call is dropped.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some("the call was cancelled".to_owned()));
            // An error means that the server is gone.
            drop(peer.notify_cancelled(params).await);
        });
    }
}
