//! Calls as rows of the table.

use std::sync::{Arc, LazyLock};

use haft_core::audit::AuditDecision;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::id::{CallId, ToolId, WebhookId};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use sqlx::AssertSqlSafe;

use crate::settings::LedgerSync;

/// The JSON size of a call with few arguments.
const TYPICAL_BYTES: usize = 768;

/// A call, ready to be stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallRow {
    pub(crate) id: CallId,
    pub(crate) tenant: TenantId,
    pub(crate) tool_id: ToolId,
    pub(crate) status: CallStatus,
    pub(crate) caller: Arc<str>,
    /// The id of the caller.
    pub(crate) principal: Arc<str>,
    /// Whether a promise rests on the row, so that it must be on disk before the answer.
    pub(crate) is_promise: bool,
    /// The interface that the call came through.
    pub(crate) surface: Arc<str>,
    /// The call that made it.
    pub(crate) parent_id: Option<CallId>,
    pub(crate) error_code: Option<ErrorCode>,
    pub(crate) chat_id: Option<String>,
    /// The policy rule that decided.
    pub(crate) rule: Option<Arc<str>>,
    /// How the call was authorised, if it was not simply allowed.
    pub(crate) decision: Option<AuditDecision>,
    /// The webhook of this call.
    pub(crate) webhook: Option<WebhookId>,
    /// The size of the result that is stored outside the record.
    pub(crate) result_bytes: i64,
    /// The claim that it ran under; 0 if it did not come from the queue.
    pub(crate) fence: i64,
    /// The call itself, as JSON.
    pub(crate) record: Arc<str>,
}

impl CallRow {
    pub(crate) fn new(call: &CallRecord) -> Result<Self, StoreError> {
        let action = || format!("record the call `{}`", call.id());
        let mut record = Vec::with_capacity(TYPICAL_BYTES);
        serde_json::to_writer(&mut record, call).map_err(|error| StoreError::unavailable(action(), error))?;
        let record = String::from_utf8(record).map_err(|error| StoreError::unavailable(action(), error))?;
        let invocation = &call.invocation;
        let principal = &invocation.principal;
        Ok(Self {
            id: call.id(),
            tenant: call.tenant().clone(),
            tool_id: invocation.tool_id,
            status: call.status,
            caller: without_nul(&principal.name),
            principal: without_nul(&principal.id()),
            // A call that had to wait knows the hash of its definition.
            is_promise: invocation.idempotency_key.is_some() || invocation.definition_hash.is_some(),
            surface: surface_column(&invocation.surface),
            parent_id: invocation.lineage.parent,
            error_code: call.error.as_ref().map(|error| error.code),
            chat_id: invocation.chat_id.clone().filter(|id| is_indexable(id)),
            rule: call
                .decision
                .as_ref()
                .and_then(|decision| decision.rule.as_deref())
                .filter(|rule| is_indexable(rule))
                .map(Arc::from),
            decision: Some(AuditDecision::of(call)).filter(|decision| *decision != AuditDecision::Allowed),
            webhook: invocation.webhook,
            result_bytes: call.stored_bytes.map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            fence: invocation.fence,
            record: record.into(),
        })
    }

    pub(crate) fn call(&self) -> Result<CallRecord, StoreError> {
        parse(&self.record)
    }

    /// Returns a row whose id and record are made from a number.
    #[cfg(test)]
    pub(crate) fn example(number: u8) -> Self {
        Self {
            id: CallId(uuid::Uuid::from_bytes([number; 16])),
            tenant: TenantId::default_tenant(),
            tool_id: ToolId(uuid::Uuid::nil()),
            status: CallStatus::Success,
            caller: Arc::default(),
            principal: Arc::default(),
            is_promise: false,
            surface: Arc::default(),
            parent_id: None,
            error_code: None,
            chat_id: None,
            rule: None,
            decision: None,
            webhook: None,
            result_bytes: 0,
            fence: 0,
            record: number.to_string().into(),
        }
    }
}

impl LedgerSync {
    /// Returns whether the answers to these calls wait for the disk.
    pub(crate) fn waits_for(self, rows: &[CallRow]) -> bool {
        match self {
            LedgerSync::Always => true,
            LedgerSync::Auto => rows.iter().any(|row| row.is_promise),
            LedgerSync::Os => false,
        }
    }
}

/// Returns a text for a column: PostgreSQL rejects NUL.
fn without_nul(text: &Arc<str>) -> Arc<str> {
    if text.contains('\0') { Arc::default() } else { Arc::clone(text) }
}

/// Returns the column of an interface. The interfaces of haft itself need no allocation.
fn surface_column(surface: &str) -> Arc<str> {
    static KNOWN: LazyLock<[Arc<str>; 4]> = LazyLock::new(|| ["rest", "mcp", "cli", "test"].map(Arc::from));
    match KNOWN.iter().find(|known| ***known == *surface) {
        Some(known) => Arc::clone(known),
        None if is_indexable(surface) => Arc::from(surface),
        None => Arc::default(),
    }
}

/// Returns whether a text fits in an index of both engines: PostgreSQL limits the length and rejects NUL. The record
/// itself has every value.
fn is_indexable(text: &str) -> bool {
    text.len() <= 1024 && !text.contains('\0')
}

/// Parses the JSON of a call.
pub(crate) fn parse(record: &str) -> Result<CallRecord, StoreError> {
    serde_json::from_str(record).map_err(|error| StoreError::unavailable("read a recorded call", error))
}

/// Selects the records that match a condition.
pub(crate) fn select(condition: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("SELECT record FROM calls {condition}"))
}
