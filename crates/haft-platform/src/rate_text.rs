//! A rate of calls as requests have it.

use std::time::Duration;

use haft_core::duration;
use haft_core::limit::CallRate;

use crate::error::ServiceError;

/// The most calls of a rate.
const MAX_CALLS: u32 = 1_000_000_000;

/// A number of calls per period, in text form.
#[derive(Debug)]
pub struct RateText {
    pub calls: u32,
    /// The period, a duration such as `1m`.
    pub per: String,
}

impl RateText {
    /// Checks the rate; errors name the field.
    pub(crate) fn check(&self) -> Result<CallRate, ServiceError> {
        if !(1..=MAX_CALLS).contains(&self.calls) {
            return Err(ServiceError::bad_request(format!(
                "invalid `rate_limit.calls`: {}; expected 1 to {MAX_CALLS}",
                self.calls
            )));
        }
        let period = duration::parse(&self.per, Duration::from_secs(1))
            .map_err(|error| ServiceError::bad_request(format!("invalid `rate_limit.per`: {error}")))?;
        if period.is_zero() {
            return Err(ServiceError::bad_request(
                "invalid `rate_limit.per`: must be longer than zero, such as `1m`",
            ));
        }
        Ok(CallRate { calls: self.calls, period })
    }
}
