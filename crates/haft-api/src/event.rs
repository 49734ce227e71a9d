//! The data of the live events of a tenant. haft-platform writes them as JSON; these types describe it.

use haft_core::Timestamp;
use haft_core::approval::ApprovalStatus;
use haft_core::call::CallStatus;
use haft_core::mcp::Phase;
use haft_core::outcome::ErrorCode;
use haft_core::tool::Status;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A changed tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolEvent {
    pub change: ToolChange,
    pub id: Uuid,
    #[schema(example = "weather")]
    pub name: String,
    #[schema(example = "user-created")]
    pub bundle: String,
    #[schema(example = "1.0.0")]
    pub version: String,
    pub status: Status,
    pub enabled: bool,
}

/// What happened to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChange {
    Created,
    Updated,
    Deleted,
    Published,
    Deprecated,
    Enabled,
    Disabled,
}

/// A changed bundle.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BundleEvent {
    pub change: BundleChange,
    pub id: Uuid,
    #[schema(example = "user-created")]
    pub slug: String,
    pub enabled: bool,
}

/// What happened to a bundle.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BundleChange {
    Created,
    Updated,
    Deleted,
    Enabled,
    Disabled,
}

/// The new state of a call.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CallEvent {
    pub id: Uuid,
    /// `bundle:name@version`.
    #[schema(example = "user-created:weather@1.0.0")]
    pub tool: String,
    pub tool_id: Uuid,
    pub status: CallStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The name of the token that called.
    #[schema(example = "agent")]
    pub caller: String,
    #[schema(example = "rest")]
    pub surface: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// The new state of an approval.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalEvent {
    pub change: ApprovalChange,
    pub id: Uuid,
    pub call_id: Uuid,
    /// `bundle:name@version`.
    #[schema(example = "user-created:deploy@1.0.0")]
    pub tool: String,
    pub tool_id: Uuid,
    pub status: ApprovalStatus,
    #[schema(example = "agent")]
    pub requested_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

/// What happened to an approval.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalChange {
    Requested,
    Decided,
    Expired,
    Cancelled,
}

/// The new state of an MCP server.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ServerEvent {
    #[schema(example = "github")]
    pub id: String,
    pub phase: Phase,
    /// How many of its tools were imported.
    pub tools: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
