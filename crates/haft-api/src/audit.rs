//! Recorded changes and calls.

use haft_core::audit::AuditEntry;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A page of audit records.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    pub records: Vec<AuditEntry>,
    /// The number of records that match the filter.
    pub total: u64,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}
