//! The states of the steps of one run.

use haft_core::outcome::CallError;
use serde_json::{Map, Value, json};

/// What became of a step.
#[derive(Debug, Clone, Default)]
pub(super) enum StepState {
    /// It has not ended.
    #[default]
    Waiting,
    /// Its condition did not hold.
    Skipped,
    /// It succeeded.
    Succeeded(Value),
    /// It failed; the value is that of `fallback`, or of the items that succeeded.
    Failed {
        /// Why.
        error: CallError,
        /// The value that other steps read.
        value: Option<Value>,
    },
}

impl StepState {
    /// Returns the word in results.
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self::Waiting => "not_run",
            Self::Skipped => "skipped",
            Self::Succeeded(_) => "success",
            Self::Failed { .. } => "error",
        }
    }

    /// Returns the value that other steps read.
    pub(super) fn value(&self) -> Option<&Value> {
        match self {
            Self::Succeeded(value) | Self::Failed { value: Some(value), .. } => Some(value),
            Self::Waiting | Self::Skipped | Self::Failed { value: None, .. } => None,
        }
    }

    fn error(&self) -> Option<&CallError> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::Waiting | Self::Skipped | Self::Succeeded(_) => None,
        }
    }

    /// Returns what mappings see: `ok`, `status`, `value`, `error`.
    pub(super) fn seen(&self) -> Value {
        let mut seen =
            fields([("ok", json!(matches!(self, Self::Succeeded(_)))), ("status", json!(self.status()))]);
        seen.extend(self.value().map(|value| ("value".to_owned(), value.clone())));
        seen.extend(self.error().map(|error| ("error".to_owned(), described(error))));
        Value::Object(seen)
    }

    /// Returns what the details of a failed call show, without values.
    pub(super) fn summary(&self, id: &str, tool: &str) -> Value {
        let mut summary =
            fields([("id", json!(id)), ("tool", json!(tool)), ("status", json!(self.status()))]);
        let short = |error: &CallError| json!({"code": error.code, "message": error.message});
        summary.extend(self.error().map(|error| ("error".to_owned(), short(error))));
        Value::Object(summary)
    }
}

/// Returns an error as mappings see it.
pub(super) fn described(error: &CallError) -> Value {
    let mut described = fields([
        ("code", json!(error.code)),
        ("message", json!(error.message)),
        ("retryable", json!(error.retryable)),
    ]);
    described.extend(error.details.as_ref().map(|details| ("details".to_owned(), (**details).clone())));
    Value::Object(described)
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
