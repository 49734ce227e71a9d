//! Errors in the shape that OpenAI clients read: `{"error": {"message", "type", "param", "code"}}`.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::catalog::StoreError;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::StepError;
use haft_core::token::Role;
use serde_json::{Value, json};

use crate::error::{self, ApiError, RequiredRole};
use haft_platform::error::ServiceError;

/// Tells the official clients whether to repeat a request. They repeat 408, 409, 429 and 5xx by themselves, which would
/// run the tools of an agent again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An error response.
#[derive(Debug)]
pub(super) struct OpenAiError {
    pub(super) status: StatusCode,
    /// The stable code.
    pub(super) code: String,
    pub(super) message: String,
    /// The field of the request.
    pub(super) param: Option<String>,
    pub(super) retryable: bool,
    pub(super) retry_after: Option<Duration>,
    /// The role that the request needs, if that is what it lacks.
    pub(super) required_role: Option<Role>,
}

impl OpenAiError {
    /// Creates an error about a field of the request.
    pub(super) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let param = param.into();
        let message = format!("`{param}`: {}", message.into());
        Self { param: Some(param), ..Self::bad_request(message) }
    }

    /// Creates an error about the request as a whole.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::from(ApiError::bad_request(message))
    }

    /// Creates an error about a field or a value that haft does not support.
    pub(super) fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: "unsupported_parameter".to_owned(), ..Self::invalid(param, message) }
    }

    /// Creates the error of a model that does not exist.
    pub(super) fn no_model(name: &str) -> Self {
        let name = haft_core::problem::excerpt(name, 120);
        let message = format!("the model `{name}` does not exist: `model` is the slug of an agent");
        Self {
            status: StatusCode::NOT_FOUND,
            code: "model_not_found".to_owned(),
            param: Some("model".to_owned()),
            ..Self::bad_request(message)
        }
    }

    /// Creates the error of a run that failed.
    pub(super) fn failed_run(error: &StepError) -> Self {
        let code = ErrorCode::ALL.iter().copied().find(|code| code.as_str() == error.code);
        let status = match code {
            Some(ErrorCode::RateLimited) => StatusCode::TOO_MANY_REQUESTS,
            Some(ErrorCode::Overloaded | ErrorCode::StoreUnavailable) => StatusCode::SERVICE_UNAVAILABLE,
            Some(ErrorCode::Network | ErrorCode::HttpStatus | ErrorCode::InvalidResponse) => {
                StatusCode::BAD_GATEWAY
            }
            Some(ErrorCode::Timeout) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let (code, message) = (error.code.clone(), error.message.clone());
        // Tools of the run may have had effects.
        Self { status, code, message, param: None, retryable: false, retry_after: None, required_role: None }
    }

    /// Returns the kind of the error, as OpenAI names it.
    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            StatusCode::FORBIDDEN => "permission_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// Returns the body.
    pub(super) fn body(&self) -> Value {
        let Self { message, code, param, .. } = self;
        json!({"error": {"message": message, "type": self.kind(), "param": param, "code": code}})
    }
}

impl From<ApiError> for OpenAiError {
    fn from(error: ApiError) -> Self {
        error.0.into()
    }
}

impl From<ServiceError> for OpenAiError {
    fn from(error: ServiceError) -> Self {
        let code = match error.code {
            ErrorCode::Unauthorized => "invalid_api_key",
            ErrorCode::RateLimited => "rate_limit_exceeded",
            code => code.as_str(),
        };
        Self {
            status: error::status(error.code),
            code: code.to_owned(),
            message: error.message,
            param: None,
            retryable: error.retryable,
            retry_after: error.retry_after,
            required_role: error.required_role,
        }
    }
}

impl From<CallError> for OpenAiError {
    fn from(error: CallError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<StoreError> for OpenAiError {
    fn from(error: StoreError) -> Self {
        ServiceError::from(error).into()
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if !self.retryable {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        // Read by the edge, which tells applications how to ask for it.
        if let Some(role) = self.required_role {
            response.extensions_mut().insert(RequiredRole(role));
        }
        error::set_retry_after(&mut response, self.retry_after, None);
        response
    }
}
