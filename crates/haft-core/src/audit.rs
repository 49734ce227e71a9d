//! What was changed, by whom, and what came of it. Calls have records of their own.

use serde::Serialize;
use uuid::Uuid;

use crate::Timestamp;
use crate::id::TokenId;
use crate::name::TenantId;

/// One attempt to change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    /// Its identity, which also orders records.
    pub id: Uuid,
    /// Whose things it was about.
    #[serde(skip)]
    pub tenant: TenantId,
    /// When.
    pub at: Timestamp,
    /// The name of the token.
    pub actor: String,
    /// The token; none for the one of the home folder and the one of the environment.
    pub actor_id: Option<TokenId>,
    /// What was to be done, as in `tool.update`.
    pub action: String,
    /// What it was to be done to.
    pub target: String,
    /// `success`, or the code of the error.
    pub outcome: String,
    /// The request that asked for it.
    pub request_id: String,
}

/// Which records are wanted, newest first.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    /// Whose.
    pub tenant: TenantId,
    /// Only this action.
    pub action: Option<String>,
    /// Only where the target has this part.
    pub target: Option<String>,
    /// Only by the token of this name or id.
    pub actor: Option<String>,
    /// Only from this moment on.
    pub since: Option<Timestamp>,
    /// Only before this record, where a page ended.
    pub before: Option<Uuid>,
    /// How many to pass over.
    pub skip: u32,
    /// How many at most.
    pub limit: u32,
}

/// A part of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The records, newest first.
    pub records: Vec<AuditRecord>,
    /// How many fit the query in all.
    pub total: u64,
}
