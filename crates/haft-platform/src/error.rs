//! The errors of requests and changes: a stable code, a message, and details. haft-server gives them a status.

use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::page::PageTokenError;
use haft_core::problem::{Problem, join};
use haft_core::token::Role;
use haft_definition::dialect;
use haft_mcp::client::OAuthError;
use haft_runtime::registry::ResolveError;
use serde_json::{Value, json};

use crate::policy::LoadPolicyError;

/// How long a client waits before it repeats a change that found the store busy.
const BUSY_DELAY: Duration = Duration::from_secs(5);

/// The error of a request or a change.
#[derive(Debug)]
pub struct ServiceError {
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
    /// The role that the request needs, if that is what it lacks.
    pub required_role: Option<Role>,
}

impl ServiceError {
    /// Creates an error.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
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
            required_role: None,
        }
    }

    /// Creates an `invalid_request` error.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// Creates a `not_found` error; `kind` is what was not found.
    pub fn not_found(kind: &str, key: &str) -> Self {
        let message = format!("{kind} `{}` not found", haft_core::problem::excerpt(key, 120));
        Self::new(ErrorCode::NotFound, message).with_details(json!({"kind": kind}))
    }

    /// Adds machine-readable details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Marks the error as the response to a call.
    #[must_use]
    pub fn of_call(mut self) -> Self {
        self.of_call = true;
        self
    }

    /// Converts the error of something that is not a call, but fails like one.
    pub fn outside_call(error: CallError) -> Self {
        Self { of_call: false, ..error.into() }
    }

    /// Creates an `invalid_definition` error that lists all problems.
    pub fn invalid_definition(problems: &[Problem]) -> Self {
        let (warnings, errors): (Vec<Problem>, Vec<Problem>) =
            problems.iter().cloned().partition(is_ignored_field);
        let mut details = json!({"problems": errors});
        if let Value::Object(map) = &mut details
            && !warnings.is_empty()
        {
            map.insert("warnings".to_owned(), json!(warnings));
        }
        Self::new(ErrorCode::InvalidDefinition, join(&errors)).with_details(details)
    }

    /// Returns the listed problems, or the message as one problem.
    pub fn problems(&self) -> Vec<Problem> {
        let listed = self.details.as_ref().and_then(|details| details.get("problems")).cloned();
        let listed: Vec<Problem> =
            listed.and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default();
        if listed.is_empty() {
            vec![Problem::new("", self.code.as_str(), self.message.clone())]
        } else {
            listed
        }
    }

    /// Creates an `invalid_request` error that lists the problems of policy rules.
    pub fn invalid_policy(problems: &[Problem]) -> Self {
        Self::bad_request(join(problems)).with_details(json!({"problems": problems}))
    }
}

/// Returns whether a problem is an unknown field, which is ignored and therefore a warning.
pub fn is_ignored_field(problem: &Problem) -> bool {
    problem.code == dialect::UNKNOWN_FIELD
}

/// Converts the error of a change into the error of the call that requested it.
pub fn call_error(error: ServiceError) -> CallError {
    let converted = CallError::new(error.code, error.message);
    match (error.details, error.required_role) {
        (Some(details), _) => converted.with_details(*details),
        (None, Some(role)) => converted.with_details(json!({"required_role": role.as_str()})),
        (None, None) => converted,
    }
}

impl From<StoreError> for ServiceError {
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

impl From<CallError> for ServiceError {
    fn from(error: CallError) -> Self {
        if error.code == ErrorCode::Internal || error.code == ErrorCode::StoreUnavailable {
            tracing::error!(error = %error, "internal error during a call");
            let hidden = Self::new(error.code, error.for_model.unwrap_or_default());
            // The error decides: a tool that ran must not be retried because its record is missing.
            return Self { of_call: true, retryable: error.retryable, call_id: error.call_id, ..hidden };
        }
        let CallError { code, message, details, retryable, retry_after, call_id, for_model } = error;
        let required_role = required_role(code, details.as_deref());
        // The pipeline rejects a call with this code only if the tool does not exist.
        let tool_missing = || (code == ErrorCode::NotFound).then(|| json!({"kind": "tool"}));
        let details = details.or_else(|| tool_missing().map(Box::new));
        Self {
            code,
            message,
            details,
            of_call: true,
            retryable,
            retry_after,
            call_id,
            for_model,
            required_role,
        }
    }
}

/// Returns the role that a call lacked.
fn required_role(code: ErrorCode, details: Option<&Value>) -> Option<Role> {
    details.filter(|_| code == ErrorCode::Forbidden)?.get("required_role")?.as_str().and_then(Role::parse)
}

impl From<ResolveError> for ServiceError {
    fn from(error: ResolveError) -> Self {
        Self { of_call: false, ..CallError::from(error).into() }
    }
}

impl From<NameError> for ServiceError {
    fn from(error: NameError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<PageTokenError> for ServiceError {
    fn from(error: PageTokenError) -> Self {
        Self::new(ErrorCode::InvalidPageToken, error.to_string())
    }
}

impl From<LoadPolicyError> for ServiceError {
    fn from(error: LoadPolicyError) -> Self {
        match error {
            LoadPolicyError::Invalid(error) => Self::invalid_policy(&error.problems),
            LoadPolicyError::Store(error) => error.into(),
            LoadPolicyError::Task(error) => {
                tracing::error!(%error, "failed to compile the policy rules");
                Self::new(ErrorCode::Internal, "an internal error occurred; see the server log")
            }
        }
    }
}

impl From<OAuthError> for ServiceError {
    fn from(error: OAuthError) -> Self {
        let code = match &error {
            OAuthError::NeedsLogin | OAuthError::Unreachable { .. } => ErrorCode::Network,
            OAuthError::Metadata(_) | OAuthError::NoAuthorizationEndpoint | OAuthError::Refused { .. } => {
                ErrorCode::InvalidResponse
            }
            OAuthError::UnknownState | OAuthError::Denied(_) | OAuthError::Configuration(_) => {
                ErrorCode::InvalidRequest
            }
            OAuthError::Store(_) => ErrorCode::StoreUnavailable,
        };
        Self::new(code, error.to_string())
    }
}
