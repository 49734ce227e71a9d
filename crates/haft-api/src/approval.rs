//! Approval requests and remembered approvals.

use haft_core::Timestamp;
use haft_core::approval::{Approval, ApprovalCause, ApprovalGrant, ApprovalStatus, Remember};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A call that needs approval.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Approval)]
pub struct ApprovalView {
    pub id: Uuid,
    pub call_id: Uuid,
    pub tool_id: Uuid,
    /// `bundle:name@version`.
    #[schema(example = "user-created:deploy@1.0.0")]
    pub tool: String,
    /// The revision that runs if the call is approved.
    pub revision: u32,
    /// The arguments, as requested or as the approver changed them.
    #[schema(value_type = Object, example = json!({"environment": "staging"}))]
    pub args: Value,
    /// The hash of the arguments as requested.
    pub args_digest: String,
    /// The name of the requesting token.
    #[schema(example = "agent")]
    pub requested_by: String,
    /// The surface of the call: `rest`, `mcp`, …
    #[schema(example = "rest")]
    pub surface: String,
    /// Why the call needs approval.
    pub cause: ApprovalCause,
    pub status: ApprovalStatus,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the approver changed the arguments.
    pub args_edited: bool,
    /// The arguments as requested, if the approver changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub requested_args: Option<Value>,
    /// The scope that the approver chose for remembering the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Remember>,
    /// Whether you may decide.
    pub may_decide: bool,
    /// What will run if the call is approved: the command, the request or the action on a file, with secrets masked.
    /// At most 8 KiB; missing if it cannot be shown or if the approval is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "POST https://deploy.example.com/staging")]
    pub preview: Option<String>,
    /// Whether long arguments are omitted in this list; request the approval by its id to get them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortened: bool,
}

impl ApprovalView {
    /// Creates the view of an approval, without a preview of the call.
    pub fn new(approval: Approval, may_decide: bool) -> Self {
        Self {
            id: approval.id.0,
            call_id: approval.call_id.0,
            tool_id: approval.tool_id.0,
            tool: approval.tool.to_string(),
            revision: approval.revision,
            args: approval.args,
            args_digest: approval.args_digest,
            requested_by: approval.requested_by.name.to_string(),
            surface: approval.surface,
            cause: approval.cause,
            status: approval.status,
            created_at: approval.created_at,
            expires_at: approval.expires_at,
            decided_at: approval.decided_at,
            decided_by: approval.decided_by,
            reason: approval.reason,
            args_edited: approval.args_edited,
            requested_args: approval.requested_args,
            remembered: approval.remembered,
            may_decide,
            preview: None,
            shortened: false,
        }
    }
}

/// A page of approvals.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalList {
    pub approvals: Vec<ApprovalView>,
    pub total: u64,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The body of an approval.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct ApproveBody {
    /// Arguments to run with instead of those requested.
    #[schema(value_type = Option<Object>)]
    pub args: Option<serde_json::Map<String, Value>>,
    /// Whether and for which later calls to remember the decision.
    #[serde(deserialize_with = "crate::read::optional_object")]
    pub remember: Option<Remember>,
}

/// The body of a denial.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct DenyBody {
    /// The reason, shown to the requester: at most 1,000 characters.
    #[schema(max_length = 1000, example = "not before the release")]
    pub reason: Option<String>,
}

/// An approval that is remembered for later calls of the same definition of a tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ApprovalGrant)]
pub struct GrantView {
    pub id: Uuid,
    pub tool_id: Uuid,
    /// `bundle:name@version`; missing if the tool is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "user-created:deploy@1.0.0")]
    pub tool: Option<String>,
    /// The cause that it covers: `requires_confirmation`, `elevated_policy` or `rule:NAME`.
    #[schema(example = "requires_confirmation")]
    pub cause: String,
    /// The later calls that it covers.
    pub remember: Remember,
    /// The name of the token that approved.
    #[schema(example = "ada")]
    pub granted_by: String,
    pub created_at: Timestamp,
}

impl GrantView {
    /// Creates the view of a remembered approval; `tool` is its qualified name, if it still exists.
    pub fn new(grant: ApprovalGrant, tool: Option<String>) -> Self {
        Self {
            id: grant.id.0,
            tool_id: grant.tool_id.0,
            tool,
            cause: grant.cause,
            remember: grant.remember,
            granted_by: grant.granted_by,
            created_at: grant.created_at,
        }
    }
}

/// A page of remembered approvals.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GrantList {
    pub grants: Vec<GrantView>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}
