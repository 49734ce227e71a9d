//! The rows of `GET /tools?fields=summary`: small enough that a page can load all tools of a large installation.

use haft_core::Timestamp;
use haft_core::catalog::UnreadableFile;
use haft_core::implementation::Kind;
use haft_core::problem::excerpt;
use haft_core::spec::Policy;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, ToolType, Usage};
use haft_runtime::registry::{Entry, Snapshot};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::view::ToolRuntime;
use haft_platform::viewer::Viewer;

/// The length that descriptions and errors are shortened to, in characters.
const MAX_TEXT: usize = 200;

/// A page of summaries of tools.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolSummaryList {
    pub(super) tools: Vec<ToolSummary>,
    /// The number of tools that match the filter.
    pub(super) total: usize,
    /// How many of them are ready to run.
    pub(super) ready: usize,
    /// How many of them are not ready.
    pub(super) failed: usize,
    #[schema(required)]
    pub(super) next_page_token: Option<String>,
}

/// A tool without its schemas and its implementation. Long texts are shortened, and fields that say nothing are missing.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the API")]
pub(crate) struct ToolSummary {
    /// The id; `null` for an unreadable file.
    #[schema(required)]
    id: Option<Uuid>,
    #[schema(example = "user-created")]
    bundle: String,
    #[schema(example = "greet")]
    name: String,
    #[schema(example = "1.0.0")]
    version: String,
    #[schema(example = "Greet")]
    display_name: String,
    #[schema(example = "Greets somebody by name")]
    description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    category: String,
    #[schema(example = json!(["demo"]))]
    tags: Vec<String>,
    tool_type: ToolType,
    /// The kind of implementation; `null` for an unreadable file.
    #[schema(required)]
    implementation_type: Option<Kind>,
    /// The language of a body, or `built-in`.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<ToolRuntime>,
    policy: Policy,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    requires_confirmation: bool,
    status: Status,
    enabled: bool,
    built_in: bool,
    /// Whether the newest revision is ready to run.
    ready: bool,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    source: Source,
    /// How often it was called; missing if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    modified_at: Timestamp,
    /// Whether the token of the request may call the tool now, as far as that does not depend on the arguments.
    callable: bool,
    /// How many warnings the tool has.
    warning_count: usize,
}

impl ToolSummary {
    /// Creates the summary of a tool for a viewer.
    pub(super) fn new(entry: &Entry, viewer: &Viewer, snapshot: &Snapshot, warning_count: usize) -> Self {
        let (tool, spec) = (&entry.tool, &entry.tool.spec);
        let principal = viewer.principal();
        let is_platform_admin = principal.platform && principal.role == Role::Admin;
        // The usage of a global tool counts the calls of all tenants.
        let hides_usage = tool.tenant.is_global() && !is_platform_admin;
        Self {
            id: Some(tool.id.0),
            bundle: tool.bundle.to_string(),
            name: spec.name.to_string(),
            version: spec.version.to_string(),
            display_name: spec.title().to_owned(),
            description: excerpt(&spec.description, MAX_TEXT),
            category: spec.category.clone(),
            tags: spec.tags.clone(),
            tool_type: tool.tool_type(),
            implementation_type: Some(tool.kind()),
            runtime: ToolRuntime::of(tool),
            policy: spec.policy,
            requires_confirmation: spec.requires_confirmation,
            status: tool.status,
            enabled: tool.enabled,
            built_in: tool.built_in,
            ready: entry.ready(),
            error: entry.fault().map(|fault| excerpt(&fault, MAX_TEXT)),
            source: tool.source,
            usage: Some(entry.usage()).filter(|usage| !hides_usage && *usage != Usage::default()),
            modified_at: tool.modified_at,
            callable: viewer.may_call(snapshot, entry),
            warning_count,
        }
    }
}

impl From<&UnreadableFile> for ToolSummary {
    fn from(file: &UnreadableFile) -> Self {
        Self {
            id: None,
            bundle: file.bundle.to_string(),
            name: file.name.clone(),
            version: String::new(),
            display_name: file.name.clone(),
            description: String::new(),
            category: String::new(),
            tags: Vec::new(),
            tool_type: ToolType::Custom,
            implementation_type: None,
            runtime: None,
            policy: Policy::Allow,
            requires_confirmation: false,
            status: Status::Draft,
            enabled: true,
            built_in: false,
            ready: false,
            error: Some(excerpt(&file.error, MAX_TEXT)),
            source: Source::User,
            usage: None,
            modified_at: file.modified_at,
            callable: false,
            warning_count: 0,
        }
    }
}
