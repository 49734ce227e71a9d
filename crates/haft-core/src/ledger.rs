//! The store of call records.

use std::collections::HashMap;
use std::sync::Arc;

use crate::BoxFuture;
use crate::Timestamp;
use crate::audit::AuditDecision;
use crate::call::{CallRecord, CallStatus};
use crate::catalog::StoreError;
use crate::executor::CallEvent;
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
    /// Only calls with one of these statuses; empty for every status.
    pub statuses: Vec<CallStatus>,
    /// Only calls of the token with this name.
    pub caller: Option<String>,
    /// Only calls of the token with this name or id.
    pub actor: Option<String>,
    /// Only calls of one of these principals.
    pub principals: Option<Vec<Arc<str>>>,
    /// Only calls that came through this interface.
    pub surface: Option<String>,
    /// Only calls that this call made.
    pub parent_id: Option<CallId>,
    /// Only calls that failed with this code.
    pub error_code: Option<ErrorCode>,
    /// Only calls of this chat.
    pub chat_id: Option<String>,
    /// Only calls about which a policy rule with this name decided.
    pub rule: Option<String>,
    /// Only calls that were authorised in this way.
    pub decision: Option<AuditDecision>,
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

impl CallQuery {
    /// Creates the query for the newest 50 calls of a tenant.
    pub fn of_tenant(tenant: TenantId) -> Self {
        Self {
            tenant,
            tool_id: None,
            statuses: Vec::new(),
            caller: None,
            actor: None,
            principals: None,
            surface: None,
            parent_id: None,
            error_code: None,
            chat_id: None,
            rule: None,
            decision: None,
            since: None,
            until: None,
            text: None,
            before: None,
            skip: 0,
            limit: crate::page::DEFAULT_SIZE,
        }
    }
}

/// A page of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPage {
    /// The calls, newest first.
    pub calls: Vec<CallRecord>,
    /// The total number of calls that match. With a text, the number among the calls that were searched for this page.
    pub total: u64,
    /// With a text: the oldest call that was searched, if older ones were not. The search continues before it.
    pub searched_to: Option<CallId>,
}

/// The most calls that are searched for a text at once.
pub const MAX_SEARCHED_CALLS: u32 = 20_000;

/// The result of reserving an idempotency key.
#[derive(Debug, Clone, PartialEq)]
pub enum Reservation {
    /// The key was free, and the record is stored.
    Taken,
    /// The key belongs to this call.
    Existing(Box<CallRecord>),
}

/// Stores call records. A record survives a crash of the process when the write returns; it also survives one of the
/// machine where a promise rests on it: an idempotency key, an approval, a queued call.
pub trait Ledger: Send + Sync {
    /// Returns whether the last write failed. Called before every tool call, so it must not block.
    fn is_failing(&self) -> bool {
        false
    }
    /// Checks whether records can be stored again.
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Stores a call or its new state. [`StoreError::ClaimLost`] if it comes from the queue and another node has claimed
    /// it since: nothing is stored.
    fn record(&self, call: Arc<CallRecord>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Stores a call unless its idempotency key is in use.
    fn reserve(&self, call: CallRecord) -> BoxFuture<'_, Result<Reservation, StoreError>>;
    /// Stores a call that did not run, and frees its idempotency key for the next one.
    fn release(&self, call: CallRecord) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Returns one call.
    fn call<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: CallId,
    ) -> BoxFuture<'a, Result<Option<CallRecord>, StoreError>>;
    /// Lists calls, newest first.
    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<CallPage, StoreError>>;
}

/// The result of putting a call into the queue.
#[derive(Debug, Clone, PartialEq)]
pub enum Enqueued {
    /// It is stored and will run.
    Queued,
    /// Its idempotency key belongs to this call.
    Existing(Box<CallRecord>),
    /// The tenant already has this many calls in the queue.
    Full(u64),
}

/// What cancelling a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// It had not started and never will.
    Cancelled,
    /// The node that runs it is notified.
    Requested,
    /// It has ended.
    Ended(CallStatus),
}

/// How many calls a node takes from the queue.
#[derive(Debug, Clone)]
pub struct ClaimLimits {
    /// At most this many calls.
    pub max: usize,
    /// At most this many calls of one tenant may run on this node.
    pub per_tenant: usize,
    /// The number of queued calls of each tenant that run on this node.
    pub running: HashMap<TenantId, usize>,
}

impl ClaimLimits {
    /// Returns how many more calls of a tenant may run.
    pub fn room_for(&self, tenant: &str) -> usize {
        let running =
            self.running.iter().find(|(name, _)| name.as_str() == tenant).map_or(0, |(_, count)| *count);
        self.per_tenant.saturating_sub(running)
    }
}

/// An event of a call, numbered from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberedEvent {
    /// The number.
    pub number: u64,
    /// The event.
    pub event: CallEvent,
}

/// The durable queue of calls. A call in it belongs to no node; a claimed one to the node that runs it.
pub trait CallQueue: Send + Sync {
    /// Puts a call into the queue, unless its tenant has `limit` calls there. It is durable when this returns.
    fn enqueue(&self, call: CallRecord, limit: u64) -> BoxFuture<'_, Result<Enqueued, StoreError>>;
    /// Takes calls, in turn from each tenant that has some, and marks them as running on this node. Each has the fence of
    /// its claim.
    fn claim(&self, limits: ClaimLimits) -> BoxFuture<'_, Result<Vec<CallRecord>, StoreError>>;
    /// Puts a claimed call that did not start back, to run not before a time. [`StoreError::ClaimLost`] if another node
    /// has claimed it since.
    fn requeue(&self, call: CallRecord, not_before: Timestamp) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Resolves when there may be calls to claim; at the latest after a second.
    fn ready(&self) -> BoxFuture<'_, ()>;
    /// Cancels a call that waits, or asks the node that runs it to cancel it.
    fn cancel<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: CallId,
    ) -> BoxFuture<'a, Result<Option<Cancellation>, StoreError>>;
    /// Returns the calls of this node whose cancellation was requested.
    fn cancellations(&self) -> BoxFuture<'_, Result<Vec<CallId>, StoreError>>;
    /// Stores events of a running call for readers on other nodes.
    fn append_events(&self, id: CallId, events: Vec<NumberedEvent>) -> BoxFuture<'_, Result<(), StoreError>>;
    /// Returns the stored events of a call after a number.
    fn events(&self, id: CallId, after: u64) -> BoxFuture<'_, Result<Vec<NumberedEvent>, StoreError>>;
}
