//! The store of call records.

use std::sync::Arc;

use crate::BoxFuture;
use crate::Timestamp;
use crate::call::{CallRecord, CallStatus};
use crate::catalog::StoreError;
use crate::id::{CallId, ToolId};
use crate::name::TenantId;
use crate::outcome::ErrorCode;

/// A query for calls; results are sorted newest first.
#[derive(Debug, Clone)]
pub struct CallQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// Only calls of this tool.
    pub tool_id: Option<ToolId>,
    /// Only calls with this status.
    pub status: Option<CallStatus>,
    /// Only calls of the token with this name.
    pub caller: Option<String>,
    /// Only calls that failed with this code.
    pub error_code: Option<ErrorCode>,
    /// Only calls of this chat.
    pub chat_id: Option<String>,
    /// Only calls from this time on.
    pub since: Option<Timestamp>,
    /// Only calls before this time.
    pub until: Option<Timestamp>,
    /// Only calls whose tool, arguments, value, error message or process output contain this text, in any case.
    pub text: Option<String>,
    /// Only calls older than this one.
    pub before: Option<CallId>,
    /// How many calls to skip.
    pub skip: u32,
    /// The maximum number of calls.
    pub limit: u32,
}

/// A page of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPage {
    /// The calls, newest first.
    pub calls: Vec<CallRecord>,
    /// The total number of calls that match.
    pub total: u64,
}

/// The result of reserving an idempotency key.
#[derive(Debug, Clone, PartialEq)]
pub enum Reservation {
    /// The key was free, and the record is stored.
    Taken,
    /// The key belongs to this call.
    Existing(Box<CallRecord>),
}

/// Stores call records. A record is durable when the write returns.
pub trait Ledger: Send + Sync {
    /// Returns whether the last write failed. Called before every tool call, so it must not block.
    fn is_failing(&self) -> bool {
        false
    }
    /// Checks whether records can be stored again.
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Stores a call or its new state.
    fn record(&self, call: Arc<CallRecord>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Stores a call unless its idempotency key is in use.
    fn reserve(&self, call: CallRecord) -> BoxFuture<'_, Result<Reservation, StoreError>>;
    /// Returns one call.
    fn call<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: CallId,
    ) -> BoxFuture<'a, Result<Option<CallRecord>, StoreError>>;
    /// Lists calls, newest first.
    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<CallPage, StoreError>>;
}
