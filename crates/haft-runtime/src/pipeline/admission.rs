//! Admission of a call: the limit of the server, then the limits of session, token, tool and tenant.

use haft_core::limit::{LimitName, RateStatus};
use haft_core::outcome::CallError;

use crate::concurrency::{ConcurrencyLimit, Ticket};
use crate::limits::{AppliedRate, LimitedCall, Limits, Slot};

/// The permits of an admitted call, released when dropped.
pub(super) struct Admission {
    /// The places among the calls at the same time, if those are limited.
    slots: Vec<Slot>,
    /// The rate that is closest to its limit.
    pub(super) rate: Option<RateStatus>,
    _server: Ticket,
}

/// Admits a call, or refuses it before it has any effect. Returns the rates that still have to count it: last, so that
/// refused calls do not count.
pub(super) fn admit(
    server: &ConcurrencyLimit,
    limits: &Limits,
    call: &LimitedCall<'_>,
) -> Result<(Admission, Vec<AppliedRate>), CallError> {
    let permit = server.enqueue().ok_or_else(|| {
        let max = server.max();
        let message = format!("limit of {max} running calls reached; retry later");
        LimitName::RunningCalls.refuse(u64::try_from(max).unwrap_or(u64::MAX), message, None)
    })?;
    limits.check_identical(call)?;
    let slots = limits.enqueue(call)?;
    Ok((Admission { slots, rate: None, _server: permit }, limits.rates(call)))
}

impl Admission {
    /// Returns whether the call may have to wait for others.
    pub(super) fn may_wait(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Waits until the call may run; returns whether there is a limit to wait for.
    pub(super) async fn acquire(&mut self) -> Result<bool, CallError> {
        for slot in &mut self.slots {
            slot.acquire().await.map_err(|error| crate::limits::limits_unavailable(&error))?;
        }
        Ok(self.may_wait())
    }
}
