//! `GET /tools` and `POST /tools`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::catalog::{NewTool, SourceText, UnreadableFile};
use haft_core::implementation::Kind;
use haft_core::name::BundleSlug;
use haft_core::problem::Problem;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, Tool, ToolType};
use haft_definition::dialect::ParsedDefinition;
use haft_runtime::registry::{Entry, Snapshot};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::definition::{self, Place};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, created, success};
use crate::view::ToolView;

/// A page of tools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolList {
    tools: Vec<ToolView>,
    /// How many fit the filter in all.
    total: usize,
    /// How many of them can run.
    ready: usize,
    /// How many of them cannot.
    failed: usize,
    next_page_token: Option<String>,
}

/// List tools.
#[utoipa::path(
    get, path = "/tools", tag = "tools",
    params(
        ("filter" = Option<String>, Query, description = "`all`, `built-in`, `skills` or `plugins`"),
        ("runtime" = Option<String>, Query, description = "`bash`, `python`, `wasm`"),
        ("status" = Option<String>, Query, description = "`draft`, `published`, `deprecated`, `disabled`"),
        ("implementation_type" = Option<String>, Query),
        ("tool_type" = Option<String>, Query, description = "`built_in`, `mcp`, `artifact`, `custom`"),
        ("tags" = Option<String>, Query, description = "Separated by commas; any of them"),
        ("bundle_ids" = Option<String>, Query, description = "Ids or slugs, separated by commas"),
        ("include_disabled" = Option<bool>, Query),
        ("q" = Option<String>, Query, description = "A part of the name, the description or a tag"),
        ("page_size" = Option<u32>, Query), ("page_token" = Option<String>, Query),
        ("skip" = Option<u32>, Query), ("limit" = Option<u32>, Query),
    ),
    responses((status = 200, body = Success<ToolList>), (status = 400, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let filter = Filter::read(&params)?;
    let page = params.page("tools")?;
    let snapshot = app.registry().snapshot();
    let items = filter.items(&snapshot, &identity);
    let total = items.len();
    let ready = items.iter().filter(|item| item.ready()).count();
    let (part, next_page_token) = page.cut(items, Item::key);
    let tools = part.iter().map(Item::view).collect();
    Ok(success(ToolList { tools, total, ready, failed: total - ready, next_page_token }).into_response())
}

/// List the tools that are compiled in.
#[utoipa::path(
    get, path = "/tools/builtins/templates", tag = "tools",
    responses((status = 200, body = Success<ToolList>))
)]
pub(crate) async fn built_ins(State(app): State<Arc<App>>, identity: Identity) -> Result<Response, ApiError> {
    let snapshot = app.registry().snapshot();
    let own = snapshot.tools(&identity.tenant).filter(|entry| entry.tool.built_in);
    let tools: Vec<_> = own.map(|entry| ToolView::from(&**entry)).collect();
    let total = tools.len();
    let ready = snapshot.tools(&identity.tenant).filter(|entry| entry.tool.built_in && entry.ready()).count();
    Ok(success(ToolList { tools, total, ready, failed: total - ready, next_page_token: None })
        .into_response())
}

/// Create a tool from a definition in any dialect.
#[utoipa::path(
    post, path = "/tools", tag = "tools",
    request_body(content_type = "application/json", content = Object,
        description = "A definition in any dialect; `application/yaml` and `application/x-haft-skill` are read too"),
    responses((status = 201, body = Success<ToolView>), (status = 400, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let reading = definition::read(&body, &Place::default())?;
    let text = definition::author_text(&body, &reading);
    let (tool, warnings) = store(&app, &identity, params.get("bundle"), reading, text).await?;
    app.audit(&identity, "tool.create", &tool.qualified());
    let mut view = super::tool::view(&app, &identity, tool.id).await?;
    view.warnings = warnings;
    Ok(created(view))
}

/// Stores a new tool, for this route and for the tool that makes tools.
pub(crate) async fn store(
    app: &App,
    identity: &Identity,
    bundle: Option<&str>,
    reading: ParsedDefinition,
    text: Option<SourceText>,
) -> Result<(Tool, Vec<Problem>), ApiError> {
    definition::refuse_published(reading.status, None)?;
    definition::refuse_other_scope(reading.scope.as_deref())?;
    let bundle = bundle_slug(app, identity, bundle.or(reading.bundle.as_deref()))?;
    if let Ok(existing) = super::bundles::find(app, identity, bundle.as_str()) {
        // A deleted one is revived by the new tool's arrival only through its own route.
        super::bundles::refuse_disabled(&existing)?;
    }
    let folder = app.store().bundle_folder(&identity.tenant, &bundle);
    let checked = definition::check(app, &identity.tenant, (reading, text.as_ref()), None, folder).await?;
    let new = NewTool {
        tenant: identity.tenant.clone(),
        bundle,
        spec: checked.spec,
        form: checked.form,
        text,
        enabled: checked.enabled.unwrap_or(true),
        source: Source::User,
    };
    Ok((app.catalog().create_tool(new).await?, checked.warnings))
}

/// A definition names its bundle by slug or by id; without either it goes to the users' own bundle.
fn bundle_slug(app: &App, identity: &Identity, named: Option<&str>) -> Result<BundleSlug, ApiError> {
    let Some(named) = named else { return Ok(BundleSlug::user_created()) };
    if let Ok(id) = named.parse() {
        let snapshot = app.registry().snapshot();
        let bundle = snapshot.bundle(id).filter(|bundle| bundle.tenant == identity.tenant);
        return bundle.map(|bundle| bundle.slug.clone()).ok_or_else(|| ApiError::not_found("bundle", named));
    }
    Ok(BundleSlug::new(named)?)
}

fn runtime(word: &str) -> Option<&'static str> {
    ["bash", "python", "wasm"].into_iter().find(|runtime| *runtime == word)
}

/// Which tools are wanted.
struct Filter {
    sources: &'static [Source],
    runtime: Option<&'static str>,
    status: Option<Status>,
    kind: Option<Kind>,
    tool_type: Option<ToolType>,
    tags: Vec<String>,
    bundles: Vec<String>,
    include_disabled: bool,
    part: Option<String>,
}

impl Filter {
    fn read(params: &Params) -> Result<Self, ApiError> {
        let sources = |word: &str| -> Option<&'static [Source]> {
            match word {
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
            runtime: params.choice("runtime", runtime, "`bash`, `python`, `wasm`")?,
            status: params.choice(
                "status",
                Status::parse,
                "`draft`, `published`, `deprecated`, `disabled`",
            )?,
            kind: params.choice("implementation_type", Kind::parse, "the implementation types")?,
            tool_type: params.choice(
                "tool_type",
                ToolType::parse,
                "`built_in`, `mcp`, `artifact`, `custom`",
            )?,
            tags: params.words("tags"),
            bundles: params.words("bundle_ids"),
            include_disabled: params.flag("include_disabled")?,
            part: params.get("q").map(str::to_lowercase),
        })
    }

    fn items<'a>(&self, snapshot: &'a Snapshot, identity: &'a Identity) -> Vec<Item<'a>> {
        let tools = snapshot.tools(&identity.tenant).filter(|entry| self.fits(snapshot, entry));
        let mut items: Vec<_> = tools.map(|entry| Item::Tool(entry)).collect();
        let files = snapshot.unreadable(&identity.tenant).filter(|file| self.fits_file(file));
        items.extend(files.map(|file| Item::File(file)));
        if matches!(items.last(), Some(Item::File(_))) {
            items.sort_by_cached_key(Item::key);
        }
        items
    }

    fn fits(&self, snapshot: &Snapshot, entry: &Entry) -> bool {
        let (tool, spec) = (&entry.tool, &entry.tool.spec);
        let on = || tool.enabled && snapshot.is_bundle_enabled(entry);
        self.sources.contains(&tool.source)
            && self.runtime.is_none_or(|runtime| spec.implementation.runtime() == Some(runtime))
            && self.status.is_none_or(|status| tool.status == status)
            && self.kind.is_none_or(|kind| tool.kind() == kind)
            && self.tool_type.is_none_or(|wanted| tool.tool_type() == wanted)
            && (self.tags.is_empty() || spec.tags.iter().any(|tag| self.tags.contains(tag)))
            && (self.bundles.is_empty() || self.in_bundles(tool.bundle.as_str(), &tool.bundle_id.to_string()))
            && (self.include_disabled || on())
            && self.part.as_deref().is_none_or(|part| {
                [spec.name.as_str(), &spec.display_name, &spec.description]
                    .into_iter()
                    .chain(spec.tags.iter().map(String::as_str))
                    .any(|text| text.to_lowercase().contains(part))
            })
    }

    fn in_bundles(&self, slug: &str, id: &str) -> bool {
        self.bundles.iter().any(|wanted| wanted == slug || wanted == id)
    }

    /// A file that cannot be read has no kind, no status and no tags to ask for.
    fn fits_file(&self, file: &UnreadableFile) -> bool {
        self.sources.contains(&Source::User)
            && self.runtime.is_none()
            && self.status.is_none()
            && self.kind.is_none()
            && self.tool_type.is_none()
            && self.tags.is_empty()
            && (self.bundles.is_empty() || self.in_bundles(file.bundle.as_str(), ""))
            && self.part.as_deref().is_none_or(|part| file.name.to_lowercase().contains(part))
    }
}

enum Item<'a> {
    Tool(&'a Entry),
    File(&'a UnreadableFile),
}

impl Item<'_> {
    /// Sorts as the registry does; no name contains the separator.
    fn key(&self) -> String {
        match self {
            Item::Tool(entry) => {
                let (tool, spec) = (&entry.tool, &entry.tool.spec);
                format!("{}\0{}\0{}\0{}", spec.name, tool.bundle, spec.version, tool.id)
            }
            Item::File(file) => format!("{}\0{}\0\0{}", file.name, file.bundle, file.path),
        }
    }

    fn ready(&self) -> bool {
        matches!(self, Item::Tool(entry) if entry.ready())
    }

    fn view(&self) -> ToolView {
        match self {
            Item::Tool(entry) => ToolView::from(*entry),
            Item::File(file) => ToolView::from(*file),
        }
    }
}
