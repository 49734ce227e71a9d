//! The rows of `GET /tools?fields=summary`: small enough that a page can load all tools of a large installation.

use haft_core::Timestamp;
use haft_core::catalog::UnreadableFile;
use haft_core::implementation::Kind;
use haft_core::problem::excerpt;
use haft_core::spec::Policy;
use haft_core::tool::{Source, Status, Tool, ToolType, Usage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::tool::{ToolList, ToolRuntime};

/// A tool without its schemas and its implementation. Long texts are shortened, and fields that say nothing are missing.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the API")]
pub struct ToolSummary {
    /// The id; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub id: Option<Uuid>,
    #[schema(example = "user-created")]
    pub bundle: String,
    #[schema(example = "greet")]
    pub name: String,
    #[schema(example = "1.0.0")]
    pub version: String,
    #[schema(example = "Greet")]
    pub display_name: String,
    #[schema(example = "Greets somebody by name")]
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub category: String,
    #[schema(example = json!(["demo"]))]
    pub tags: Vec<String>,
    pub tool_type: ToolType,
    /// The kind of implementation; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub implementation_type: Option<Kind>,
    /// The language of a body, or `built-in`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<ToolRuntime>,
    pub policy: Policy,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub requires_confirmation: bool,
    pub status: Status,
    pub enabled: bool,
    pub built_in: bool,
    /// Whether the newest revision is ready to run.
    pub ready: bool,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub source: Source,
    /// How often it was called; missing if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub modified_at: Timestamp,
    /// Whether the token of the request may call the tool now, as far as that does not depend on the arguments.
    pub callable: bool,
    /// How many warnings the tool has.
    pub warning_count: usize,
    /// When it was deleted; for 48 hours it can be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
}

impl ToolSummary {
    /// The length that descriptions and errors are shortened to, in characters.
    pub const MAX_TEXT: usize = 200;

    /// Creates the summary of a deleted tool.
    pub fn of_deleted(tool: &Tool, deleted_at: Timestamp) -> Self {
        Self {
            usage: Some(tool.usage).filter(|usage| *usage != Usage::default()),
            deleted_at: Some(deleted_at),
            ..Self::from(tool)
        }
    }

    /// Returns `bundle:name@version`, or `bundle:name` of an unreadable file, which has no version.
    pub fn qualified(&self) -> String {
        let Self { bundle, name, version, .. } = self;
        if version.is_empty() { format!("{bundle}:{name}") } else { format!("{bundle}:{name}@{version}") }
    }
}

/// A tool without the fields that depend on the registry and the caller: readiness, usage, warnings and whether it may
/// be called.
impl From<&Tool> for ToolSummary {
    fn from(tool: &Tool) -> Self {
        let spec = &tool.spec;
        Self {
            id: Some(tool.id.0),
            bundle: tool.bundle.to_string(),
            name: spec.name.to_string(),
            version: spec.version.to_string(),
            display_name: spec.title().to_owned(),
            description: excerpt(&spec.description, Self::MAX_TEXT),
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
            ready: false,
            error: None,
            source: tool.source,
            usage: None,
            modified_at: tool.modified_at,
            callable: false,
            warning_count: 0,
            deleted_at: None,
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
            error: Some(excerpt(&file.error, Self::MAX_TEXT)),
            source: Source::User,
            usage: None,
            modified_at: file.modified_at,
            callable: false,
            warning_count: 0,
            deleted_at: None,
        }
    }
}

/// A page of summaries of tools.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolSummaryList {
    pub tools: Vec<ToolSummary>,
    /// The number of tools that match the filter.
    pub total: usize,
    /// How many of them are ready to run.
    pub ready: usize,
    /// How many of them are not ready.
    pub failed: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A page of tools, in full or as summaries (`fields=summary`).
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ToolPage {
    /// All fields.
    All(ToolList),
    /// With `fields=summary`.
    Summary(ToolSummaryList),
}
