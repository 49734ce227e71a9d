//! What the server answers to each message.
#![expect(deprecated, reason = "older clients still ask for log lines")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::reference::ToolRef;
use haft_runtime::pipeline::{Labels, Pipeline, Request, Wanted};
use haft_runtime::registry::{Entry, Registry, Snapshot};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscriptionFilter,
    Tool,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use super::compact::{self, Found};
use super::seat::Seat;
use super::watcher::Watcher;
use super::{content, listing};

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// With more tools than this in view, a list holds only what finds and calls them, and what was found.
    pub compact_above: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { compact_above: 100 }
    }
}

/// Serves the tools of a registry. One per connection; clones share everything but the log level.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
    /// Who is at the other end, where the transport does not say so with every message.
    seat: Option<Seat>,
    /// Whether the client asked for log lines.
    lines: Arc<AtomicBool>,
}

struct Shared {
    registry: Arc<Registry>,
    pipeline: Arc<Pipeline>,
    settings: Settings,
    found: Found,
    /// Tells that someone's list holds more than before.
    grown: broadcast::Sender<()>,
}

impl McpServer {
    /// Makes a server of these tools.
    pub fn new(registry: Arc<Registry>, pipeline: Arc<Pipeline>, settings: Settings) -> Self {
        let grown = broadcast::Sender::new(1);
        let shared = Shared { registry, pipeline, settings, found: Found::default(), grown };
        Self { shared: Arc::new(shared), seat: None, lines: Arc::default() }
    }

    /// Returns the server for one connection.
    pub(super) fn connection(&self) -> Self {
        Self { lines: Arc::default(), ..self.clone() }
    }

    /// Returns the server for one connection of a client that is known.
    #[must_use]
    pub fn seated(&self, seat: Seat) -> Self {
        Self { seat: Some(seat), ..self.connection() }
    }

    fn seat<'a>(&'a self, extensions: &'a rmcp::model::Extensions) -> Result<&'a Seat, ErrorData> {
        let parts = extensions.get::<http::request::Parts>();
        parts
            .and_then(|parts| parts.extensions.get::<Seat>())
            .or(self.seat.as_ref())
            .ok_or_else(|| ErrorData::internal_error("nobody is known at the other end", None))
    }

    /// Tells whether a client sees only what finds and calls tools.
    fn is_compact(&self, names: usize, snapshot: &Snapshot, seat: &Seat) -> bool {
        names > self.shared.settings.compact_above && find(snapshot, seat, compact::SEARCH).is_ok()
    }

    async fn run(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let seat = self.seat(&context.extensions)?;
        let entry = find(&self.shared.registry.snapshot(), seat, name)?;
        if !seat.may_call {
            let error = CallError::new(ErrorCode::Forbidden, "this token may see tools, but not call them");
            return Ok(content::failure(&error));
        }
        let asked = context.meta.log_level().is_some_and(wants_lines);
        let watching = Watcher::of(context, asked || self.lines.load(Ordering::Relaxed), name);
        let (watcher, events) = watching.map_or((None, None), |(watcher, sink)| (Some(watcher), Some(sink)));
        let call = self.shared.pipeline.call(Request {
            tenant: seat.tenant.clone(),
            tool: Wanted::Found(Arc::clone(&entry)),
            args: arguments,
            mode: seat.mode,
            caller: seat.caller.clone(),
            surface: "mcp",
            timeout: None,
            idempotency_key: None,
            events,
            labels: Labels { request_id: seat.request_id.clone(), ..Labels::default() },
        });
        let call = async {
            match watcher {
                Some(watcher) => watcher.during(call).await,
                None => call.await,
            }
        };
        // Dropping the call cancels it, and its record says so.
        let answer = tokio::select! {
            biased;
            answer = call => answer,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
        };
        let outcome = answer.and_then(|answer| {
            let record = Arc::unwrap_or_clone(answer.record);
            record.error.map_or_else(|| Ok(record.value.unwrap_or_default()), Err)
        });
        if name == compact::SEARCH
            && let Ok(value) = &outcome
            && self.shared.found.keep(seat, value)
        {
            // Nobody may be listening.
            let _ = self.shared.grown.send(());
        }
        let declared = entry
            .definition(seat.mode.into())
            .is_some_and(|(_, spec)| listing::describes_object(&spec.output_schema));
        Ok(content::result(outcome, declared))
    }

    fn list(&self, seat: &Seat) -> Vec<Tool> {
        let snapshot = self.shared.registry.snapshot();
        let offers = seat.offers(&snapshot);
        if !self.is_compact(offers.len(), &snapshot, seat) {
            return offers.iter().map(listing::tool).collect();
        }
        let mut tools: Vec<Tool> =
            self.shared.found.list(seat, &offers).into_iter().map(listing::tool).collect();
        tools.insert(0, compact::call_tool());
        tools
    }

    /// Waits until the list of a client may have changed; several changes in a moment are one.
    async fn changed(&self, changes: &mut Changes) -> bool {
        tokio::select! {
            moved = changes.registry.changed() => moved.is_ok(),
            grown = changes.grown.recv() => !matches!(grown, Err(broadcast::error::RecvError::Closed)),
        }
    }

    fn changes(&self) -> Changes {
        Changes { registry: self.shared.registry.changes(), grown: self.shared.grown.subscribe() }
    }
}

/// The output of a tool is worth no more than the level of information.
fn wants_lines(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}

struct Changes {
    registry: tokio::sync::watch::Receiver<()>,
    grown: broadcast::Receiver<()>,
}

/// How long changes are gathered before a client is told.
const GATHER: std::time::Duration = std::time::Duration::from_millis(200);

/// Finds the tool that a client means. What is not in view is not there.
fn find(snapshot: &Snapshot, seat: &Seat, name: &str) -> Result<Arc<Entry>, ErrorData> {
    let unknown = |why: String| ErrorData::invalid_params(why, None);
    let reference: ToolRef = name.parse().map_err(|_| unknown(format!("there is no tool `{name}`")))?;
    let entry = match snapshot.resolve_in(&seat.tenant, &reference, seat.mode) {
        Ok(entry) if seat.sees(&entry.tool.bundle) => entry,
        resolved => {
            let offered = snapshot.offered_as(&seat.tenant, name, seat.mode);
            let within = offered.or_else(|| in_view(snapshot, seat, name));
            within.filter(|entry| seat.sees(&entry.tool.bundle)).ok_or_else(|| {
                unknown(resolved.map_or_else(
                    |error| error.to_string(),
                    |_| format!("there is no tool `{name}` in this view"),
                ))
            })?
        }
    };
    Ok(Arc::clone(entry))
}

/// Finds a tool by its bare name in the view of one bundle, where that name means another one elsewhere.
fn in_view<'a>(snapshot: &'a Snapshot, seat: &'a Seat, name: &str) -> Option<&'a Arc<Entry>> {
    let super::seat::View::Bundle(slug) = &seat.view else { return None };
    let reference: ToolRef = format!("{slug}:{name}").parse().ok()?;
    snapshot.resolve_in(&seat.tenant, &reference, seat.mode).ok()
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        capabilities.logging = Some(Map::new());
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("haft", env!("CARGO_PKG_VERSION")).with_title("haft"))
            .with_instructions(
                "The tools of a haft installation. A failed call says in its text what to do about it.",
            )
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.list(self.seat(&context.extensions)?);
        listing::page(tools, request.as_ref().and_then(|request| request.cursor.as_deref()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match &*request.name {
            compact::CALL if !self.has_own(compact::CALL, &context)? => {
                let (name, arguments) = compact::meant(arguments)?;
                self.run(&name, arguments, &context).await?
            }
            name => self.run(name, arguments, &context).await?,
        };
        Ok(CallToolResponse::Complete(result))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        // Asked only for headers that repeat arguments, which no definition here has.
        let _ = name;
        None
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.lines.store(wants_lines(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (server, mut changes) = (self.clone(), self.changes());
        tokio::spawn(async move {
            while server.changed(&mut changes).await {
                tokio::time::sleep(GATHER).await;
                changes.registry.mark_unchanged();
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes();
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                more = self.changed(&mut changes) => if !more { return Ok(()) },
            }
            tokio::time::sleep(GATHER).await;
            changes.registry.mark_unchanged();
            if subscription.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

impl McpServer {
    /// Tells whether a tool of the installation has this name: it goes before what the protocol side adds.
    fn has_own(&self, name: &str, context: &RequestContext<RoleServer>) -> Result<bool, ErrorData> {
        let seat = self.seat(&context.extensions)?;
        Ok(find(&self.shared.registry.snapshot(), seat, name).is_ok())
    }
}
