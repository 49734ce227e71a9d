//! Limits and their use.

use std::borrow::Cow;

use haft_core::duration;
use haft_core::limit::{CallRate, LimitName, RateStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A limit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// The name, which errors and metrics use, too.
    #[schema(example = "tenant.calls_per_minute")]
    pub name: Cow<'static, str>,
    /// The tool or token; `null` for limits of the tenant and of the server.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "web:fetch@1.0.0")]
    pub subject: Option<String>,
    #[schema(example = 600)]
    pub value: u64,
    /// The period of a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "1m")]
    pub per: Option<String>,
    /// The current use; missing for limits that are counted per session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 12)]
    pub used: Option<u64>,
    /// The remaining amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 588)]
    pub remaining: Option<u64>,
    /// The number of seconds until the rate allows more calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 42)]
    pub reset_seconds: Option<u64>,
}

impl LimitView {
    /// Creates the view of a limit whose use is not counted.
    pub fn new(name: LimitName, value: u64) -> Self {
        let (subject, per, used, remaining, reset_seconds) = (None, None, None, None, None);
        Self { name: Cow::Borrowed(name.as_str()), subject, value, per, used, remaining, reset_seconds }
    }

    /// Creates the view of a limit with its use.
    pub fn used(name: LimitName, value: u64, used: u64) -> Self {
        let remaining = Some(value.saturating_sub(used));
        Self { used: Some(used), remaining, ..Self::new(name, value) }
    }

    /// Creates the view of a rate with its use.
    pub fn rate(name: LimitName, rate: CallRate, status: RateStatus) -> Self {
        let used = status.limit.saturating_sub(status.remaining);
        let seconds = u64::try_from(status.reset.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
        Self {
            per: Some(duration::format(rate.period)),
            reset_seconds: (used > 0).then_some(seconds),
            ..Self::used(name, rate.calls.into(), used.into())
        }
    }

    /// Adds the tool or the token.
    #[must_use]
    pub fn of(self, subject: impl Into<String>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }
}

/// The limits of a tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LimitList {
    #[schema(example = "default")]
    pub tenant: String,
    /// Whether rates and parallel calls are counted for all nodes together.
    pub shared: bool,
    pub limits: Vec<LimitView>,
    /// The number of limits of tools and tokens that are not listed.
    pub omitted: usize,
}
