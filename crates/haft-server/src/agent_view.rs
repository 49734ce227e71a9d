//! Agents as the API shows them.

use haft_core::Timestamp;
use haft_core::agent::{Agent, AgentDefinition, AgentRevision};
use haft_core::problem::Problem;
use haft_core::tool::Status;
use haft_runtime::registry::Snapshot;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use haft_platform::Installation;
use haft_platform::agents::{self, Binding};

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
pub(crate) struct AgentView {
    id: Uuid,
    #[serde(flatten)]
    definition: AgentDefinition,
    /// The number of the newest revision.
    #[schema(example = 1)]
    revision: u32,
    /// The revision that answers in production mode.
    #[schema(required)]
    published_revision: Option<u32>,
    status: Status,
    enabled: bool,
    /// Whether its definition can be used and it has the tools that it lists.
    ready: bool,
    /// Why it is not ready.
    #[schema(required)]
    error: Option<String>,
    /// The file that defines it, relative to the home folder.
    #[schema(required, example = "agents/assistant.yaml")]
    path: Option<String>,
    #[schema(required)]
    created_by: Option<String>,
    #[schema(required)]
    modified_by: Option<String>,
    created_at: Timestamp,
    modified_at: Timestamp,
    #[schema(required)]
    published_at: Option<Timestamp>,
    /// What may be wrong with the definition that was just written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Problem>,
}

impl AgentView {
    /// Shows an agent.
    pub(crate) fn new(app: &Installation, agent: &Agent) -> Self {
        Self::in_snapshot(app, &app.registry().current(), agent)
    }

    /// Shows an agent with the tools of one moment, for lists.
    pub(crate) fn in_snapshot(app: &Installation, snapshot: &Snapshot, agent: &Agent) -> Self {
        let error = agents::fault(app, snapshot, agent);
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
            warnings: Vec::new(),
        }
    }

    /// Adds warnings.
    #[must_use]
    pub(crate) fn with_warnings(mut self, warnings: Vec<Problem>) -> Self {
        self.warnings = warnings;
        self
    }
}

/// A revision of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentRevision)]
pub(crate) struct AgentRevisionView {
    /// Its number, from 1.
    number: u32,
    /// The hash of the definition.
    hash: String,
    /// Whether it answers in production mode.
    published: bool,
    #[schema(required)]
    created_by: Option<String>,
    created_at: Timestamp,
    /// The definition; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<AgentDefinition>,
}

impl AgentRevisionView {
    /// Shows a revision of an agent without its definition.
    pub(crate) fn new(revision: &AgentRevision, published: Option<u32>) -> Self {
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
    pub(crate) fn with_definition(mut self, definition: &AgentDefinition) -> Self {
        self.definition = Some(definition.clone());
        self
    }
}

/// A tool of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentTool)]
pub(crate) struct AgentToolView {
    id: Uuid,
    /// `bundle:name@version`.
    #[schema(example = "builtin:web_search@1.0.0")]
    qualified: String,
    /// The name that the model uses.
    #[schema(example = "web_search")]
    name: String,
    description: String,
    tool_type: haft_core::tool::ToolType,
    /// The kind of implementation.
    #[schema(example = "http")]
    implementation_type: &'static str,
    /// Whether calls need a person's approval by the tool's own settings.
    requires_approval: bool,
    /// The renderer of its results.
    #[schema(required)]
    renderer: Option<String>,
    /// The estimated number of tokens of its definition.
    tokens: usize,
}

impl From<&Binding> for AgentToolView {
    fn from(binding: &Binding) -> Self {
        let tool = &binding.entry.tool;
        let spec = &tool.spec;
        Self {
            id: tool.id.0,
            qualified: binding.tool.qualified.clone(),
            name: binding.tool.definition.name.clone(),
            description: binding.tool.definition.description.clone(),
            tool_type: tool.tool_type(),
            implementation_type: spec.implementation.kind().as_str(),
            requires_approval: spec.requires_confirmation || spec.policy == haft_core::spec::Policy::Elevated,
            renderer: haft_core::render::select(&spec.renderers).map(|renderer| renderer.renderer.clone()),
            tokens: binding.tokens,
        }
    }
}
