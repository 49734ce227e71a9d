//! The errors of requests: [`ServiceError`] with a status, headers and a body.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
pub(crate) use haft_api::error::ErrorBody;
use haft_api::error::{ErrorDetail, ErrorStatus};
use haft_core::limit::RateStatus;
use haft_core::outcome::{CallError, ErrorCode, model_text};
use haft_core::problem::Problem;
use haft_core::token::Role;
use serde_json::Value;

use haft_platform::error::ServiceError;

/// The error of a request.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) ServiceError);

impl<E: Into<ServiceError>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl ApiError {
    /// Creates an error.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(ServiceError::new(code, message))
    }

    /// Creates an `invalid_request` error.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self(ServiceError::bad_request(message))
    }

    /// Creates a `not_found` error; `kind` is what was not found.
    pub(crate) fn not_found(kind: &str, key: &str) -> Self {
        Self(ServiceError::not_found(kind, key))
    }

    /// Creates an `invalid_definition` error that lists all problems.
    pub(crate) fn invalid_definition(problems: &[Problem]) -> Self {
        Self(ServiceError::invalid_definition(problems))
    }

    /// Converts the error of something that is not a call, but fails like one.
    pub(crate) fn outside_call(error: CallError) -> Self {
        Self(ServiceError::outside_call(error))
    }

    /// Adds machine-readable details.
    #[must_use]
    pub(crate) fn with_details(self, details: Value) -> Self {
        Self(self.0.with_details(details))
    }

    /// Marks the error as the response to a call.
    #[must_use]
    pub(crate) fn of_call(self) -> Self {
        Self(self.0.of_call())
    }
}

/// The role that a request lacks; read by the edge, which tells applications how to ask for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequiredRole(pub(crate) Role);

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
        | ErrorCode::CredentialRequired
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
        let Self(error) = self;
        let waits = haft_platform::approvals::is_waiting(&error);
        // Without a stored call there is nothing to wait for.
        let status = if waits { StatusCode::ACCEPTED } else { status(error.code) };
        let approval =
            error.details.as_ref().and_then(|details| details.get("approval_id")).filter(|_| waits);
        let approval_id = approval.and_then(Value::as_str).map(str::to_owned);
        let model_text =
            error.of_call.then(|| model_text(error.for_model.as_deref().unwrap_or(&error.message)));
        let limit = rate_limit(error.code, error.details.as_deref());
        let body = ErrorBody {
            status: if waits { ErrorStatus::AwaitingApproval } else { ErrorStatus::Error },
            ok: error.of_call.then_some(false),
            error: ErrorDetail {
                code: error.code,
                message: error.message,
                retryable: error.of_call.then_some(error.retryable),
                details: error.details.map(|details| *details),
                model_text,
            },
            call_id: error.of_call.then_some(error.call_id),
            approval_url: approval_id.as_ref().map(|id| format!("/api/approvals/{id}")),
            approval_id,
            request_id: haft_platform::request_id::current(),
        };
        let mut response = (status, Json(body)).into_response();
        // Read by the audit log.
        response.extensions_mut().insert(error.code);
        if let Some(role) = error.required_role {
            response.extensions_mut().insert(RequiredRole(role));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        set_retry_after(&mut response, error.retry_after, limit);
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
