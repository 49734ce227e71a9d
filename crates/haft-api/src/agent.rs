//! Agents, their revisions and their tools.

use std::borrow::Cow;

use haft_core::Timestamp;
use haft_core::agent::{Agent, AgentDefinition, AgentRevision};
use haft_core::problem::Problem;
use haft_core::tool::{Status, ToolType};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::resource::BrokenFile;

/// An agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Agent)]
pub struct AgentView {
    pub id: Uuid,
    #[serde(flatten)]
    pub definition: AgentDefinition,
    /// The number of the newest revision.
    #[schema(example = 1)]
    pub revision: u32,
    /// The revision that answers in production mode.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_revision: Option<u32>,
    pub status: Status,
    pub enabled: bool,
    /// Whether the definition is valid and every rule of its tools selects a tool that can run.
    pub ready: bool,
    /// Why it is not ready.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<String>,
    /// The file that defines it, relative to the home folder.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "agents/assistant.yaml")]
    pub path: Option<String>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub created_by: Option<String>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub modified_by: Option<String>,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_at: Option<Timestamp>,
    /// When it was deleted; for 48 hours it can be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Timestamp>,
    /// Warnings about the new definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

impl AgentView {
    /// Creates the view of an agent; `error` is the reason why it is not ready.
    pub fn new(agent: &Agent, error: Option<String>) -> Self {
        Self {
            id: agent.id.0,
            definition: AgentDefinition::clone(&agent.definition),
            revision: agent.revision,
            published_revision: agent.published.as_ref().map(|(number, _)| *number),
            status: agent.status,
            enabled: agent.enabled,
            ready: error.is_none(),
            error,
            path: agent.path.clone(),
            created_by: agent.created_by.as_deref().map(str::to_owned),
            modified_by: agent.modified_by.as_deref().map(str::to_owned),
            created_at: agent.created_at,
            modified_at: agent.modified_at,
            published_at: agent.published_at,
            deleted_at: agent.deleted_at,
            warnings: Vec::new(),
        }
    }
}

/// A page of agents.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentView>,
    /// The number of agents that match the filter.
    pub total: u64,
    /// Files with errors, including partially valid ones; only on the first page, regardless of the filter.
    pub broken_files: Vec<BrokenFile>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A revision of an agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentRevision)]
pub struct AgentRevisionView {
    /// Its number, from 1.
    pub number: u32,
    /// The hash of the definition.
    pub hash: String,
    /// Whether it answers in production mode.
    pub published: bool,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub created_by: Option<String>,
    pub created_at: Timestamp,
    /// The definition; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<AgentDefinition>,
}

impl AgentRevisionView {
    /// Creates the view of a revision without its definition.
    pub fn new(revision: &AgentRevision, published: Option<u32>) -> Self {
        Self {
            number: revision.number,
            hash: revision.hash.clone(),
            published: published == Some(revision.number),
            created_by: revision.created_by.as_deref().map(str::to_owned),
            created_at: revision.created_at,
            definition: None,
        }
    }

    /// Adds the definition.
    #[must_use]
    pub fn with_definition(mut self, definition: &AgentDefinition) -> Self {
        self.definition = Some(definition.clone());
        self
    }
}

/// A page of revisions of an agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentRevisionList {
    pub total: u64,
    pub revisions: Vec<AgentRevisionView>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A tool of an agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentTool)]
pub struct AgentToolView {
    pub id: Uuid,
    /// `bundle:name@version`.
    #[schema(example = "builtin:web_search@1.0.0")]
    pub qualified: String,
    /// The name that the model uses.
    #[schema(example = "web_search")]
    pub name: String,
    pub description: String,
    pub tool_type: ToolType,
    /// The kind of implementation.
    #[schema(example = "http")]
    pub implementation_type: Cow<'static, str>,
    /// Whether the tool's own settings require approval.
    pub requires_approval: bool,
    /// The renderer of its results.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub renderer: Option<String>,
    /// The estimated number of tokens of its definition.
    pub tokens: usize,
}

/// The tools of an agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentTools {
    pub tools: Vec<AgentToolView>,
    /// The estimated number of tokens of their definitions.
    pub tokens: usize,
    /// The rules that match no tool.
    pub missing: Vec<String>,
}

/// The result of a check.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = AgentCheck)]
pub struct AgentCheckView {
    pub valid: bool,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
    /// The tools that it could call now.
    pub tools: Vec<AgentToolView>,
    /// The estimated number of tokens of their definitions.
    pub tokens: usize,
    /// The definition as it would be stored; missing if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<AgentDefinition>,
}
