//! The limits of calls: rates by tool, token, person, tenant and session, calls at the same time, and identical calls in a row.
//!
//! Without a shared store they count the calls of this node. With one, a rate is drawn in small batches and a call that
//! runs takes a slot, so that both hold for all nodes. A call without limits costs no lookup and no query.

mod breaker;
mod lease;
mod rates;
mod slots;
mod usage;

use std::sync::Arc;

use haft_core::id::{ActorId, TokenId};
use haft_core::limit::SharedLimits;
use haft_core::name::TenantId;

pub use self::usage::LimitUsage;

use self::breaker::IdenticalCalls;
use self::lease::LeasedRates;
use self::slots::TenantSlots;
use crate::rate::RateWindows;

pub(crate) use self::rates::{AppliedRate, LimitedCall, LimitedSubject, limits_unavailable};
pub(crate) use self::slots::Slot;

/// The limits that hold for all tenants, and what nodes share.
#[derive(Clone, Default)]
pub struct LimitSettings {
    /// How many calls of one session may start per minute; 0 is unlimited.
    pub session_calls_per_minute: u32,
    /// How many identical calls a session may make in a row within a minute; 0 is unlimited.
    pub identical_calls: u32,
    /// Counts calls for all nodes; `None` counts those of this node.
    pub shared: Option<Arc<dyn SharedLimits>>,
}

/// The calls that count against limits.
pub(crate) struct Limits {
    session_calls_per_minute: u32,
    identical: IdenticalCalls,
    tenants: RateWindows<TenantId>,
    tokens: RateWindows<TokenId>,
    members: RateWindows<(TenantId, ActorId)>,
    sessions: RateWindows<String>,
    tenant_slots: TenantSlots,
    shared: Option<LeasedRates>,
}

impl Limits {
    pub(crate) fn new(settings: LimitSettings) -> Self {
        Self {
            session_calls_per_minute: settings.session_calls_per_minute,
            identical: IdenticalCalls::new(settings.identical_calls),
            tenants: RateWindows::default(),
            tokens: RateWindows::default(),
            members: RateWindows::default(),
            sessions: RateWindows::default(),
            tenant_slots: TenantSlots::default(),
            shared: settings.shared.map(LeasedRates::new),
        }
    }

    /// Returns whether the limits hold for all nodes, so that counting a call may need the store.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    fn store(&self) -> Option<&Arc<dyn SharedLimits>> {
        self.shared.as_ref().map(LeasedRates::store)
    }
}
