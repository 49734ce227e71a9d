//! The `mcp` executor: tools of servers that are configured.

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

use super::addresses::Address;
use super::clients::{McpClients, not_connected};
use super::connection::{Connection, Link};
use super::filled::Scrubber;
use super::{value, words};

/// Runs tools of MCP servers. It is made before the store from which the servers are known, which is told later.
#[derive(Default)]
pub struct McpExecutor {
    clients: Told,
}

/// Not the clients themselves: they hold the store, which tells the registry, which holds what runs tools.
type Told = Arc<OnceLock<Weak<McpClients>>>;

impl McpExecutor {
    /// Says which servers there are; what was said first holds.
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
            (None, Some(url)) => Server::At(Address { url: url.clone(), headers: mcp.headers.clone() }),
            (None, None) => {
                let message = "name a configured server in `server`, or say its address in `server_url`";
                return Err(vec![Problem::new("implementation.server_url", "not_configured", message)]);
            }
        };
        let (clients, tool) = (Arc::clone(&self.clients), mcp.tool_name.clone());
        Ok(Arc::new(Ready { clients, server, tool }))
    }
}

struct Ready {
    clients: Told,
    server: Server,
    tool: String,
}

/// Which server a tool is of.
enum Server {
    Configured(BundleSlug),
    At(Address),
}

impl Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Server::Configured(id) => id.fmt(f),
            // The rest of an address may hold what nobody else is to read.
            Server::At(address) => {
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
            Server::Configured(id) => clients.for_call(call.tenant(), id).await,
            Server::At(address) => {
                let made = clients.addresses.connection(call.tenant(), address);
                made.map_err(|error| CallError::internal(error.to_string()))
            }
        }
    }
}

impl Prepared for Ready {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let clients = self
                .clients
                .get()
                .and_then(Weak::upgrade)
                .ok_or_else(|| not_connected(&self.server, "the program is not serving"))?;
            let connection = self.server.connection(&clients, call).await?;
            let link = connection.link().await.map_err(|why| not_connected(&self.server, &why))?;
            let hide = || link.scrubber.secrets().into_iter().for_each(|secret| call.hide(secret));
            hide();
            let answer = ask(&link, &self.tool, call, args).await;
            // A token may have been renewed meanwhile.
            hide();
            let answer = answer.map_err(|error| words::of_call(&self.server, &error))?;
            let (outcome, beside) = value::outcome(answer);
            call.report_content(beside);
            outcome
        })
    }
}

async fn ask(
    link: &Link,
    tool: &str,
    call: &CallContext,
    args: &Map<String, Value>,
) -> Result<CallToolResponse, ServiceError> {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
    let request = CallToolRequest::new(params);
    let events = call.events.clone().map(|sink| {
        let clean: Arc<dyn EventSink> = Arc::new(Clean { sink, scrubber: link.scrubber.clone() });
        clean
    });
    if let Some(direct) = link.direct.as_ref().filter(|direct| direct.takes(tool)) {
        return response(direct.call(request, events.as_ref()).await?);
    }
    let request = ClientRequest::CallToolRequest(request);
    let handle = link.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let _watched = events.map(|sink| link.listener.watch(handle.progress_token.clone(), sink));
    let mut abandoned = Abandoned { peer: link.peer.clone(), id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    abandoned.id = None;
    response(answer?)
}

fn response(result: ServerResult) -> Result<CallToolResponse, ServiceError> {
    match result {
        ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
        ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
        ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Takes the secrets of a server out of what it tells while a call runs.
struct Clean {
    sink: Arc<dyn EventSink>,
    scrubber: Scrubber,
}

impl EventSink for Clean {
    fn emit(&self, event: CallEvent) {
        self.sink.emit(match event {
            CallEvent::Progress(done, text) => CallEvent::Progress(done, self.scrubber.clean(text)),
            other @ CallEvent::Output(_) => other,
        });
    }
}

/// Tells the server that nobody waits any more, where a call is dropped.
struct Abandoned {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let told = CancelledNotificationParam::new(Some(id), Some("the call was cancelled".to_owned()));
            // A server that is gone has nothing to cancel.
            drop(peer.notify_cancelled(told).await);
        });
    }
}
