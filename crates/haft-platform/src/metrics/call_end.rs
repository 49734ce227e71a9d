//! How calls end, and how long they take.

use haft_core::call::CallRecord;
use haft_core::outcome::ErrorCode;

/// The upper bounds of the histogram buckets of call durations, in seconds.
pub(super) const BUCKETS: [f64; 12] =
    [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    Success,
    Error,
    Timeout,
    Cancelled,
    /// It did not run.
    Rejected,
}

impl CallEnd {
    pub(super) const ALL: [CallEnd; 5] =
        [CallEnd::Success, CallEnd::Error, CallEnd::Timeout, CallEnd::Cancelled, CallEnd::Rejected];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            CallEnd::Success => "success",
            CallEnd::Error => "error",
            CallEnd::Timeout => "timeout",
            CallEnd::Cancelled => "cancelled",
            CallEnd::Rejected => "rejected",
        }
    }

    /// Returns how a call that ran has ended.
    pub(super) fn of(record: &CallRecord) -> Self {
        match record.error.as_ref().map(|error| error.code) {
            None => CallEnd::Success,
            Some(ErrorCode::Timeout) => CallEnd::Timeout,
            Some(ErrorCode::Cancelled) => CallEnd::Cancelled,
            Some(_) => CallEnd::Error,
        }
    }
}
