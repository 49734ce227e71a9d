//! `GET /tools` and `POST /tools`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::catalog::{NewTool, SourceText, UnreadableFile};
use haft_core::implementation::Kind;
use haft_core::name::BundleSlug;
use haft_core::page;
use haft_core::problem::Problem;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, Tool, ToolType};
use haft_definition::dialect::{Defaults, ParsedDefinition};
use haft_runtime::registry::{Entry, Snapshot};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::definition::{self, DefinitionBody};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{Success, created, success};
use crate::routes::tool_summary::{ToolSummary, ToolSummaryList};
use crate::view::ToolView;
use crate::viewer::Viewer;
use crate::warnings::Warnings;

/// A page of tools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolList {
    tools: Vec<ToolView>,
    /// The number of tools that match the filter.
    total: usize,
    /// How many of them are ready to run.
    ready: usize,
    /// How many of them are not ready.
    failed: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// The largest page of summaries.
const MAX_SUMMARIES: u32 = 5000;

/// A page of tools, in full or as summaries (`fields=summary`).
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ToolPage {
    /// All fields.
    All(ToolList),
    /// With `fields=summary`.
    Summary(ToolSummaryList),
}

/// List tools.
#[utoipa::path(
    get, path = "/tools", tag = "tools",
    params(
        ToolFilterParams,
        ("q" = Option<String>, Query, description = "Part of the name, the description or a tag"),
        ("fields" = Option<String>, Query, pattern = "^(all|summary)$", description = "`summary` leaves out schemas and implementation; default: `all`"),
        PageParams,
    ),
    responses((status = 200, body = Success<ToolPage>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let filter = ToolFilter::parse(&params)?;
    let is_summary = params.choice("fields", parse_fields, "`all`, `summary`")?.unwrap_or(false);
    let page = params.page_up_to("tools", if is_summary { MAX_SUMMARIES } else { page::MAX_SIZE })?;
    let snapshot = app.registry().snapshot();
    let viewer = Viewer::new(&app, &identity);
    let items = filter.items(&snapshot, &viewer);
    let total = items.len();
    let ready = items.iter().filter(|item| item.ready()).count();
    let (selected, next_page_token) = page.select(items, ListItem::key);
    let failed = total - ready;
    let mut warnings = Warnings::new(&app, &identity);
    if is_summary {
        let mut tools = Vec::with_capacity(selected.len());
        for item in &selected {
            tools.push(match item {
                ListItem::Tool(entry) => {
                    ToolSummary::new(entry, &viewer, &snapshot, warnings.of(entry).await.len())
                }
                ListItem::File(file) => ToolSummary::from(*file),
            });
        }
        let list = ToolSummaryList { tools, total, ready, failed, next_page_token };
        return Ok(success(ToolPage::Summary(list)).into_response());
    }
    let mut tools = Vec::with_capacity(selected.len());
    for item in &selected {
        let mut view = item.view(&viewer, &snapshot);
        if let ListItem::Tool(entry) = item {
            view.warnings = warnings.of(entry).await;
        }
        tools.push(view);
    }
    Ok(success(ToolPage::All(ToolList { tools, total, ready, failed, next_page_token })).into_response())
}

/// Returns whether the rows of a list are summaries.
fn parse_fields(text: &str) -> Option<bool> {
    match text {
        "all" => Some(false),
        "summary" => Some(true),
        _ => None,
    }
}

/// List the built-in tools.
#[utoipa::path(
    get, path = "/tools/builtins/templates", tag = "tools",
    responses((status = 200, body = Success<ToolList>))
)]
pub(crate) async fn built_ins(State(app): State<Arc<App>>, identity: Identity) -> Result<Response, ApiError> {
    let snapshot = app.registry().snapshot();
    let viewer = Viewer::new(&app, &identity);
    let is_listed = |entry: &&Arc<Entry>| entry.tool.built_in && viewer.lists(&snapshot, entry, false);
    let built_ins: Vec<_> = snapshot.tools(&identity.tenant).filter(is_listed).collect();
    let total = built_ins.len();
    let ready = built_ins.iter().filter(|entry| entry.ready()).count();
    let tools = built_ins.into_iter().map(|entry| ToolView::new(entry, &viewer, &snapshot)).collect();
    Ok(success(ToolList { tools, total, ready, failed: total - ready, next_page_token: None })
        .into_response())
}

/// Create a tool from a definition in any dialect.
#[utoipa::path(
    post, path = "/tools", tag = "tools",
    params(("bundle" = Option<String>, Query, description = "Slug or id of the bundle; default: that of the definition, or `user-created`")),
    request_body(description = "A definition in any dialect, as JSON, YAML or a skill",
        content((DefinitionBody = "application/json"), (String = "application/yaml"), (String = "application/x-haft-skill"))),
    responses((status = 201, body = Success<ToolView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 415, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let parsed = definition::parse(&body, &Defaults::default())?;
    let text = definition::author_text(&body, &parsed);
    let (tool, warnings) = store(&app, &identity, params.get("bundle"), parsed, text).await?;
    audit::note(&identity, "tool.create", &tool.qualified());
    Ok(created(super::tool::view_with_warnings(&app, &identity, tool.id, warnings).await?))
}

/// Checks and stores a new tool; shared by all routes and tools that create tools.
pub(crate) async fn store(
    app: &App,
    identity: &Identity,
    bundle: Option<&str>,
    parsed: ParsedDefinition,
    text: Option<SourceText>,
) -> Result<(Tool, Vec<Problem>), ApiError> {
    definition::reject_published(parsed.status, None)?;
    let is_disabled = parsed.status == Some(Status::Disabled);
    definition::reject_other_scope(parsed.scope.as_deref())?;
    let bundle = bundle_slug(app, identity, bundle.or(parsed.bundle.as_deref()))?;
    if let Ok(existing) = super::bundles::find(app, identity, bundle.as_str()) {
        // A deleted bundle is restored only through its own route.
        super::bundles::require_enabled(&existing)?;
    }
    let folder = app.store().bundle_folder(&identity.tenant, &bundle);
    let checked = definition::check(app, &identity.tenant, (parsed, text.as_ref()), None, folder).await?;
    if is_disabled && checked.enabled == Some(true) {
        return Err(ApiError::bad_request(
            "`status` is `disabled`, but `enabled` is true; leave one of them out",
        ));
    }
    let new = NewTool {
        tenant: identity.tenant.clone(),
        bundle,
        spec: checked.spec,
        form: checked.form,
        text,
        enabled: checked.enabled.unwrap_or(!is_disabled),
        source: Source::User,
    };
    Ok((app.store().create_tool(new).await?, checked.warnings))
}

/// Returns the bundle that a definition names by slug or id; the default is the bundle of user-created tools.
pub(crate) fn bundle_slug(
    app: &App,
    identity: &Identity,
    named: Option<&str>,
) -> Result<BundleSlug, ApiError> {
    let Some(named) = named else { return Ok(BundleSlug::user_created()) };
    if let Ok(id) = named.parse() {
        let snapshot = app.registry().snapshot();
        let bundle = snapshot.bundle(id).filter(|bundle| identity.tenant.sees(&bundle.tenant));
        return bundle.map(|bundle| bundle.slug.clone()).ok_or_else(|| ApiError::not_found("bundle", named));
    }
    Ok(BundleSlug::new(named)?)
}

fn parse_runtime(text: &str) -> Option<&'static str> {
    ["bash", "python", "wasm"].into_iter().find(|runtime| *runtime == text)
}

/// The filter of a list of tools, as the OpenAPI document shows it; [`ToolFilter::parse`] parses it.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameters")]
pub(crate) struct ToolFilterParams {
    /// `all`, `built-in` (or `builtin`), `skills` (or `user`), or `plugins`
    #[param(pattern = "^(all|built-in|builtin|skills|user|plugins)$")]
    filter: Option<String>,
    /// `bash`, `python` or `wasm`
    #[param(pattern = "^(bash|python|wasm)$")]
    runtime: Option<String>,
    /// The life cycle status
    status: Option<Status>,
    /// The kind of implementation
    implementation_type: Option<Kind>,
    /// The category of the tool
    tool_type: Option<ToolType>,
    /// Comma-separated; matches any of them
    tags: Option<String>,
    /// Comma-separated ids or slugs
    bundle_ids: Option<String>,
    /// Also tools that cannot be called
    include_disabled: Option<bool>,
    /// Also the tenant's copies of built-in tools that were imported from another registry
    include_builtin_copies: Option<bool>,
}

/// The filter of a list of tools.
pub(crate) struct ToolFilter {
    sources: &'static [Source],
    runtime: Option<&'static str>,
    status: Option<Status>,
    kind: Option<Kind>,
    tool_type: Option<ToolType>,
    tags: Vec<String>,
    bundles: Vec<String>,
    pub(crate) include_disabled: bool,
    include_copies: bool,
    /// A part of the name, the description or a tag, in lower case.
    pub(crate) text: Option<String>,
}

impl ToolFilter {
    pub(crate) fn parse(params: &Params) -> Result<Self, ApiError> {
        let sources = |text: &str| -> Option<&'static [Source]> {
            match text {
                "all" => Some(&Source::ALL),
                "built-in" | "builtin" => Some(&[Source::BuiltIn]),
                "skills" | "user" => Some(&[Source::User]),
                "plugins" => Some(&[Source::Toolset, Source::Mcp]),
                _ => None,
            }
        };
        Ok(Self {
            sources: params
                .choice("filter", sources, "`all`, `built-in`, `skills`, `plugins`")?
                .unwrap_or(&Source::ALL),
            runtime: params.choice("runtime", parse_runtime, "`bash`, `python`, `wasm`")?,
            status: params.choice(
                "status",
                Status::parse,
                "`draft`, `published`, `deprecated`, `disabled`",
            )?,
            kind: params.choice(
                "implementation_type",
                Kind::parse,
                "the implementation types, for example `http`",
            )?,
            tool_type: params.choice(
                "tool_type",
                ToolType::parse,
                "`built_in`, `mcp`, `artifact`, `custom`",
            )?,
            tags: params.list("tags"),
            bundles: params.list("bundle_ids"),
            include_disabled: params.flag("include_disabled")?,
            include_copies: params.flag("include_builtin_copies")?,
            text: params.get("q").map(str::to_lowercase),
        })
    }

    fn items<'a>(&self, snapshot: &'a Snapshot, viewer: &'a Viewer) -> Vec<ListItem<'a>> {
        let tenant = &viewer.principal().tenant;
        let tools = snapshot.tools(tenant).filter(|entry| {
            self.matches(snapshot, entry) && viewer.lists(snapshot, entry, self.include_disabled)
        });
        let mut items: Vec<_> = tools.map(|entry| ListItem::Tool(entry)).collect();
        // A file that cannot be read cannot be called either.
        let lists_files = !viewer.is_restricted();
        let files = snapshot.unreadable(tenant).filter(|file| lists_files && self.matches_file(file));
        items.extend(files.map(|file| ListItem::File(file)));
        if matches!(items.last(), Some(ListItem::File(_))) {
            items.sort_by_cached_key(ListItem::key);
        }
        items
    }

    pub(crate) fn matches(&self, snapshot: &Snapshot, entry: &Entry) -> bool {
        let (tool, spec) = (&entry.tool, &entry.tool.spec);
        let is_enabled = || tool.enabled && snapshot.is_bundle_enabled(entry);
        self.sources.contains(&tool.source)
            && self.runtime.is_none_or(|runtime| spec.implementation.runtime() == Some(runtime))
            && self.status.is_none_or(|status| tool.status == status)
            && self.kind.is_none_or(|kind| tool.kind() == kind)
            && self.tool_type.is_none_or(|tool_type| tool.tool_type() == tool_type)
            && (self.tags.is_empty() || spec.tags.iter().any(|tag| self.tags.contains(tag)))
            && (self.bundles.is_empty() || self.in_bundles(tool.bundle.as_str(), &tool.bundle_id.to_string()))
            && (self.include_disabled || is_enabled())
            && (self.include_copies || !tool.is_built_in_copy())
            && self.text.as_deref().is_none_or(|text| {
                [spec.name.as_str(), &spec.display_name, &spec.description]
                    .into_iter()
                    .chain(spec.tags.iter().map(String::as_str))
                    .any(|field| field.to_lowercase().contains(text))
            })
    }

    fn in_bundles(&self, slug: &str, id: &str) -> bool {
        self.bundles.iter().any(|bundle| bundle == slug || bundle == id)
    }

    /// An unreadable file has no kind, status or tags, so such filters exclude it.
    fn matches_file(&self, file: &UnreadableFile) -> bool {
        self.sources.contains(&Source::User)
            && self.runtime.is_none()
            && self.status.is_none()
            && self.kind.is_none()
            && self.tool_type.is_none()
            && self.tags.is_empty()
            && (self.bundles.is_empty() || self.in_bundles(file.bundle.as_str(), ""))
            && self.text.as_deref().is_none_or(|text| file.name.to_lowercase().contains(text))
    }
}

enum ListItem<'a> {
    Tool(&'a Entry),
    File(&'a UnreadableFile),
}

impl ListItem<'_> {
    /// Returns the sort key, in the order of the registry; names do not contain the separator.
    fn key(&self) -> String {
        match self {
            ListItem::Tool(entry) => {
                let (tool, spec) = (&entry.tool, &entry.tool.spec);
                format!("{}\0{}\0{}\0{}", spec.name, tool.bundle, spec.version, tool.id)
            }
            ListItem::File(file) => format!("{}\0{}\0\0{}", file.name, file.bundle, file.path),
        }
    }

    fn ready(&self) -> bool {
        matches!(self, ListItem::Tool(entry) if entry.ready())
    }

    fn view(&self, viewer: &Viewer, snapshot: &Snapshot) -> ToolView {
        match self {
            ListItem::Tool(entry) => ToolView::new(entry, viewer, snapshot),
            ListItem::File(file) => ToolView::from(*file),
        }
    }
}
