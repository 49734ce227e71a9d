//! The `mcp` executor: calls tools of MCP servers.

use std::fmt::{self, Display};
use std::sync::{Arc, OnceLock, Weak};

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, CallEvent, EventSink, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind};
use haft_core::name::BundleSlug;
use haft_core::outcome::{CallError, Outcome};
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
use super::clients::{McpClients, not_connected};
use super::config::Scrubber;
use super::connection::{Connection, Link};
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
            (Some(id), _) => Server::OAuthConfig(BundleSlug::new(id).map_err(|error| {
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
        let (clients, tool) = (Arc::clone(&self.clients), mcp.tool_name.clone());
        Ok(Arc::new(McpTool { clients, server, tool }))
    }
}

struct McpTool {
    clients: ClientsHandle,
    server: Server,
    tool: String,
}

/// The server of a tool.
enum Server {
    OAuthConfig(BundleSlug),
    Address(ServerAddress),
}

impl Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Server::OAuthConfig(id) => id.fmt(f),
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
    ) -> Result<Arc<Connection>, CallError> {
        match self {
            Server::OAuthConfig(id) => clients.connect(call.tenant(), id).await,
            Server::Address(address) => {
                let connection = clients.ad_hoc.connection(call.tenant(), address);
                connection.map_err(|error| CallError::internal(error.to_string()))
            }
        }
    }
}

impl Prepared for McpTool {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let clients = self
                .clients
                .get()
                .and_then(Weak::upgrade)
                .ok_or_else(|| not_connected(&self.server, "the MCP clients are not running"))?;
            let connection = self.server.connection(&clients, call).await?;
            let link = connection.link().await.map_err(|why| not_connected(&self.server, &why))?;
            let hide = || link.scrubber.secrets().into_iter().for_each(|secret| call.hide(secret));
            hide();
            let response = call_tool(&link, &self.tool, call, args).await;
            // The access token may have been renewed during the call.
            hide();
            let response = response.map_err(|error| errors::call_error(&self.server, &error))?;
            let (outcome, attachments) = value::outcome(response);
            call.report_content(attachments);
            outcome
        })
    }
}

async fn call_tool(
    link: &Link,
    tool: &str,
    call: &CallContext,
    args: &Map<String, Value>,
) -> Result<CallToolResponse, ServiceError> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
    let request = CallToolRequest::new(params);
    let events = call.events.clone().map(|sink| {
        let scrubbing: Arc<dyn EventSink> = Arc::new(ScrubbingSink { sink, scrubber: link.scrubber.clone() });
        scrubbing
    });
    if let Some(stateless) = link.stateless.as_ref().filter(|stateless| stateless.supports(tool)) {
        return call_response(stateless.call(request, events.as_ref()).await?);
    }
    let request = ClientRequest::CallToolRequest(request);
    let handle = link.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let _progress = events.map(|sink| link.handler.subscribe(handle.progress_token.clone(), sink));
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

/// Removes the secrets of a server from its progress messages.
struct ScrubbingSink {
    sink: Arc<dyn EventSink>,
    scrubber: Scrubber,
}

impl EventSink for ScrubbingSink {
    fn emit(&self, event: CallEvent) {
        self.sink.emit(match event {
            CallEvent::Progress(done, text) => CallEvent::Progress(done, self.scrubber.clean(text)),
            other @ CallEvent::Output(_) => other,
        });
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
