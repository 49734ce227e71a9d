//! Audit records: who changed what, and with which result. Calls have records of their own.

use serde::Serialize;
use uuid::Uuid;

use crate::Timestamp;
use crate::id::TokenId;
use crate::name::TenantId;

/// One attempted change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditRecord {
    /// The id; records sort by it.
    pub id: Uuid,
    /// The tenant whose data was to change.
    #[serde(skip)]
    pub tenant: TenantId,
    /// The time of the attempt.
    pub at: Timestamp,
    /// The name of the token.
    #[cfg_attr(feature = "openapi", schema(example = "local"))]
    pub actor: String,
    /// The id of the token; `None` for the token of the home folder and of the environment.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<uuid::Uuid>))]
    pub actor_id: Option<TokenId>,
    /// The action, such as `tool.update`.
    #[cfg_attr(feature = "openapi", schema(example = "tool.update"))]
    pub action: String,
    /// The object of the action.
    #[cfg_attr(feature = "openapi", schema(example = "user-created:greet@1.0.0"))]
    pub target: String,
    /// `success`, or the error code.
    #[cfg_attr(feature = "openapi", schema(example = "success"))]
    pub outcome: String,
    /// The id of the request.
    pub request_id: String,
}

/// A query for audit records; results are sorted newest first.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// Only records of this action.
    pub action: Option<String>,
    /// Only records whose target contains this text.
    pub target: Option<String>,
    /// Only records of the token with this name or id.
    pub actor: Option<String>,
    /// Only records from this time on.
    pub since: Option<Timestamp>,
    /// Only records before this one, the last of the previous page.
    pub before: Option<Uuid>,
    /// How many records to skip.
    pub skip: u32,
    /// The maximum number of records.
    pub limit: u32,
}

/// A page of audit records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The records, newest first.
    pub records: Vec<AuditRecord>,
    /// The total number of records that match the query.
    pub total: u64,
}
