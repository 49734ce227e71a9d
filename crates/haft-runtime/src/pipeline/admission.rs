//! Admission of a call: the limit of the server, and the limits of the tool's definition.

use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};

use crate::clock;
use crate::concurrency::{ConcurrencyLimit, Ticket};
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

impl Admission {
    /// Waits until the tool may run one more call; returns whether the tool has such a limit.
    pub(super) async fn acquire(&mut self) -> bool {
        let Some(ticket) = &mut self.tool else { return false };
        ticket.acquire().await;
        true
    }
}
