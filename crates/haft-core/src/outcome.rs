//! The outcome of a call, and the error model.
//!
//! An error has a stable code, a retryability, and two texts: one for the
//! operator with all details, and one for the model, which must not
//! contain hosts, paths or secrets.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::CallId;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, retry $retry:literal;)+) => {
/// The stable codes of errors of calls and requests.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl ErrorCode {
            /// Every code, for documentation and tests.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant,)+];

/// Returns the stable name.
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $text,)+ }
            }

/// Returns whether retrying the same call may succeed.
            pub const fn retryable(self) -> bool {
                match self { $(ErrorCode::$variant => $retry,)+ }
            }
        }
    };
}

codes! {
/// The request is malformed.
    InvalidRequest = "invalid_request", retry false;
/// The arguments do not match the input schema.
    InvalidArguments = "invalid_arguments", retry false;
/// A definition is invalid.
    InvalidDefinition = "invalid_definition", retry false;
/// A page token is invalid.
    InvalidPageToken = "invalid_page_token", retry false;
/// The request has no valid token.
    Unauthorized = "unauthorized", retry false;
/// The role of the token is not sufficient.
    Forbidden = "forbidden", retry false;
/// The object does not exist or belongs to another tenant.
    NotFound = "not_found", retry false;
/// A name without bundle matches more than one tool.
    AmbiguousName = "ambiguous_name", retry false;
    /// The method is not allowed on this route.
    MethodNotAllowed = "method_not_allowed", retry false;
/// An object with this identity exists already.
    Conflict = "conflict", retry false;
    /// The idempotency key was used with other arguments.
    IdempotencyConflict = "idempotency_conflict", retry false;
/// The object is built in or otherwise read-only.
    ReadOnly = "read_only", retry false;
    /// The body or a value is larger than allowed.
    TooLarge = "too_large", retry false;
/// The media type of the body is not supported.
    UnsupportedMediaType = "unsupported_media_type", retry false;
/// The bundle or the tool is disabled.
    Disabled = "disabled", retry false;
    /// The tool has no published revision and the mode is production.
    NotPublished = "not_published", retry false;
    /// The tool was deprecated, and its removal date has passed.
    Removed = "removed", retry false;
/// The definition cannot run: its file is invalid, or its function is not registered.
    NotReady = "not_ready", retry false;
    /// The policy of the tool forbids calls.
    PolicyDenied = "policy_denied", retry false;
/// The call needs approval.
    ApprovalRequired = "approval_required", retry false;
    /// A person denied the call.
    ApprovalDenied = "approval_denied", retry false;
    /// Nobody decided about the call in time.
    ApprovalExpired = "approval_expired", retry false;
/// The call depth limit is exceeded, for example because a tool calls itself.
    TooDeep = "too_deep", retry false;
/// The limit of concurrent calls is reached.
    Overloaded = "overloaded", retry true;
/// The rate limit is exceeded; `retry_after` is the time to wait.
    RateLimited = "rate_limited", retry true;
/// The call exceeded its timeout.
    Timeout = "timeout", retry true;
    /// The call was cancelled.
    Cancelled = "cancelled", retry false;
    /// The node that ran the call stopped; the effects are unknown.
    Interrupted = "interrupted", retry false;
/// A template refers to a missing value, or a value is invalid in its context.
    Template = "template", retry false;
/// A secret that the tool uses does not exist, or its source does not return it.
    SecretMissing = "secret_missing", retry false;
/// The person who calls has to connect an account first; `details` names the provider and the page.
    CredentialRequired = "credential_required", retry false;
/// A path is outside the allowed folder.
    PathEscapes = "path_escapes", retry false;
/// The egress guard rejected the destination.
    EgressRefused = "egress_refused", retry false;
/// The remote host is unreachable, or the connection was lost.
    Network = "network", retry true;
/// The remote host responded with an error status.
    HttpStatus = "http_status", retry false;
/// The response of the remote host is invalid.
    InvalidResponse = "invalid_response", retry false;
/// The output does not match the output schema.
    InvalidOutput = "invalid_output", retry false;
/// The sandbox for the tool's process is unavailable or not effective.
    SandboxUnavailable = "sandbox_unavailable", retry false;
    /// The tool ran and failed.
    ExecutionFailed = "execution_failed", retry false;
    /// The tool's function panicked.
    Panicked = "panicked", retry false;
    /// The model of an agent failed, or its answer cannot be used.
    ModelError = "model_error", retry false;
    /// A run of an agent used up its budget or its number of answers.
    BudgetExceeded = "budget_exceeded", retry false;
/// The store is unavailable or cannot be written.
    StoreUnavailable = "store_unavailable", retry true;
/// An internal error of haft.
    Internal = "internal", retry false;
}

/// Written by hand, because the derive macro does not see the names that `codes!` passes on.
#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for ErrorCode {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::Type::String)
            .description(Some("The stable code of an error"))
            .enum_values(Some(ErrorCode::ALL.iter().map(|code| code.as_str())))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for ErrorCode {
    fn name() -> std::borrow::Cow<'static, str> {
        "ErrorCode".into()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The maximum length of a text for a model, in characters.
pub const MODEL_TEXT_LIMIT: usize = 2000;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct CallError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, for the operator.
    pub message: String,
    /// Whether retrying the same call may succeed.
    pub retryable: bool,
    /// Machine-readable details, such as the list of violations; boxed to keep outcomes small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
    /// The text for the model; `None` if the operator's text is safe for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_model: Option<String>,
    /// How long to wait before a retry, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The record of a rejected call; the record of a finished call has its own id.
    #[serde(skip)]
    pub call_id: Option<CallId>,
}

impl CallError {
    /// Creates an error whose message is also safe for the model.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.retryable(),
            details: None,
            for_model: None,
            retry_after: None,
            call_id: None,
        }
    }

    /// Creates an internal error, of which the model sees no details.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message).for_model("an internal error occurred")
    }

    /// Sets the text for the model.
    #[must_use]
    pub fn for_model(mut self, text: impl Into<String>) -> Self {
        self.for_model = Some(text.into());
        self
    }

    /// Sets machine-readable details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Overrides whether the error is retryable.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Returns the text for the model, limited in length.
    pub fn model_text(&self) -> String {
        model_text(self.for_model.as_deref().unwrap_or(&self.message))
    }
}

/// Returns what a model reads about a failed call, limited in length.
pub fn model_text(reason: &str) -> String {
    let mut out = String::with_capacity(reason.len().min(MODEL_TEXT_LIMIT) + 20);
    out.push_str("Tool call failed: ");
    out.extend(reason.chars().take(MODEL_TEXT_LIMIT));
    out
}

/// The outcome of a call.
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
