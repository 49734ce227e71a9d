//! What the server answers to each message.
#![expect(deprecated, reason = "older clients still ask for log lines")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft_runtime::pipeline::Pipeline;
use haft_runtime::registry::{Entry, Registry, Snapshot, ToolOffer};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ConstString, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    PromptsCapability, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ResourcesCapability,
    ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestMethod,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::calls::{find, search, wants_lines};
use super::changes::Changes;
use super::compact::{self, Found};
use super::fixtures::{self, Asking};
use super::listing;
use super::peek::LEVELS;
use super::seat::{self, ClientContext, Owner};

/// Other methods that are known and cannot do without parameters.
const NEED_PARAMS: [&str; 6] = [
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "initialize",
];

/// Methods that version 2026-07-28 has no more.
const REMOVED: [&str; 4] = ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// With more tools than this in view, a list holds only what finds and calls them, and what was found.
    pub compact_above: usize,
    /// So does one with tools of more tokens than this, as far as that can be estimated.
    pub compact_above_tokens: usize,
    /// Whether to offer what the conformance suite calls, besides.
    pub fixtures: bool,
    /// Cancelled when the server begins to stop: whoever waits for news is sent home.
    pub stopping: CancellationToken,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            compact_above: 100,
            compact_above_tokens: 32_000,
            fixtures: false,
            stopping: CancellationToken::new(),
        }
    }
}

/// Serves the tools of a registry. One per connection; clones share everything but the log level.
#[derive(Clone)]
pub struct McpServer {
    pub(super) shared: Arc<Shared>,
    /// Who is at the other end, where the transport does not say so with every message.
    seat: Option<ClientContext>,
    /// Whether the client asked for log lines.
    pub(super) lines: Arc<AtomicBool>,
    /// Cancelled where nothing more comes from the client, as far as the transport can tell: its calls are still
    /// answered, and nothing else is told any more.
    pub(super) gone: CancellationToken,
}

/// What all connections share.
pub(super) struct Shared {
    pub(super) registry: Arc<Registry>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) settings: Settings,
    pub(super) found: Found,
    /// Tools of the conformance suite that ask the client back, where it is served.
    pub(super) fixtures: Option<Asking>,
    /// Tells whose list holds more than before.
    pub(super) grown: broadcast::Sender<Owner>,
}

impl McpServer {
    /// Makes a server of these tools.
    pub fn new(registry: Arc<Registry>, pipeline: Arc<Pipeline>, settings: Settings) -> Self {
        let grown = broadcast::Sender::new(16);
        let fixtures = settings.fixtures.then(Asking::default);
        let shared = Shared { registry, pipeline, settings, found: Found::default(), fixtures, grown };
        Self { shared: Arc::new(shared), seat: None, lines: Arc::default(), gone: CancellationToken::new() }
    }

    /// Returns the server for one connection.
    pub(super) fn connection(&self) -> Self {
        Self { lines: Arc::default(), gone: CancellationToken::new(), ..self.clone() }
    }

    /// Returns the server for one connection of a client that is known.
    #[must_use]
    pub(super) fn seated(&self, seat: ClientContext) -> Self {
        Self { seat: Some(seat), ..self.connection() }
    }

    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.shared.settings.stopping
    }

    pub(super) fn seat<'a>(
        &'a self,
        extensions: &'a rmcp::model::Extensions,
    ) -> Result<&'a ClientContext, ErrorData> {
        let parts = extensions.get::<http::request::Parts>();
        parts
            .and_then(|parts| parts.extensions.get::<ClientContext>())
            .or(self.seat.as_ref())
            .ok_or_else(|| ErrorData::internal_error("nobody is known at the other end", None))
    }

    /// Tells whether a client sees only what finds and calls tools.
    fn is_compact(&self, offers: &[ToolOffer<'_>], snapshot: &Snapshot, seat: &ClientContext) -> bool {
        let Settings { compact_above, compact_above_tokens, .. } = &self.shared.settings;
        let is_long = offers.len() > *compact_above
            || offers.iter().map(|offer| offer.entry.tokens()).sum::<usize>() > *compact_above_tokens;
        // Whoever may only look is shown everything: what finds and calls is nothing to them.
        is_long && seat.may_call && search(snapshot, seat).is_some()
    }

    /// Returns what searches for a client, where its list is a short one.
    pub(super) fn search_of(&self, snapshot: &Snapshot, seat: &ClientContext) -> Option<Arc<Entry>> {
        let offers = seat.offers(snapshot);
        search(snapshot, seat).filter(|_| self.is_compact(&offers, snapshot, seat))
    }

    fn list(&self, seat: &ClientContext, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let offers = seat.offers(&snapshot);
        if !self.is_compact(&offers, &snapshot, seat) {
            return listing::page(&offers, cursor, listing::tool);
        }
        let found = self.shared.found.list(seat, &offers);
        let mut tools: Vec<Tool> = found.into_iter().map(listing::tool).collect();
        if let Some(search) = search(&snapshot, seat).filter(|entry| !seat.sees(&entry.tool.bundle)) {
            tools.insert(0, listing::tool(&snapshot.offer(&search, seat.mode)));
        }
        tools.insert(0, compact::call_tool());
        listing::page(&tools, cursor, Tool::clone)
    }

    pub(super) fn has_fixtures(&self) -> bool {
        self.shared.fixtures.is_some()
    }

    fn need_fixtures<M: ConstString>(&self) -> Result<(), ErrorData> {
        if self.has_fixtures() { Ok(()) } else { Err(ErrorData::method_not_found::<M>()) }
    }

    /// Tells whether `call_tool` is what calls others: always where it is listed as that, whatever a tool calls itself.
    pub(super) fn means_ours(&self, context: &RequestContext<RoleServer>) -> Result<bool, ErrorData> {
        let seat = self.seat(&context.extensions)?;
        let snapshot = self.shared.registry.snapshot();
        let is_ours = find(&snapshot, seat, compact::CALL).is_err();
        Ok(is_ours || self.is_compact(&seat.offers(&snapshot), &snapshot, seat))
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        capabilities.logging = Some(Map::new());
        if self.shared.fixtures.is_some() {
            let mut resources = ResourcesCapability::default();
            resources.subscribe = Some(true);
            capabilities.resources = Some(resources);
            capabilities.prompts = Some(PromptsCapability::default());
            capabilities.completions = Some(Map::new());
        }
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
        let cursor = request.as_ref().and_then(|request| request.cursor.as_deref());
        self.list(self.seat(&context.extensions)?, cursor)
    }

    /// Boxed, as rmcp moves the future of every request on several times.
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        Box::pin(self.answer_call(request, context))
    }

    /// Asked when a request comes, for headers that repeat arguments: the schema says which.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let seat = seat::current()?;
        let entry = find(&self.shared.registry.snapshot(), &seat, name).ok()?;
        let (_, spec) = entry.definition(seat.mode.into())?;
        listing::with_headers(name, &spec.input_schema)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // What the request itself says: a session may have been asked for by a version that it does not speak.
        if context.meta.protocol_version().is_some_and(|own| own >= ProtocolVersion::V_2026_07_28) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.lines.store(wants_lines(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if self.has_fixtures() { fixtures::resources() } else { Ok(ListResourcesResult::default()) }
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        if self.has_fixtures() { fixtures::templates() } else { Ok(ListResourceTemplatesResult::default()) }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if self.has_fixtures() {
            return fixtures::read(&request.uri);
        }
        let uri = json!({"uri": request.uri});
        Err(ErrorData::resource_not_found("there is no such resource", Some(uri)))
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.need_fixtures::<SubscribeRequestMethod>()
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.need_fixtures::<UnsubscribeRequestMethod>()
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        if self.has_fixtures() { fixtures::prompts() } else { Ok(ListPromptsResult::default()) }
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if self.has_fixtures() {
            return fixtures::prompt(&request);
        }
        Err(ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.need_fixtures::<CompleteRequestMethod>()?;
        fixtures::completion()
    }

    /// What rmcp hands over here is a method that nobody knows, or a known one with parameters that are not its.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, .. } = request;
        if method == CallToolRequestMethod::VALUE {
            let why = "`params` must have a `name`, and `arguments`, where there are some, must be an object";
            return Err(ErrorData::invalid_params(why, None));
        }
        let is_newer = context.protocol_version().is_some_and(|own| own >= ProtocolVersion::V_2026_07_28);
        if is_newer && REMOVED.contains(&method.as_str()) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        if method == SetLevelRequestMethod::VALUE {
            let why = format!("`params.level` must be one of {LEVELS}");
            return Err(ErrorData::invalid_params(why, None));
        }
        if NEED_PARAMS.contains(&method.as_str()) {
            let why = format!("`params` are not those of `{method}`");
            return Err(ErrorData::invalid_params(why, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Ok(seat) = self.seat(&context.extensions) {
            let changes = Changes::of(&self.shared, seat.owner());
            tokio::spawn(changes.tell_session(context.peer));
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let seat = self.seat(&subscription.request_context().extensions)?;
        let changes = Changes::of(&self.shared, seat.owner());
        tokio::select! {
            () = Box::pin(changes.tell_subscriber(self.stopping(), &subscription)) => {}
            // Else the end of the connection would wait for it.
            () = self.gone.cancelled() => {}
        }
        Ok(())
    }
}
