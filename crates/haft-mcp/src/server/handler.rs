//! The MCP server: its settings, its list of tools, and a response to each request.
#![expect(deprecated, reason = "clients of older versions request log messages with `logging/setLevel`")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use haft_runtime::pipeline::Pipeline;
use haft_runtime::registry::{Entry, Registry, Snapshot, ToolOffer};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, ConstString, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, PromptsCapability, ProtocolVersion, ReadResourceRequestMethod,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourcesCapability,
    ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestMethod,
    SubscribeRequestParams, SubscriptionFilter, Tool, ToolsCapability, UnsubscribeRequestMethod,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::approvals::ApprovalDesk;
use super::calls::{find, helper, includes_output};
use super::changes::ListChanges;
use super::client_context::{self, ClientContext, SessionKey};
use super::compact::{self, FoundTools};
use super::envelope::LEVELS;
use super::extension::{self, ProtocolExtension};
use super::listing;
use super::packages::PackageSource;
use super::{apps, paging, skills};

/// Known methods, other than those of tools and logging, that require parameters.
const METHODS_WITH_PARAMS: [&str; 6] = [
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "initialize",
];

/// Methods that version 2026-07-28 removed.
const REMOVED_METHODS: [&str; 4] =
    ["initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The settings of an MCP server.
#[derive(Clone)]
pub struct Settings {
    /// The number of tools above which the list is compact: `search_tools`, `describe_tool`, `call_tool`, and the tools
    /// that the client has found.
    pub compact_above: usize,
    /// The estimated number of tokens of all tools above which the list is compact.
    pub compact_above_tokens: usize,
    /// Where the person at a client decides about its calls; `None` asks nobody.
    pub approvals: Option<Arc<dyn ApprovalDesk>>,
    /// How long a call waits for an account before a client without a session is asked again; below the time after which
    /// clients give up.
    pub connect_wait: Duration,
    /// Reads the packages of toolsets, for prompts and resources; `None` serves none.
    pub packages: Option<Arc<dyn PackageSource>>,
    /// Handles requests that haft does not.
    pub extension: Option<Arc<dyn ProtocolExtension>>,
    /// Cancelled when the server begins to shut down; streams that wait for notifications end then.
    pub stopping: CancellationToken,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            compact_above: 100,
            compact_above_tokens: 32_000,
            approvals: None,
            connect_wait: Duration::from_secs(50),
            packages: None,
            extension: None,
            stopping: CancellationToken::new(),
        }
    }
}

/// Serves the tools of a registry over MCP.
///
/// There is one per connection; all of them share the registry, the pipeline and the settings.
#[derive(Clone)]
pub struct McpServer {
    pub(super) shared: Arc<Shared>,
    /// The client, for transports that do not identify it with every message.
    client: Option<ClientContext>,
    /// Whether the client requested log messages.
    pub(super) sends_logs: Arc<AtomicBool>,
    /// Cancelled when the transport reports the end of input: running calls still get their response, but no
    /// notifications.
    pub(super) input_closed: CancellationToken,
}

/// State shared by all connections.
pub(super) struct Shared {
    pub(super) registry: Arc<Registry>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) settings: Settings,
    pub(super) found: FoundTools,
    /// Announces owners whose compact list has grown.
    pub(super) list_changed: broadcast::Sender<SessionKey>,
}

impl McpServer {
    /// Creates a server of the tools in `registry`.
    pub fn new(registry: Arc<Registry>, pipeline: Arc<Pipeline>, settings: Settings) -> Self {
        let list_changed = broadcast::Sender::new(16);
        let shared = Shared { registry, pipeline, settings, found: FoundTools::default(), list_changed };
        Self {
            shared: Arc::new(shared),
            client: None,
            sends_logs: Arc::default(),
            input_closed: CancellationToken::new(),
        }
    }

    /// Returns the server for one connection.
    pub(super) fn connection(&self) -> Self {
        Self { sends_logs: Arc::default(), input_closed: CancellationToken::new(), ..self.clone() }
    }

    /// Returns the server for one connection of a known client.
    #[must_use]
    pub(super) fn for_client(&self, client: ClientContext) -> Self {
        Self { client: Some(client), ..self.connection() }
    }

    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.shared.settings.stopping
    }

    pub(super) fn client<'a>(
        &'a self,
        extensions: &'a rmcp::model::Extensions,
    ) -> Result<&'a ClientContext, ErrorData> {
        let parts = extensions.get::<http::request::Parts>();
        parts
            .and_then(|parts| parts.extensions.get::<ClientContext>())
            .or(self.client.as_ref())
            .ok_or_else(|| ErrorData::internal_error("the client of this connection is unknown", None))
    }

    /// Returns whether a client sees the compact list.
    fn is_compact(&self, offers: &[ToolOffer<'_>], snapshot: &Snapshot, client: &ClientContext) -> bool {
        let Settings { compact_above, compact_above_tokens, .. } = &self.shared.settings;
        let is_long = offers.len() > *compact_above
            || offers.iter().map(|offer| offer.entry.tokens()).sum::<usize>() > *compact_above_tokens;
        // A viewer cannot call `search_tools` or `call_tool`, so it sees everything.
        is_long && client.may_call() && helper(snapshot, client, compact::SEARCH).is_some()
    }

    /// Returns a helper of a client that sees the compact list.
    pub(super) fn compact_helper(
        &self,
        snapshot: &Snapshot,
        client: &ClientContext,
        name: &str,
    ) -> Option<Arc<Entry>> {
        let offers = client.offers(snapshot);
        helper(snapshot, client, name).filter(|_| self.is_compact(&offers, snapshot, client))
    }

    fn list(
        &self,
        client: &ClientContext,
        cursor: Option<&str>,
        shows_pages: bool,
    ) -> Result<ListToolsResult, ErrorData> {
        let snapshot = self.shared.registry.snapshot();
        let offers = client.offers(&snapshot);
        let has_pages = shows_pages && self.shared.settings.packages.is_some();
        let write = |offer: &ToolOffer<'_>| {
            let tool = listing::tool(offer);
            match apps::page_of(&snapshot, offer).filter(|_| has_pages) {
                Some(page) => tool.with_meta(apps::tool_meta(&page)),
                None => tool,
            }
        };
        if !self.is_compact(&offers, &snapshot, client) {
            return Ok(tool_list(paging::page(&offers, cursor, write)?));
        }
        let found = self.shared.found.list(client, &offers);
        let mut tools: Vec<Tool> = found.into_iter().map(write).collect();
        for name in compact::HELPERS.into_iter().rev() {
            let built_in = helper(&snapshot, client, name);
            if let Some(entry) = built_in.filter(|entry| !client.sees(&entry.tool)) {
                tools.insert(0, listing::tool(&snapshot.offer(&entry, client.audience())));
            }
        }
        tools.insert(0, compact::call_tool());
        Ok(tool_list(paging::page(&tools, cursor, Tool::clone)?))
    }

    /// Returns whether `call_tool` means the one of the compact list: a tool of that name takes precedence only where the
    /// list is not compact.
    pub(super) fn is_call_tool(&self, context: &RequestContext<RoleServer>) -> Result<bool, ErrorData> {
        let client = self.client(&context.extensions)?;
        let snapshot = self.shared.registry.snapshot();
        let is_free = find(&snapshot, client, compact::CALL).is_err();
        Ok(is_free || self.is_compact(&client.offers(&snapshot), &snapshot, client))
    }

    /// Returns whether the prompts and resources of packages are served.
    fn serves_packages(&self) -> bool {
        self.shared.settings.packages.is_some()
    }

    /// Returns the empty list of an extension that leaves a list to haft; without an extension the method does not exist.
    fn unserved_list<M: ConstString, T: Default>(&self) -> Result<T, ErrorData> {
        match self.shared.settings.extension {
            Some(_) => Ok(T::default()),
            None => Err(ErrorData::method_not_found::<M>()),
        }
    }

    /// Passes a request to the extension; without one the method does not exist.
    async fn extended_only<M: ConstString>(
        &self,
        params: &(impl Serialize + Sync),
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        let result = extension::handle(self, M::VALUE, params, context).await;
        result.unwrap_or_else(|| Err(ErrorData::method_not_found::<M>()))
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let extension = self.shared.settings.extension.as_ref();
        let extended = extension.and_then(|extension| serde_json::from_value(extension.capabilities()).ok());
        let mut capabilities: ServerCapabilities = extended.unwrap_or_default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
        capabilities.logging = Some(Map::new());
        if self.shared.settings.packages.is_some() {
            declare_packages(&mut capabilities);
        }
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("haft", env!("CARGO_PKG_VERSION")).with_title("haft"))
            .with_instructions(
                "The tools of a haft server. The text of a failed call says what went wrong and how to fix it.",
            )
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.as_ref().and_then(|request| request.cursor.as_deref());
        self.list(self.client(&context.extensions)?, cursor, shows_pages(&context))
    }

    // Boxed, because rmcp moves the future of every request several times.
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
        Box::pin(self.handle_call(request, context))
    }

    // rmcp needs the schema to validate headers that repeat arguments (`x-mcp-header`).
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let client = client_context::current()?;
        let entry = find(&self.shared.registry.snapshot(), &client, name).ok()?;
        let (_, spec) = entry.definition(client.mode.into())?;
        listing::with_headers(name, &spec.input_schema)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // The version of the request, not of the session: the two can differ.
        if context.meta.protocol_version().is_some_and(|own| own >= ProtocolVersion::V_2026_07_28) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.sends_logs.store(includes_output(request.level), Ordering::Relaxed);
        Ok(())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if let Some(result) =
            extension::handle(self, ListResourcesRequestMethod::VALUE, &request, &context).await
        {
            return extension::complete(result?);
        }
        if !self.serves_packages() {
            return self.unserved_list::<ListResourcesRequestMethod, _>();
        }
        let cursor = request.as_ref().and_then(|request| request.cursor.as_deref());
        let client = self.client(&context.extensions)?;
        Box::pin(self.resources(client, cursor, shows_pages(&context))).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let result =
            extension::handle(self, ListResourceTemplatesRequestMethod::VALUE, &request, &context).await;
        match result {
            Some(result) => extension::complete(result?),
            None if self.serves_packages() => Ok(ListResourceTemplatesResult::default()),
            None => self.unserved_list::<ListResourceTemplatesRequestMethod, _>(),
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if let Some(result) =
            extension::handle(self, ReadResourceRequestMethod::VALUE, &request, &context).await
        {
            return extension::response::<ReadResourceResult, _>(result?);
        }
        if !self.serves_packages() {
            return Err(ErrorData::method_not_found::<ReadResourceRequestMethod>());
        }
        let client = self.client(&context.extensions)?;
        Box::pin(self.resource(client, &request.uri)).await.map(ReadResourceResponse::from)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.extended_only::<SubscribeRequestMethod>(&request, &context).await.map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.extended_only::<UnsubscribeRequestMethod>(&request, &context).await.map(drop)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        if let Some(result) =
            extension::handle(self, ListPromptsRequestMethod::VALUE, &request, &context).await
        {
            return extension::complete(result?);
        }
        if !self.serves_packages() {
            return self.unserved_list::<ListPromptsRequestMethod, _>();
        }
        let cursor = request.as_ref().and_then(|request| request.cursor.as_deref());
        Box::pin(self.skill_prompts(self.client(&context.extensions)?, cursor)).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(result) = extension::handle(self, GetPromptRequestMethod::VALUE, &request, &context).await
        {
            return extension::response::<GetPromptResult, _>(result?);
        }
        if !self.serves_packages() {
            return Err(ErrorData::method_not_found::<GetPromptRequestMethod>());
        }
        let client = self.client(&context.extensions)?;
        Box::pin(self.skill_prompt(client, &request)).await.map(GetPromptResponse::from)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        extension::complete(self.extended_only::<CompleteRequestMethod>(&request, &context).await?)
    }

    // rmcp passes unknown methods here, and known ones whose parameters it cannot read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if self.serves_packages() {
            let client = self.client(&context.extensions)?;
            match method.as_str() {
                "skills/list" => {
                    return Box::pin(self.list_skills(client, params.as_ref())).await.map(CustomResult::new);
                }
                "skills/get" => {
                    return Box::pin(self.get_skill(client, params.as_ref())).await.map(CustomResult::new);
                }
                _ => {}
            }
        }
        if method == CallToolRequestMethod::VALUE {
            let message = "invalid `params`: `name` (string) is required; `arguments` must be an object";
            return Err(ErrorData::invalid_params(message, None));
        }
        let is_newer = context.protocol_version().is_some_and(|own| own >= ProtocolVersion::V_2026_07_28);
        if is_newer && REMOVED_METHODS.contains(&method.as_str()) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        if method == SetLevelRequestMethod::VALUE {
            let message = format!("`params.level` must be one of {LEVELS}");
            return Err(ErrorData::invalid_params(message, None));
        }
        let is_of_packages = ["prompts/get", "resources/read"].contains(&method.as_str());
        let is_served = method == "initialize"
            || self.shared.settings.extension.is_some()
            || (is_of_packages && self.serves_packages());
        if is_served && METHODS_WITH_PARAMS.contains(&method.as_str()) {
            return Err(ErrorData::invalid_params(format!("invalid `params` for `{method}`"), None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Ok(client) = self.client(&context.extensions) {
            let changes = ListChanges::new(&self.shared, client.clone());
            tokio::spawn(changes.notify_session(context.peer));
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.tools_list_changed = requested.tools_list_changed;
        // An extension of the program may declare lists that do not change.
        let declared = self.get_info().capabilities;
        if declared.prompts.is_some_and(|prompts| prompts.list_changed == Some(true)) {
            accepted.prompts_list_changed = requested.prompts_list_changed;
        }
        if declared.resources.is_some_and(|resources| resources.list_changed == Some(true)) {
            accepted.resources_list_changed = requested.resources_list_changed;
        }
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.client(&subscription.request_context().extensions)?;
        let changes = ListChanges::new(&self.shared, client.clone());
        tokio::select! {
            () = Box::pin(changes.notify_subscriber(self.stopping(), &subscription)) => {}
            // The connection closes only when this has ended.
            () = self.input_closed.cancelled() => {}
        }
        Ok(())
    }
}

/// Declares prompts, resources and their extensions. What an extension of the program declares stays.
fn declare_packages(capabilities: &mut ServerCapabilities) {
    capabilities.prompts.get_or_insert_with(|| {
        let mut prompts = PromptsCapability::default();
        prompts.list_changed = Some(true);
        prompts
    });
    capabilities.resources.get_or_insert_with(|| {
        let mut resources = ResourcesCapability::default();
        resources.list_changed = Some(true);
        resources
    });
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.entry(skills::EXTENSION.to_owned()).or_default();
    let pages = json!({"mimeTypes": [apps::MEDIA_TYPE]}).as_object().cloned().unwrap_or_default();
    extensions.entry(apps::EXTENSION.to_owned()).or_insert(pages);
}

/// Returns whether the client of a request shows pages.
fn shows_pages(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().as_ref().is_some_and(apps::shows_pages)
}

fn tool_list((tools, next_cursor): (Vec<Tool>, Option<String>)) -> ListToolsResult {
    ListToolsResult { next_cursor, ..ListToolsResult::with_all_items(tools) }
}
