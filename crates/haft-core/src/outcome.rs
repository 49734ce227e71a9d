//! The one outcome of every call, and the one error model.
//!
//! A failure has a stable code, a retryability, and two texts: one for the
//! operator, who may know everything, and one for the model, which must not
//! learn of hosts, paths or secrets.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, retry $retry:literal;)+) => {
        /// The stable names of everything that can go wrong with a call or a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl ErrorCode {
            /// Every code, for documentation and tests.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)+];

            /// Returns the name that clients rely on.
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $text,)+ }
            }

            /// Tells whether the same call may succeed later without a change.
            pub const fn retryable(self) -> bool {
                match self { $(ErrorCode::$variant => $retry,)+ }
            }
        }
    };
}

codes! {
    /// The request itself is malformed.
    InvalidRequest = "invalid_request", retry false;
    /// The arguments do not fit the input schema.
    InvalidArguments = "invalid_arguments", retry false;
    /// A definition is not valid.
    InvalidDefinition = "invalid_definition", retry false;
    /// A page token was not made by this server.
    InvalidPageToken = "invalid_page_token", retry false;
    /// No valid token came with the request.
    Unauthorized = "unauthorized", retry false;
    /// The token may not do this.
    Forbidden = "forbidden", retry false;
    /// There is no such thing, or it belongs to someone else.
    NotFound = "not_found", retry false;
    /// A bare name fits more than one tool.
    AmbiguousName = "ambiguous_name", retry false;
    /// The method is not allowed on this route.
    MethodNotAllowed = "method_not_allowed", retry false;
    /// Something of that identity exists already.
    Conflict = "conflict", retry false;
    /// The idempotency key was used with other arguments.
    IdempotencyConflict = "idempotency_conflict", retry false;
    /// The thing is built in or otherwise not to be changed.
    ReadOnly = "read_only", retry false;
    /// The body or a value is larger than allowed.
    TooLarge = "too_large", retry false;
    /// The body has a type that is not understood.
    UnsupportedMediaType = "unsupported_media_type", retry false;
    /// The bundle or the tool is switched off.
    Disabled = "disabled", retry false;
    /// The tool has no published revision and the mode is production.
    NotPublished = "not_published", retry false;
    /// The definition cannot run: its file does not parse, or its function is gone.
    NotReady = "not_ready", retry false;
    /// The policy of the tool forbids calls.
    PolicyDenied = "policy_denied", retry false;
    /// A person has to agree first.
    ApprovalRequired = "approval_required", retry false;
    /// Too many calls stand within one another, as when a tool calls itself without end.
    TooDeep = "too_deep", retry false;
    /// The bounds on running calls are reached.
    Overloaded = "overloaded", retry true;
    /// The calls that a rate allows are used up; `retry_after` tells for how long.
    RateLimited = "rate_limited", retry true;
    /// The call took longer than it may.
    Timeout = "timeout", retry true;
    /// The call was cancelled.
    Cancelled = "cancelled", retry false;
    /// A template names a value that is missing, or a value does not fit its place.
    Template = "template", retry false;
    /// A secret that the tool names does not exist.
    SecretMissing = "secret_missing", retry false;
    /// A path leads out of the folder that the tool may use.
    PathEscapes = "path_escapes", retry false;
    /// The egress guard refused the destination.
    EgressRefused = "egress_refused", retry false;
    /// The other side could not be reached, or the connection broke.
    Network = "network", retry true;
    /// The other side answered with a status that is not a success.
    HttpStatus = "http_status", retry false;
    /// The other side's answer could not be understood.
    InvalidResponse = "invalid_response", retry false;
    /// The output does not fit the output schema.
    InvalidOutput = "invalid_output", retry false;
    /// What would confine the tool's process is missing or does not hold.
    SandboxUnavailable = "sandbox_unavailable", retry false;
    /// The tool ran and failed.
    ExecutionFailed = "execution_failed", retry false;
    /// The tool's function panicked.
    Panicked = "panicked", retry false;
    /// The store cannot be reached or written.
    StoreUnavailable = "store_unavailable", retry true;
    /// A fault of haft itself.
    Internal = "internal", retry false;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The most characters of a text that is given to a model.
pub const MODEL_TEXT_LIMIT: usize = 2000;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct CallError {
    /// The stable name of the failure.
    pub code: ErrorCode,
    /// What happened, for the operator.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// What a program may want to read, such as the list of violations. Elsewhere, as outcomes are handed on by many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
    /// What the model is told; `None` where the operator's text is safe for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_model: Option<String>,
    /// How long the other side asked to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

impl CallError {
    /// Makes an error whose message is safe for the model too.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.retryable(),
            details: None,
            for_model: None,
            retry_after: None,
        }
    }

    /// Makes an error of haft itself: the model learns only that it happened.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message).for_model("an internal error occurred")
    }

    /// Sets what the model reads instead of the operator's message.
    #[must_use]
    pub fn for_model(mut self, text: impl Into<String>) -> Self {
        self.for_model = Some(text.into());
        self
    }

    /// Adds what a program may want to read.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Says whether a repetition may help, against the rule of the code.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Returns the bounded sentence that the model reads.
    pub fn model_text(&self) -> String {
        let text = self.for_model.as_deref().unwrap_or(&self.message);
        let mut out = String::with_capacity(text.len().min(MODEL_TEXT_LIMIT) + 20);
        out.push_str("Tool call failed: ");
        out.extend(text.chars().take(MODEL_TEXT_LIMIT));
        out
    }
}

/// What a call came to.
pub type Outcome = Result<Value, CallError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_stable() {
        let names: std::collections::HashSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn the_model_never_reads_the_operators_text_of_an_internal_error() {
        let error = CallError::internal("database file is locked");
        assert_eq!(error.model_text(), "Tool call failed: an internal error occurred");
        assert_eq!(CallError::new(ErrorCode::Timeout, "x".repeat(5000)).model_text().len(), 2018);
    }
}
