//! The body of errors.

use haft_core::id::CallId;
use haft_core::outcome::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The body of every error.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    pub status: ErrorStatus,
    /// `false`; for calls only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The error.
    pub error: ErrorDetail,
    /// The id of the rejected call; `null` if it was rejected before it was recorded. For calls only.
    #[serde(default, deserialize_with = "crate::read::some", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub call_id: Option<Option<CallId>>,
    /// The approval that the call waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub approval_id: Option<String>,
    /// The path of that approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub approval_url: Option<String>,
    /// The id of the request, as in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The error.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// A stable code.
    pub code: ErrorCode,
    /// What failed and how to fix it.
    #[schema(example = "tool `greet` not found")]
    pub message: String,
    /// Whether a retry may succeed; for calls only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Machine-readable details.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub details: Option<Value>,
    /// The message for the model; for calls only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_text: Option<String>,
}

/// The status of every error.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorStatus {
    /// The request failed.
    Error,
    /// The call is stored and waits for a person's decision.
    AwaitingApproval,
}
