//! `GET /tools` and `POST /tools`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::implementation::Kind;
use haft_core::page;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, ToolType};
use haft_definition::dialect::Defaults;
use haft_runtime::registry::{Entry, Snapshot};
use utoipa::IntoParams;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{Success, created, success};
use crate::routes::definition_body::{DefinitionBody, author_text, parse};
use crate::view;
use haft_api::tool::{ToolList, ToolView};
use haft_api::tool_summary::{ToolPage, ToolSummary, ToolSummaryList};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::identity::Identity;
use haft_platform::tools::{self, ListItem, ToolFilter};
use haft_platform::viewer::Viewer;
use haft_platform::warnings::Warnings;

/// The largest page of summaries.
const MAX_SUMMARIES: u32 = 5000;

/// List tools.
#[utoipa::path(
    get, path = "/tools", tag = "tools",
    params(
        ToolFilterParams,
        ("q" = Option<String>, Query, description = "Part of the name, the description or a tag"),
        ("deleted" = Option<bool>, Query, description = "The deleted tools that can be restored, as summaries, the last one first; for editors. Of the filters only `q` applies"),
        ("fields" = Option<String>, Query, pattern = "^(all|summary)$", description = "`summary` leaves out schemas and implementation; default: `all`"),
        PageParams,
    ),
    responses((status = 200, body = Success<ToolPage>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    if params.flag("deleted")? {
        return deleted(&app, &identity, &params).await;
    }
    let filter = filter(&params)?;
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
                    view::summary(entry, &viewer, &snapshot, warnings.of(entry).await.len())
                }
                ListItem::File(file) => ToolSummary::from(*file),
            });
        }
        let list = ToolSummaryList { tools, total, ready, failed, next_page_token };
        return Ok(success(ToolPage::Summary(list)).into_response());
    }
    let mut tools = Vec::with_capacity(selected.len());
    for item in &selected {
        let mut view = item_view(item, &viewer, &snapshot);
        if let ListItem::Tool(entry) = item {
            view.warnings = warnings.of(entry).await;
        }
        tools.push(view);
    }
    Ok(success(ToolPage::All(ToolList { tools, total, ready, failed, next_page_token })).into_response())
}

/// Lists the deleted tools that can be restored. Several can have the same name, so their position is a number.
async fn deleted(app: &Installation, identity: &Identity, params: &Params) -> Result<Response, ApiError> {
    let page = params.page("deleted tools")?;
    let mut deleted = tools::deleted(app, identity).await?;
    if let Some(text) = params.get("q").map(str::to_lowercase) {
        deleted.retain(|deleted| {
            let spec = &deleted.tool.spec;
            [spec.name.as_str(), spec.title(), &spec.description]
                .iter()
                .any(|field| field.to_lowercase().contains(&text))
        });
    }
    let total = deleted.len();
    let start = page.after::<usize>()?.unwrap_or(0).saturating_add(to_usize(page.skip));
    let end = start.saturating_add(to_usize(page.size));
    let next_page_token = (end < total).then(|| page.token(&end.to_string()));
    let shown = deleted.iter().skip(start).take(to_usize(page.size));
    let tools = shown.map(|deleted| ToolSummary::of_deleted(&deleted.tool, deleted.deleted_at)).collect();
    let list = ToolSummaryList { tools, total, ready: 0, failed: 0, next_page_token };
    Ok(success(ToolPage::Summary(list)).into_response())
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
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
pub(crate) async fn built_ins(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    let snapshot = app.registry().snapshot();
    let viewer = Viewer::new(&app, &identity);
    let is_listed = |entry: &&Arc<Entry>| entry.tool.built_in && viewer.lists(&snapshot, entry, false);
    let built_ins: Vec<_> = snapshot.tools(&identity.tenant).filter(is_listed).collect();
    let total = built_ins.len();
    let ready = built_ins.iter().filter(|entry| entry.ready()).count();
    let tools = built_ins.into_iter().map(|entry| view::tool(entry, &viewer, &snapshot)).collect();
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let parsed = parse(&body, &Defaults::default())?;
    let text = author_text(&body, &parsed);
    let (tool, warnings) = tools::store(&app, &identity, params.get("bundle"), parsed, text).await?;
    audit::note(&identity, "tool.create", &tool.qualified());
    Ok(created(super::tool::view_with_warnings(&app, &identity, tool.id, warnings).await?))
}

/// The filter of a list of tools, as the OpenAPI document shows it; [`filter`] parses it.
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
    /// The kind of implementation; `custom` stands for the tools that tenants define
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

fn parse_runtime(text: &str) -> Option<&'static str> {
    ["bash", "python", "wasm"].into_iter().find(|runtime| *runtime == text)
}

/// Parses the filter of a list of tools.
pub(super) fn filter(params: &Params) -> Result<ToolFilter, ApiError> {
    let sources = |text: &str| -> Option<&'static [Source]> {
        match text {
            "all" => Some(&Source::ALL),
            "built-in" | "builtin" => Some(&[Source::BuiltIn]),
            "skills" | "user" => Some(&[Source::User]),
            "plugins" => Some(&[Source::Toolset, Source::Mcp]),
            _ => None,
        }
    };
    // `custom` is an implementation type of tenant registries, too.
    let is_custom = params.get("implementation_type") == Some("custom");
    let kind = if is_custom {
        None
    } else {
        params.choice("implementation_type", Kind::parse, "the implementation types, for example `http`")?
    };
    let tool_type = params.choice("tool_type", ToolType::parse, "`built_in`, `mcp`, `artifact`, `custom`")?;
    Ok(ToolFilter {
        sources: params
            .choice("filter", sources, "`all`, `built-in`, `skills`, `plugins`")?
            .unwrap_or(&Source::ALL),
        runtime: params.choice("runtime", parse_runtime, "`bash`, `python`, `wasm`")?,
        status: params.choice("status", Status::parse, "`draft`, `published`, `deprecated`, `disabled`")?,
        kind,
        tool_type: tool_type.or(is_custom.then_some(ToolType::Custom)),
        tags: params.list("tags"),
        bundles: params.list("bundle_ids"),
        include_disabled: params.flag("include_disabled")?,
        include_copies: params.flag("include_builtin_copies")?,
        text: params.get("q").map(str::to_lowercase),
    })
}

fn item_view(item: &ListItem<'_>, viewer: &Viewer, snapshot: &Snapshot) -> ToolView {
    match item {
        ListItem::Tool(entry) => view::tool(entry, viewer, snapshot),
        ListItem::File(file) => ToolView::from(*file),
    }
}
