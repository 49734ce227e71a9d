//! Limits of calls: their names, the errors of refused calls, and what nodes share to enforce them together.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use crate::BoxFuture;
use crate::catalog::StoreError;
use crate::duration;
use crate::outcome::{CallError, ErrorCode};
use crate::spec::RateLimit;

/// A limit. Its name is where it is set; errors, metrics and lists of limits use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitName {
    /// The rate of a tool: `execution.rate_limit` of its definition.
    ToolRate,
    /// The rate of a token.
    TokenRate,
    /// The rate of a person or a service account in a tenant.
    MemberRate,
    /// The rate of a tenant.
    TenantRate,
    /// The rate of a chat or connection.
    SessionRate,
    /// The rate that a stage of the embedding program sets.
    StageRate,
    /// The number of identical calls in a row.
    IdenticalCalls,
    /// The calls of a tool at the same time.
    ToolParallel,
    /// The calls of a tenant at the same time.
    TenantParallel,
    /// The calls of a node at the same time.
    RunningCalls,
    /// The calls of a tenant in the queue.
    QueuedCalls,
    /// The tools of a tenant.
    Tools,
    /// The agents of a tenant.
    Agents,
    /// The retrieval pipelines of a tenant.
    Pipelines,
    /// The code artifacts of a tenant.
    Artifacts,
    /// The bytes that a tenant stores.
    StoredBytes,
    /// The stored runs of a tenant.
    Runs,
    /// The runs of a tenant that have not ended.
    ParallelRuns,
    /// The chats of a tenant.
    Chats,
    /// The messages of one chat.
    ChatMessages,
    /// The named workspaces of a tenant.
    Workspaces,
    /// The documents of all pipelines of a tenant.
    Documents,
}

impl LimitName {
    /// Every limit.
    pub const ALL: [LimitName; 22] = [
        LimitName::ToolRate,
        LimitName::TokenRate,
        LimitName::MemberRate,
        LimitName::TenantRate,
        LimitName::SessionRate,
        LimitName::StageRate,
        LimitName::IdenticalCalls,
        LimitName::ToolParallel,
        LimitName::TenantParallel,
        LimitName::RunningCalls,
        LimitName::QueuedCalls,
        LimitName::Tools,
        LimitName::Agents,
        LimitName::Pipelines,
        LimitName::Artifacts,
        LimitName::StoredBytes,
        LimitName::Runs,
        LimitName::ParallelRuns,
        LimitName::Chats,
        LimitName::ChatMessages,
        LimitName::Workspaces,
        LimitName::Documents,
    ];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            LimitName::ToolRate => "tool.rate_limit",
            LimitName::TokenRate => "token.rate_limit",
            LimitName::MemberRate => "member.rate_limit",
            LimitName::TenantRate => "tenant.calls_per_minute",
            LimitName::SessionRate => "limits.session_calls_per_minute",
            LimitName::StageRate => "stage.rate_limit",
            LimitName::IdenticalCalls => "limits.identical_calls",
            LimitName::ToolParallel => "tool.max_parallel",
            LimitName::TenantParallel => "tenant.max_parallel",
            LimitName::RunningCalls => "server.max_running_calls",
            LimitName::QueuedCalls => "tenant.max_queued_calls",
            LimitName::Tools => "tenant.max_tools",
            LimitName::Agents => "tenant.max_agents",
            LimitName::Pipelines => "tenant.max_pipelines",
            LimitName::Artifacts => "tenant.max_artifacts",
            LimitName::StoredBytes => "tenant.max_stored_bytes",
            LimitName::Runs => "tenant.max_runs",
            LimitName::ParallelRuns => "tenant.max_parallel_runs",
            LimitName::Chats => "tenant.max_chats",
            LimitName::ChatMessages => "tenant.max_messages_per_chat",
            LimitName::Workspaces => "tenant.max_workspaces",
            LimitName::Documents => "tenant.max_documents",
        }
    }

    /// Parses the name that [`LimitName::as_str`] returns.
    pub fn parse(text: &str) -> Option<LimitName> {
        LimitName::ALL.into_iter().find(|name| name.as_str() == text)
    }

    /// Returns the error of a call that this limit refuses. `reset` is the time until it may succeed, if that is known.
    pub fn refuse(self, value: u64, message: String, reset: Option<Duration>) -> CallError {
        let code = match self {
            LimitName::ToolRate
            | LimitName::TokenRate
            | LimitName::MemberRate
            | LimitName::TenantRate
            | LimitName::SessionRate
            | LimitName::StageRate
            | LimitName::IdenticalCalls
            | LimitName::ParallelRuns => ErrorCode::RateLimited,
            LimitName::ToolParallel
            | LimitName::TenantParallel
            | LimitName::RunningCalls
            | LimitName::QueuedCalls => ErrorCode::Overloaded,
            LimitName::Tools
            | LimitName::Agents
            | LimitName::Pipelines
            | LimitName::Artifacts
            | LimitName::StoredBytes
            | LimitName::Runs
            | LimitName::Chats
            | LimitName::ChatMessages
            | LimitName::Workspaces
            | LimitName::Documents => ErrorCode::Conflict,
        };
        // Rounded up: an earlier retry is refused again.
        let seconds = reset.map(|wait| wait.as_millis().div_ceil(1000).max(1));
        let details = json!({"limit": self.as_str(), "value": value, "reset_seconds": seconds});
        let mut error = CallError::new(code, message).with_details(details);
        error.retry_after = reset;
        error
    }
}

/// A number of calls per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallRate {
    /// The number of calls.
    pub calls: u32,
    /// The period.
    pub period: Duration,
}

impl CallRate {
    /// Returns whether it allows at least as many calls as another one, over a long time.
    pub fn covers(self, other: Self) -> bool {
        let average = |rate: Self, over: Self| u128::from(rate.calls) * over.period.as_nanos();
        average(self, other) >= average(other, self)
    }
}

impl From<CallRate> for RateLimit {
    fn from(rate: CallRate) -> Self {
        Self { calls: rate.calls, per: duration::format(rate.period) }
    }
}

/// How much of a rate is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RateStatus {
    /// The number of calls per period.
    pub limit: u32,
    /// How many more calls the rate allows now.
    pub remaining: u32,
    /// The time until the oldest counted call no longer counts.
    pub reset: Duration,
}

/// Calls that a node may make within a rate that all nodes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// How many calls were granted; 0 if the rate is used up.
    pub granted: u32,
    /// Identifies the granted calls, so that unused ones can be returned.
    pub batch: i64,
    /// What is left for all nodes.
    pub status: RateStatus,
}

/// The calls of an earlier draw that were not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedCalls {
    /// The draw.
    pub batch: i64,
    /// The number of calls.
    pub calls: u32,
}

/// Counts calls for all nodes that share a database.
pub trait SharedLimits: Send + Sync {
    /// Draws calls of a rate, at most as many as requested, and returns unused ones of an earlier draw. What is drawn
    /// counts until a period after `lifetime` has passed.
    fn draw<'a>(&'a self, key: &'a str, request: DrawRequest) -> BoxFuture<'a, Result<Draw, StoreError>>;
    /// Returns how much of a rate is used.
    fn status<'a>(&'a self, key: &'a str, rate: CallRate) -> BoxFuture<'a, Result<RateStatus, StoreError>>;
    /// Acquires one of the calls that may run at the same time; `false` if all are in use.
    fn acquire<'a>(&'a self, key: &'a str, max: u64) -> BoxFuture<'a, Result<bool, StoreError>>;
    /// Releases a call that [`SharedLimits::acquire`] has acquired.
    fn release<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
    /// Returns how many calls run at the same time, on all nodes.
    fn running<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<u64, StoreError>>;
}

/// What to draw of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawRequest {
    /// The rate.
    pub rate: CallRate,
    /// The most calls to draw.
    pub calls: u32,
    /// For how long the node may use them.
    pub lifetime: Duration,
    /// The calls to return.
    pub unused: Option<UnusedCalls>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_limit_its_value_and_the_reset() {
        let wait = Duration::from_millis(2300);
        let error = LimitName::TenantRate.refuse(60, "rate limit exceeded".to_owned(), Some(wait));
        assert_eq!((error.code, error.retry_after), (ErrorCode::RateLimited, Some(wait)));
        let expected = json!({"limit": "tenant.calls_per_minute", "value": 60, "reset_seconds": 3});
        assert_eq!(error.details.as_deref(), Some(&expected));
        let error = LimitName::TenantParallel.refuse(1, String::new(), None);
        assert_eq!(error.code, ErrorCode::Overloaded);
        let expected = json!({"limit": "tenant.max_parallel", "value": 1, "reset_seconds": null});
        assert_eq!(error.details.as_deref(), Some(&expected));
    }

    #[test]
    fn names_are_parsed() {
        for name in LimitName::ALL {
            assert_eq!(LimitName::parse(name.as_str()), Some(name));
        }
    }

    #[test]
    fn rates_are_compared_by_their_average() {
        let rate = |calls, seconds| CallRate { calls, period: Duration::from_secs(seconds) };
        assert!(rate(60, 60).covers(rate(1, 1)) && rate(1, 1).covers(rate(60, 60)));
        assert!(rate(61, 60).covers(rate(1, 1)) && !rate(1, 1).covers(rate(61, 60)));
    }
}
