//! Admission of a call: the limit of the server, the limits of the tool's definition, and those of the tenant.

use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::tenant::TenantLimits;

use crate::clock;
use crate::concurrency::{ConcurrencyLimit, Ticket};
use crate::rate::{Rate, TenantRateWindows};
use crate::registry::{CompiledTool, Entry};

/// The permits of an admitted call, released when dropped.
pub(super) struct Admission {
    tool: Option<Ticket>,
    _server: Ticket,
}

/// Admits a call, or rejects it before it has any effect.
pub(super) fn admit(
    server: &ConcurrencyLimit,
    entry: &Entry,
    plan: &CompiledTool,
    tenant: &TenantId,
) -> Result<Admission, CallError> {
    let permit = server.enqueue().ok_or_else(|| {
        let message = format!("limit of {} running calls reached; retry later", server.max());
        CallError::new(ErrorCode::Overloaded, message)
    })?;
    let tool = match &entry.concurrency {
        Some(limit) => Some(limit.enqueue().ok_or_else(|| {
            entry.named_error(|tool| {
                let message = format!("too many calls are waiting for `{tool}`; retry later");
                CallError::new(ErrorCode::Overloaded, message)
            })
        })?),
        None => None,
    };
    // Last, so that rejected calls do not count against the rate.
    if let (Some(rate), Some(windows)) = (plan.rate, &entry.rate_windows) {
        windows
            .take(tenant, rate, clock::now())
            .map_err(|wait| entry.named_error(|tool| rate.exceeded(&format!("`{tool}`"), wait)))?;
    }
    Ok(Admission { tool, _server: permit })
}

/// Counts a call for its tenant, or rejects it if the tenant has made too many.
pub(super) fn admit_tenant(
    windows: &TenantRateWindows,
    limits: TenantLimits,
    tenant: &TenantId,
) -> Result<(), CallError> {
    let Some(calls) = limits.calls_per_minute else { return Ok(()) };
    let rate = Rate::per_minute(u32::try_from(calls).unwrap_or(u32::MAX));
    windows.take(tenant, rate, clock::now()).map_err(|wait| {
        rate.exceeded(&format!("all tools of the tenant `{tenant}` (`limits.calls_per_minute`)"), wait)
    })
}

impl Admission {
    /// Waits until the tool may run one more call; returns whether the tool has such a limit.
    pub(super) async fn acquire(&mut self) -> bool {
        let Some(ticket) = &mut self.tool else { return false };
        ticket.acquire().await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_tenant_counts_its_own_calls() {
        let windows = TenantRateWindows::default();
        let [acme, other] = ["acme", "other"].map(|id| TenantId::new(id).unwrap());
        let limits = TenantLimits { calls_per_minute: Some(2), ..TenantLimits::default() };
        for _ in 0..2 {
            admit_tenant(&windows, limits, &acme).unwrap();
        }
        let error = admit_tenant(&windows, limits, &acme).unwrap_err();
        let (message, _) = error.message.split_once("; retry in ").unwrap();
        assert_eq!(
            (error.code, message, error.retryable),
            (
                ErrorCode::RateLimited,
                "rate limit exceeded for all tools of the tenant `acme` (`limits.calls_per_minute`): 2 calls per 1m",
                true
            )
        );
        assert!(error.retry_after.is_some());
        admit_tenant(&windows, limits, &other).unwrap();
        for _ in 0..100 {
            admit_tenant(&windows, TenantLimits::default(), &other).unwrap();
        }
        // A raised limit holds at once, and counted calls stay counted.
        let raised = TenantLimits { calls_per_minute: Some(3), ..TenantLimits::default() };
        admit_tenant(&windows, raised, &acme).unwrap();
        admit_tenant(&windows, raised, &acme).unwrap_err();
    }
}
