//! What keeps calls.

use std::sync::Arc;

use crate::BoxFuture;
use crate::call::{CallRecord, CallStatus};
use crate::catalog::StoreError;
use crate::id::{CallId, ToolId};
use crate::name::TenantId;

/// Which calls to list, newest first.
#[derive(Debug, Clone)]
pub struct CallQuery {
    /// Whose calls.
    pub tenant: TenantId,
    /// Of which tool.
    pub tool_id: Option<ToolId>,
    /// In which status.
    pub status: Option<CallStatus>,
    /// Only calls older than this one.
    pub before: Option<CallId>,
    /// How many to pass over.
    pub skip: u32,
    /// How many at most.
    pub limit: u32,
}

/// A page of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPage {
    /// The calls, newest first.
    pub calls: Vec<CallRecord>,
    /// How many there are in all.
    pub total: u64,
}

/// What became of a reservation.
#[derive(Debug, Clone, PartialEq)]
pub enum Reservation {
    /// The key is new; the record is stored.
    Taken,
    /// The key was used by this call.
    Existing(Box<CallRecord>),
}

/// Keeps calls. A record is durable when the write returns.
pub trait Ledger: Send + Sync {
    /// Tells whether the last record could not be stored. Asked before every call, so it never waits.
    fn is_failing(&self) -> bool {
        false
    }
    /// Tries whether records can be stored again; returns why not.
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Stores a call, or its newer state.
    fn record(&self, call: Arc<CallRecord>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Stores a call unless its idempotency key is taken.
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
