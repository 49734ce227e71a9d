//! The users of a tool, an agent, a pipeline or a code artifact.

use std::borrow::Cow;

use haft_core::Timestamp;
use haft_core::policy::Effect;
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The users of a tool. Each list has at most 100 items.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolUsage {
    /// The tool, as `bundle:name@version`.
    #[schema(example = "user-created:greet@1.0.0")]
    pub tool: String,
    /// The tokens whose allow-list names or matches the tool.
    pub tokens: Vec<UsingToken>,
    /// The number of tokens that may call the tool because they have no allow-list.
    pub unrestricted_tokens: usize,
    /// The policy rules that name or match the tool.
    pub policy_rules: Vec<UsingRule>,
    /// The tools that refer to it, and those whose steps call one of these.
    pub tools: Vec<UsingTool>,
    /// The agents that may call it, or a tool that refers to it.
    pub agents: Vec<UsingAgent>,
    /// The MCP endpoints that offer it.
    pub mcp_views: Vec<String>,
    /// The recent callers, most calls first.
    pub callers: Vec<RecentCaller>,
    /// The maximum number of recent calls that `callers` counts.
    #[schema(example = 5000)]
    pub counted_calls: u32,
}

/// The users of an agent, a retrieval pipeline or a code artifact. Each list has at most 100 items.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ResourceUsage {
    /// The resource, as `agents:assistant`.
    #[schema(example = "agents:assistant")]
    pub resource: String,
    /// The tools that refer to it, and those whose steps call one of these.
    pub tools: Vec<UsingTool>,
    /// The agents that list it, or may call a tool that refers to it.
    pub agents: Vec<UsingAgent>,
    /// The tokens whose allow-list names or matches it.
    pub tokens: Vec<UsingToken>,
    /// The number of tokens that may call it because they have no allow-list.
    pub unrestricted_tokens: usize,
    /// The policy rules that name or match it.
    pub policy_rules: Vec<UsingRule>,
    /// The recent callers, most calls first. Only tools call a code artifact.
    pub callers: Vec<RecentCaller>,
    /// The maximum number of recent calls that `callers` counts.
    #[schema(example = 5000)]
    pub counted_calls: u32,
}

/// A token whose allow-list names or matches the tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsingToken {
    pub id: Uuid,
    #[schema(example = "ci")]
    pub name: String,
    pub role: Role,
    /// The rules of the allow-list that match.
    #[schema(example = json!(["greet"]))]
    pub rules: Vec<String>,
}

/// A policy rule that names or matches the tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsingRule {
    /// `platform`, or the id of the tenant.
    #[schema(example = "default")]
    pub scope: String,
    #[schema(example = "large-payments")]
    pub name: String,
    pub effect: Effect,
}

/// A tool that refers to the tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsingTool {
    pub id: Uuid,
    /// The tool, as `bundle:name@version`.
    #[schema(example = "user-created:old-greet@1.0.0")]
    pub tool: String,
    /// The field that refers to it.
    #[schema(example = "replaced_by")]
    pub field: Cow<'static, str>,
}

/// An agent that uses a tool or a resource.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsingAgent {
    pub id: Uuid,
    #[schema(example = "assistant")]
    pub agent: String,
    /// The rules of `tools` that match it, or a tool that refers to it.
    #[schema(example = json!(["ask-handbook"]))]
    pub rules: Vec<String>,
}

/// A recent caller.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RecentCaller {
    #[schema(example = "ci")]
    pub name: String,
    /// The id of the token, if it is stored.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub token_id: Option<Uuid>,
    /// The number of its recent calls.
    pub calls: u64,
    pub last_called_at: Timestamp,
}
