//! Which limits apply to a call, and counting it against them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::callable::{CallableKind, CallableResource};
use haft_core::duration;
use haft_core::hash;
use haft_core::id::{ActorId, TokenId, ToolId};
use haft_core::invocation::Invocation;
use haft_core::limit::{LimitName, RateStatus};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::tenant::TenantLimits;

use super::lease::LeaseRejection;
use super::slots::Slot;
use super::{LeasedRates, Limits};
use crate::clock;
use crate::rate::{Rate, RateWindow, RateWindows};
use crate::registry::{CompiledTool, Entry};

/// How many sessions are counted on their own. The further ones of a caller count as one.
const MAX_SESSIONS: usize = 65_536;

/// A call that is about to be admitted.
pub(crate) struct LimitedCall<'a> {
    pub(crate) subject: LimitedSubject<'a>,
    pub(crate) invocation: &'a Invocation,
    pub(crate) tenant_limits: TenantLimits,
}

/// What a call that is about to be admitted calls.
#[derive(Clone, Copy)]
pub(crate) enum LimitedSubject<'a> {
    /// A tool, which may have limits of its own.
    Tool(&'a Arc<Entry>, &'a CompiledTool),
    /// An agent or a retrieval pipeline.
    Resource(&'a CallableResource),
}

impl LimitedSubject<'_> {
    /// Creates an error that names what is called.
    fn named_error(&self, build: impl Fn(&str) -> CallError) -> CallError {
        match self {
            Self::Tool(entry, _) => entry.named_error(build),
            Self::Resource(resource) => build(&resource.qualified()),
        }
    }

    /// Returns whether its calls count among those of its tenant that run at the same time. A call that starts a run ends
    /// at once; how many runs there may be has its own limit.
    fn takes_time(&self) -> bool {
        !matches!(self, Self::Resource(resource) if resource.kind == CallableKind::Agent)
    }
}

/// A rate that applies to a call.
pub(crate) struct AppliedRate {
    limit: LimitName,
    rate: Rate,
    counter: RateKey,
}

/// Where the calls of a rate are counted.
enum RateKey {
    Session(String),
    Token(TokenId),
    /// A person or a service account in a tenant.
    Member((TenantId, ActorId)),
    Tool {
        entry: Arc<Entry>,
        windows: Arc<RateWindows<TenantId>>,
        tenant: TenantId,
    },
    Tenant(TenantId),
}

impl RateKey {
    /// Returns the key of the rate in the store.
    fn shared(&self) -> String {
        match self {
            RateKey::Session(session) => format!("session:{session}"),
            RateKey::Token(id) => token_key(*id),
            RateKey::Member(member) => member_key(member),
            RateKey::Tool { entry, tenant, .. } => tool_key(entry.tool.id, tenant),
            RateKey::Tenant(tenant) => tenant_key(tenant),
        }
    }
}

/// Returns the key under which the nodes count the calls of a token.
pub(super) fn token_key(id: TokenId) -> String {
    format!("token:{id}")
}

/// Returns the key under which the nodes count the calls of a person or a service account in a tenant.
pub(super) fn member_key((tenant, id): &(TenantId, ActorId)) -> String {
    format!("member:{id}:{tenant}")
}

/// Returns the key under which the nodes count the calls of a tool for a tenant.
pub(super) fn tool_key(id: ToolId, tenant: &TenantId) -> String {
    format!("tool:{id}:{tenant}")
}

/// Returns the key under which the nodes count the calls of a tenant.
pub(super) fn tenant_key(tenant: &TenantId) -> String {
    format!("tenant:{tenant}")
}

/// Returns the key under which the nodes count the calls of a tool that run.
pub(super) fn tool_slots(id: ToolId) -> String {
    format!("tool:{id}")
}

impl Limits {
    /// Refuses a call that its session has just made too many times in a row. Calls without a session are not counted:
    /// a program may have good reasons. Nested calls are not counted either, because their parent is.
    pub(crate) fn check_identical(&self, call: &LimitedCall<'_>) -> Result<(), CallError> {
        let invocation = call.invocation;
        let Some(session) = invocation.session.as_deref().filter(|_| invocation.lineage.is_root()) else {
            return Ok(());
        };
        let max = self.identical.max();
        if max == 0 {
            return Ok(());
        }
        let principal = &invocation.principal;
        let session = (&principal.tenant, &*principal.id(), session);
        let counted = self.identical.count(session, (invocation.tool_id, &invocation.args), clock::now());
        counted.map_err(|wait| {
            let seconds = Duration::from_secs(wait.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX));
            let wait_text = duration::format(seconds);
            call.subject.named_error(|tool| {
                let message = format!(
                    "`{tool}` was called {max} times in a row with the same arguments (`limits.identical_calls`); \
                     use the earlier result, change the arguments, or retry in {wait_text}"
                );
                LimitName::IdenticalCalls.refuse(max.into(), message, Some(wait))
            })
        })
    }

    /// Joins the queues of the calls at the same time: of the tool, then of the tenant. In this order, calls that wait
    /// for the tool take no place of the tenant. A nested call runs in the tenant's place of its parent.
    pub(crate) fn enqueue(&self, call: &LimitedCall<'_>) -> Result<Vec<Slot>, CallError> {
        let mut slots = Vec::new();
        if let LimitedSubject::Tool(entry, _) = call.subject
            && let Some(limit) = &entry.concurrency
        {
            let max = u64::try_from(limit.max()).unwrap_or(u64::MAX);
            let ticket = limit.enqueue().ok_or_else(|| {
                entry.named_error(|tool| {
                    let message = format!(
                        "too many calls are waiting for `{tool}`, which runs at most {max} at the same time \
                         (`limits.max_parallel`); retry later"
                    );
                    LimitName::ToolParallel.refuse(max, message, None)
                })
            })?;
            let key = || tool_slots(call.invocation.tool_id);
            slots.push(Slot::new(ticket, self.store().map(|store| (Arc::clone(store), key(), max))));
        }
        let counts = call.invocation.lineage.is_root() && call.subject.takes_time();
        if let Some(max) = call.tenant_limits.max_parallel.filter(|_| counts) {
            let tenant = call.invocation.tenant();
            let ticket = self.tenant_slots.enqueue(tenant, max).ok_or_else(|| {
                let message = format!(
                    "too many calls of the tenant `{tenant}` are waiting: {max} may run at the same time \
                     (`limits.max_parallel`); retry later"
                );
                LimitName::TenantParallel.refuse(max, message, None)
            })?;
            let key = || tenant_key(tenant);
            slots.push(Slot::new(ticket, self.store().map(|store| (Arc::clone(store), key(), max))));
        }
        Ok(slots)
    }

    /// Returns the rates that apply to a call.
    pub(crate) fn rates(&self, call: &LimitedCall<'_>) -> Vec<AppliedRate> {
        let (invocation, tenant) = (call.invocation, call.invocation.tenant());
        let mut rates = Vec::new();
        if self.session_calls_per_minute > 0
            && let Some(session) = &invocation.session
        {
            let rate = Rate::per_minute(self.session_calls_per_minute);
            let counter = RateKey::Session(self.session_key(invocation, session));
            rates.push(AppliedRate { limit: LimitName::SessionRate, rate, counter });
        }
        let principal = &invocation.principal;
        rates.extend(principal.token_rates().map(|(token, rate)| {
            let counter = RateKey::Token(token);
            AppliedRate { limit: LimitName::TokenRate, rate: rate.into(), counter }
        }));
        rates.extend(principal.actor_rate().map(|(actor, rate)| {
            let counter = RateKey::Member((tenant.clone(), actor));
            AppliedRate { limit: LimitName::MemberRate, rate: rate.into(), counter }
        }));
        if let LimitedSubject::Tool(entry, plan) = call.subject
            && let (Some(rate), Some(windows)) = (plan.rate, &entry.rate_windows)
        {
            let (entry, windows, tenant) = (Arc::clone(entry), Arc::clone(windows), tenant.clone());
            let counter = RateKey::Tool { entry, windows, tenant };
            rates.push(AppliedRate { limit: LimitName::ToolRate, rate, counter });
        }
        if let Some(calls) = call.tenant_limits.calls_per_minute {
            let rate = Rate::per_minute(u32::try_from(calls).unwrap_or(u32::MAX));
            let counter = RateKey::Tenant(tenant.clone());
            rates.push(AppliedRate { limit: LimitName::TenantRate, rate, counter });
        }
        rates
    }

    fn session_key(&self, invocation: &Invocation, session: &str) -> String {
        let principal = &invocation.principal;
        let key = |session: &str| {
            // A NUL separates the parts: no name contains one.
            hash::of_bytes(format!("{}\0{}\0{session}", principal.tenant, principal.id()).as_bytes())
        };
        let own = key(session);
        if self.sessions.len() >= MAX_SESSIONS && self.sessions.get(&own).is_none() { key("") } else { own }
    }

    /// Counts a call on this node; returns the rate that is closest to its limit.
    pub(crate) fn take(&self, rates: &[AppliedRate]) -> Result<Option<RateStatus>, CallError> {
        let now = clock::now();
        let mut counted: Vec<Arc<RateWindow>> = Vec::new();
        let mut tightest = None;
        for rate in rates {
            let window = self.window(&rate.counter, now);
            match window.take(rate.rate, now) {
                Ok(status) => tightest = Some(tighter(tightest, status)),
                Err(wait) => {
                    // A refused call does not count.
                    for window in &counted {
                        window.refund();
                    }
                    return Err(rate.exceeded(wait));
                }
            }
            counted.push(window);
        }
        Ok(tightest)
    }

    fn window(&self, key: &RateKey, now: Instant) -> Arc<RateWindow> {
        match key {
            RateKey::Session(session) => self.sessions.window(session, now),
            RateKey::Token(id) => self.tokens.window(id, now),
            RateKey::Member(member) => self.members.window(member, now),
            RateKey::Tool { windows, tenant, .. } => windows.window(tenant, now),
            RateKey::Tenant(tenant) => self.tenants.window(tenant, now),
        }
    }

    /// Counts a call for all nodes; returns the rate that is closest to its limit.
    pub(crate) async fn take_shared(&self, rates: &[AppliedRate]) -> Result<Option<RateStatus>, CallError> {
        let Some(leases) = &self.shared else { return self.take(rates) };
        let mut counted: Vec<String> = Vec::new();
        let mut tightest = None;
        for rate in rates {
            let key = rate.counter.shared();
            match leases.take(&key, rate.rate).await {
                Ok(status) => tightest = Some(tighter(tightest, status)),
                Err(not_taken) => {
                    refund(leases, &counted).await;
                    return Err(match not_taken {
                        LeaseRejection::Exceeded(wait) => rate.exceeded(wait),
                        LeaseRejection::Store(error) => limits_unavailable(&error),
                    });
                }
            }
            counted.push(key);
        }
        Ok(tightest)
    }
}

async fn refund(leases: &LeasedRates, keys: &[String]) {
    for key in keys {
        leases.refund(key).await;
    }
}

/// Returns the error of a call whose limits cannot be checked.
pub(crate) fn limits_unavailable(error: &haft_core::catalog::StoreError) -> CallError {
    let message = format!("call rejected: its limits cannot be checked: {}", error.with_cause());
    CallError::new(ErrorCode::StoreUnavailable, message)
        .for_model("the tool did not run because its limits cannot be checked; retry later")
}

fn tighter(known: Option<RateStatus>, new: RateStatus) -> RateStatus {
    known.filter(|known| known.remaining <= new.remaining).unwrap_or(new)
}

impl AppliedRate {
    fn exceeded(&self, wait: Duration) -> CallError {
        let error = |subject: &str| self.rate.exceeded(self.limit, subject, wait);
        match &self.counter {
            RateKey::Session(_) => error("this session (`limits.session_calls_per_minute`)"),
            RateKey::Token(_) => error("this token (`rate_limit`)"),
            RateKey::Member(_) => error("all your sessions and tokens (`rate_limit` of the person)"),
            RateKey::Tool { entry, .. } => entry.named_error(|tool| error(&format!("`{tool}`"))),
            RateKey::Tenant(tenant) => {
                error(&format!("all tools of the tenant `{tenant}` (`limits.calls_per_minute`)"))
            }
        }
    }
}
