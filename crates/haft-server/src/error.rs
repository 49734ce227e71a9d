//! Converts errors to HTTP statuses, codes and messages.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::limit::RateStatus;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, model_text};
use haft_core::page::PageTokenError;
use haft_core::problem::{Problem, join};
use haft_runtime::registry::ResolveError;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// How long a client waits before it repeats a change that found the store busy.
const BUSY_DELAY: Duration = Duration::from_secs(5);

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    /// The stable code.
    pub code: ErrorCode,
    /// What failed and how to fix it.
    pub message: String,
    /// Machine-readable details; boxed to keep results small.
    pub details: Option<Box<Value>>,
    /// Whether the body contains `"ok": false`, like the response to a call.
    pub of_call: bool,
    /// Whether a retry of the call may succeed.
    pub retryable: bool,
    /// How long to wait before a retry, if known.
    pub retry_after: Option<Duration>,
    /// The record of the rejected call, if there is one.
    pub call_id: Option<CallId>,
    /// The text for the model, if it differs from the message.
    pub for_model: Option<String>,
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    status: ErrorStatus,
    /// `false` where the request was a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    /// The error.
    error: ErrorDetail,
    /// The id of the rejected call; `null` if it was rejected before it was recorded. For calls only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    #[expect(clippy::option_option, reason = "missing, null, or an id")]
    call_id: Option<Option<CallId>>,
    /// The approval that the call waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    approval_id: Option<String>,
    /// The path of that approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    approval_url: Option<String>,
    /// The id of the request, as in the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// The error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorDetail {
    /// A stable code.
    code: ErrorCode,
    /// What failed and how to fix it.
    #[schema(example = "tool `greet` not found")]
    message: String,
    /// Whether a retry may succeed; for calls only.
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    /// Machine-readable details.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Value>,
    /// The message for the model; for calls only.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_text: Option<String>,
}

/// The status of every error.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ErrorStatus {
    /// The request failed.
    Error,
    /// The call is stored and waits for a person's decision.
    AwaitingApproval,
}

impl ApiError {
    /// Creates an error.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let retryable = code.retryable();
        Self {
            code,
            message: message.into(),
            details: None,
            of_call: false,
            retryable,
            retry_after: None,
            call_id: None,
            for_model: None,
        }
    }

    /// Creates an `invalid_request` error.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// Creates a `not_found` error; `kind` is what was not found.
    pub(crate) fn not_found(kind: &str, key: &str) -> Self {
        let message = format!("{kind} `{}` not found", haft_core::problem::excerpt(key, 120));
        Self::new(ErrorCode::NotFound, message).with_details(json!({"kind": kind}))
    }

    /// Adds machine-readable details.
    #[must_use]
    pub(crate) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Marks the error as the response to a call.
    #[must_use]
    pub(crate) fn of_call(mut self) -> Self {
        self.of_call = true;
        self
    }

    /// Creates an `invalid_definition` error that lists all problems.
    pub(crate) fn invalid_definition(problems: &[Problem]) -> Self {
        let (warnings, errors): (Vec<Problem>, Vec<Problem>) =
            problems.iter().cloned().partition(crate::definition::is_ignored_field);
        let mut details = json!({"problems": errors});
        if let Value::Object(map) = &mut details
            && !warnings.is_empty()
        {
            map.insert("warnings".to_owned(), json!(warnings));
        }
        Self::new(ErrorCode::InvalidDefinition, join(&errors)).with_details(details)
    }
}

/// Returns the HTTP status of a code.
pub(crate) fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidRequest
        | ErrorCode::InvalidArguments
        | ErrorCode::InvalidDefinition
        | ErrorCode::InvalidPageToken => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden
        | ErrorCode::ReadOnly
        | ErrorCode::PolicyDenied
        | ErrorCode::ApprovalDenied
        | ErrorCode::ApprovalRequired => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::Conflict
        | ErrorCode::AmbiguousName
        | ErrorCode::IdempotencyConflict
        | ErrorCode::Disabled
        | ErrorCode::NotPublished
        | ErrorCode::NotReady
        | ErrorCode::ApprovalExpired => StatusCode::CONFLICT,
        ErrorCode::Removed => StatusCode::GONE,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Overloaded | ErrorCode::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        // A failed call of a tool is a response with status 200; this is an upstream that a route itself needs.
        ErrorCode::Network => StatusCode::BAD_GATEWAY,
        ErrorCode::TooDeep
        | ErrorCode::Timeout
        | ErrorCode::Cancelled
        | ErrorCode::Interrupted
        | ErrorCode::Template
        | ErrorCode::SecretMissing
        | ErrorCode::PathEscapes
        | ErrorCode::EgressRefused
        | ErrorCode::HttpStatus
        | ErrorCode::InvalidResponse
        | ErrorCode::InvalidOutput
        | ErrorCode::SandboxUnavailable
        | ErrorCode::ExecutionFailed
        | ErrorCode::Panicked
        | ErrorCode::ModelError
        | ErrorCode::BudgetExceeded
        | ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let waits = self.code == ErrorCode::ApprovalRequired && self.call_id.is_some();
        // Without a stored call there is nothing to wait for.
        let status = if waits { StatusCode::ACCEPTED } else { status(self.code) };
        let approval = self.details.as_ref().and_then(|details| details.get("approval_id")).filter(|_| waits);
        let approval_id = approval.and_then(Value::as_str).map(str::to_owned);
        let model_text = self.of_call.then(|| model_text(self.for_model.as_deref().unwrap_or(&self.message)));
        let limit = rate_limit(self.code, self.details.as_deref());
        let body = ErrorBody {
            status: if waits { ErrorStatus::AwaitingApproval } else { ErrorStatus::Error },
            ok: self.of_call.then_some(false),
            error: ErrorDetail {
                code: self.code,
                message: self.message,
                retryable: self.of_call.then_some(self.retryable),
                details: self.details.map(|details| *details),
                model_text,
            },
            call_id: self.of_call.then_some(self.call_id),
            approval_url: approval_id.as_ref().map(|id| format!("/api/approvals/{id}")),
            approval_id,
            request_id: crate::request_id::current(),
        };
        let mut response = (status, Json(body)).into_response();
        // Read by the audit log.
        response.extensions_mut().insert(self.code);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        set_retry_after(&mut response, self.retry_after, limit);
        response
    }
}

/// Sets `Retry-After` if the status calls for it, and the `RateLimit` headers if a rate limit is exceeded.
pub(crate) fn set_retry_after(response: &mut Response, wait: Option<Duration>, limit: Option<u64>) {
    if [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&response.status()) {
        // Rounded up: an earlier retry would be rejected again.
        let seconds = wait.map_or(1, |wait| wait.as_millis().div_ceil(1000).clamp(1, 86_400));
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        if let Some(limit) = limit {
            headers.insert("ratelimit-limit", HeaderValue::from(limit));
            headers.insert("ratelimit-remaining", HeaderValue::from(0));
            headers.insert("ratelimit-reset", HeaderValue::from(seconds));
        }
    }
}

/// Sets the `RateLimit` headers of a call that a rate has counted.
pub(crate) fn set_rate_limit(response: &mut Response, rate: RateStatus) {
    let seconds = u64::try_from(rate.reset.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
    let headers = response.headers_mut();
    headers.insert("ratelimit-limit", HeaderValue::from(rate.limit));
    headers.insert("ratelimit-remaining", HeaderValue::from(rate.remaining));
    headers.insert("ratelimit-reset", HeaderValue::from(seconds));
}

/// Returns the number of calls that an exceeded rate limit allows.
pub(crate) fn rate_limit(code: ErrorCode, details: Option<&Value>) -> Option<u64> {
    details.filter(|_| code == ErrorCode::RateLimited)?.get("value")?.as_u64()
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what, key } => Self::not_found(what, &key),
            StoreError::Conflict(message) => Self::new(ErrorCode::Conflict, message),
            StoreError::ReadOnly(message) => Self::new(ErrorCode::ReadOnly, message),
            StoreError::Invalid(problems) => Self::invalid_definition(&problems),
            StoreError::LimitReached { limit, value, message } => {
                Self { of_call: false, retryable: false, ..limit.refuse(value, message, None).into() }
            }
            StoreError::Busy => {
                let error = Self::new(ErrorCode::StoreUnavailable, StoreError::Busy.to_string());
                Self { retryable: true, retry_after: Some(BUSY_DELAY), ..error }
            }
            StoreError::ClaimLost => Self::new(ErrorCode::Conflict, error.to_string()),
            StoreError::Unavailable { action, failure, source } => {
                // The client gets the kind of failure; paths and SQL stay in the log.
                tracing::error!(action, error = %source, "the store is unavailable");
                let cause = failure.describe().map_or(String::new(), |cause| format!(" ({cause})"));
                let message = format!("the store is unavailable{cause}; see the server log");
                Self::new(ErrorCode::StoreUnavailable, message)
            }
        }
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        if error.code == ErrorCode::Internal || error.code == ErrorCode::StoreUnavailable {
            tracing::error!(error = %error, "internal error during a call");
            let hidden = Self::new(error.code, error.for_model.unwrap_or_default());
            // The error decides: a tool that ran must not be retried because its record is missing.
            return Self { of_call: true, retryable: error.retryable, call_id: error.call_id, ..hidden };
        }
        let CallError { code, message, details, retryable, retry_after, call_id, for_model } = error;
        // The pipeline rejects a call with this code only if the tool does not exist.
        let tool_missing = || (code == ErrorCode::NotFound).then(|| json!({"kind": "tool"}));
        let details = details.or_else(|| tool_missing().map(Box::new));
        Self { code, message, details, of_call: true, retryable, retry_after, call_id, for_model }
    }
}

impl From<ResolveError> for ApiError {
    fn from(error: ResolveError) -> Self {
        Self { of_call: false, ..CallError::from(error).into() }
    }
}

impl From<NameError> for ApiError {
    fn from(error: NameError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<PageTokenError> for ApiError {
    fn from(error: PageTokenError) -> Self {
        Self::new(ErrorCode::InvalidPageToken, error.to_string())
    }
}
