//! Agents: a model with instructions and tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::callable::{CallableKind, CallableResource};
use crate::id::AgentId;
use crate::live::{AgentEvent, ObjectEvent, ResourceAction};
use crate::name::AgentSlug;
use crate::principal::{AllowList, AllowListError};
use crate::resource::{Resource, ResourceKind, ResourceRevision, ResourceSpec};
use crate::run::RunUsage;

/// The longest instructions, in bytes.
pub const MAX_INSTRUCTIONS: usize = 256 * 1024;
/// The largest number of rules for tools of one agent.
pub const MAX_TOOL_RULES: usize = 256;
/// The largest `max_iterations`.
pub const MAX_ITERATIONS: u32 = 1000;
/// The largest `max_parallel_tools`.
pub const MAX_PARALLEL_TOOLS: u32 = 64;
/// The longest display name, in characters.
pub const MAX_NAME: usize = 200;
/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = 4000;
/// The largest number of variables.
pub const MAX_VARIABLES: usize = 100;

/// Returns the input schema of a tool that runs an agent and declares none.
pub fn call_input_schema() -> Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "input": {"type": "string", "description": "What the agent is asked"},
            "messages": {
                "type": "array",
                "description": "A conversation instead of `input`: objects with `role` and `content`",
                "items": {"type": "object"},
            },
            "context": {"description": "What the agent should know"},
        },
    })
}

/// The definition of an agent, as its author writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentDefinition {
    /// The name by which clients and other agents call it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "assistant", max_length = 64))]
    pub slug: AgentSlug,
    /// The name that people see.
    #[cfg_attr(feature = "openapi", schema(example = "Assistant", max_length = 200))]
    pub name: String,
    /// Its purpose.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required, max_length = 4000))]
    pub description: String,
    /// The model.
    pub model: AgentModel,
    /// The model that answers if the first one fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<AgentModel>,
    /// The instructions for the model: a template with `{{variable}}`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub instructions: String,
    /// Values of the variables of the instructions; a run may set others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, Value>))]
    pub variables: BTreeMap<String, Value>,
    /// The tools that it may call: names, `bundle:name`, `bundle:*`, patterns with `*`, `tag:name`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub tools: Vec<String>,
    /// Tools that it may not call although a rule of `tools` matches them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tools: Vec<String>,
    /// Whether calls of one answer run in parallel.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub tool_execution: ToolExecution,
    /// How many answers of the model one run may have.
    #[serde(default = "default_iterations")]
    #[cfg_attr(feature = "openapi", schema(required, minimum = 1, maximum = 1000))]
    pub max_iterations: u32,
    /// How many calls run at once with `parallel_safe`.
    #[serde(default = "default_parallel")]
    #[cfg_attr(feature = "openapi", schema(required, minimum = 1, maximum = 64))]
    pub max_parallel_tools: u32,
    /// The timeout of one call, in milliseconds; default: that of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 600_000))]
    pub tool_timeout_ms: Option<u64>,
    /// The budget of one run.
    #[serde(default, skip_serializing_if = "AgentBudget::is_unlimited")]
    pub budget: AgentBudget,
    /// The JSON Schema of the final answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub output_schema: Option<Value>,
    /// Whether every tool must be published. In production mode it always must.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub require_published: bool,
    /// Whether and how calls are repeated whose error is retryable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervision: Option<Supervision>,
    /// The size of the context window of the model, in tokens; default: 128,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1000, maximum = 100_000_000))]
    pub context_window: Option<u64>,
}

const fn default_iterations() -> u32 {
    25
}

const fn default_parallel() -> u32 {
    4
}

impl AgentDefinition {
    /// Creates a definition with defaults.
    pub fn new(slug: AgentSlug, model: AgentModel) -> Self {
        Self {
            name: slug.to_string(),
            slug,
            description: String::new(),
            model,
            fallback: None,
            instructions: String::new(),
            variables: BTreeMap::new(),
            tools: Vec::new(),
            exclude_tools: Vec::new(),
            tool_execution: ToolExecution::default(),
            max_iterations: default_iterations(),
            max_parallel_tools: default_parallel(),
            tool_timeout_ms: None,
            budget: AgentBudget::default(),
            output_schema: None,
            require_published: false,
            supervision: None,
            context_window: None,
        }
    }

    /// Returns the tools that it may call, as an allow-list, and those that are excluded from it.
    pub fn tool_lists(&self) -> Result<(AllowList, Option<AllowList>), AllowListError> {
        let excluded = match self.exclude_tools.as_slice() {
            [] => None,
            rules => Some(AllowList::new(rules)?),
        };
        Ok((AllowList::new(&self.tools)?, excluded))
    }
}

/// The model of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentModel {
    /// The name, such as `claude-sonnet-5` or `ollama/llama3.2`.
    #[cfg_attr(feature = "openapi", schema(example = "claude-sonnet-5", max_length = 256))]
    pub name: String,
    /// The provider; default: the one that follows from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "anthropic"))]
    pub provider: Option<String>,
    /// The address of the provider; default: its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The name of the credential that has the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The sampling temperature; default: that of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0, maximum = 2.0))]
    pub temperature: Option<f64>,
    /// The maximum number of tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10_000_000))]
    pub max_tokens: Option<u32>,
    /// How much it reasons before it answers: `low`, `medium` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Whether tools are described in the instructions, for models without tool calling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text_tools: bool,
    /// The script of a scripted model, as YAML text; default: the built-in demo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

impl AgentModel {
    /// Creates a model from its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: None,
            base_url: None,
            credential: None,
            temperature: None,
            max_tokens: None,
            reasoning: None,
            text_tools: false,
            script: None,
        }
    }
}

/// How the calls of one answer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolExecution {
    /// One after the other.
    #[default]
    Sequential,
    /// Pure tools at the same time; every other call waits for those before it, and those after it wait for it.
    ParallelSafe,
}

/// The budget of one run, including child runs. A missing limit is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AgentBudget {
    /// The number of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000))]
    pub calls: Option<u32>,
    /// The number of tokens, of requests and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000_000_000_u64))]
    pub tokens: Option<u64>,
    /// The time, in milliseconds. Time in which the run waits for a person does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 604_800_000))]
    pub time_ms: Option<u64>,
    /// The cost, in the currency of the configured prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0.0))]
    pub cost: Option<f64>,
}

impl AgentBudget {
    /// Returns whether it limits nothing.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what is left of it after what was used.
    #[must_use]
    pub fn after(&self, usage: &RunUsage) -> Self {
        Self {
            calls: self.calls.map(|limit| limit.saturating_sub(usage.calls)),
            tokens: self.tokens.map(|limit| limit.saturating_sub(usage.tokens())),
            time_ms: self.time_ms.map(|limit| limit.saturating_sub(usage.active_ms)),
            cost: self.cost.map(|limit| (limit - usage.cost.unwrap_or_default()).max(0.0)),
        }
    }

    /// Returns the smaller limit of each kind.
    #[must_use]
    pub fn smaller(self, other: Self) -> Self {
        fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if b < a { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        Self {
            calls: least(self.calls, other.calls),
            tokens: least(self.tokens, other.tokens),
            time_ms: least(self.time_ms, other.time_ms),
            cost: least(self.cost, other.cost),
        }
    }
}

/// How calls are repeated whose error is retryable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Supervision {
    /// How often, at most 10.
    #[cfg_attr(feature = "openapi", schema(maximum = 10))]
    pub attempts: u32,
    /// The pause before the first repetition, in milliseconds; it doubles each time.
    #[serde(default = "default_backoff")]
    #[cfg_attr(feature = "openapi", schema(required, maximum = 600_000))]
    pub backoff_ms: u64,
}

const fn default_backoff() -> u64 {
    500
}

impl ResourceSpec for AgentDefinition {
    type Id = AgentId;
    const KIND: ResourceKind = ResourceKind::Agent;

    fn slug(&self) -> &str {
        self.slug.as_str()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn set_slug(&mut self, other: &Self) {
        self.slug.clone_from(&other.slug);
    }

    fn event(agent: &Agent, change: ResourceAction) -> ObjectEvent {
        ObjectEvent::Agent(AgentEvent {
            change,
            id: agent.id,
            agent: agent.definition.slug.to_string(),
            status: agent.status,
            enabled: agent.enabled,
        })
    }
}

/// A stored agent.
pub type Agent = Resource<AgentDefinition>;

impl Agent {
    /// Returns one of its revisions as what is called when a run starts.
    pub fn callable(&self, revision: u32) -> CallableResource {
        let slug = self.definition.slug.as_str().into();
        CallableResource { kind: CallableKind::Agent, id: self.id.0, slug, revision }
    }
}

/// One revision of an agent.
pub type AgentRevision = ResourceRevision<AgentDefinition>;
