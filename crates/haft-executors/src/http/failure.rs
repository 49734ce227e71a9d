//! Converts failed requests to errors.

use std::time::Duration;

use haft_core::Timestamp;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::secret::{Secret, scrub_text};
use haft_runtime::retry::parse_retry_after;
use http::StatusCode;
use http::header::RETRY_AFTER;
use serde_json::json;

use super::response::{self, BodyError, ResponseBody};
use crate::egress::SendError;

/// How much of an error response is read.
const EXCERPT_BYTES: usize = 8 * 1024;

/// How much of it goes to the details, and how much to the model.
const DETAILS_CHARACTERS: usize = 2000;
const MODEL_CHARACTERS: usize = 500;

/// Whether a failed request may be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetrySafety {
    /// It may be retried if it was not sent: all earlier requests may be repeated.
    pub(super) unsent: bool,
    /// It may be retried even after it was sent.
    pub(super) sent: bool,
}

/// Converts an error of sending; `shown` is the method and the masked URL.
pub(super) fn send_failure(error: &SendError, shown: &str, safety: RetrySafety) -> CallError {
    match error {
        SendError::Denied(denied) if denied.is_by_redirect() => {
            let error = denied.to_error();
            CallError { message: format!("{shown}: {}", error.message), ..error }
        }
        SendError::Denied(denied) => denied.to_error(),
        SendError::Connect(reason) => network(shown, reason, "the service is unreachable", safety.unsent),
        SendError::Disconnected(reason) => {
            network(shown, reason, "the connection to the service was lost", safety.sent)
        }
        SendError::Redirect(reason) => {
            CallError::new(ErrorCode::InvalidResponse, format!("{shown}: {reason}"))
                .for_model("the service sent an invalid redirect")
        }
    }
}

fn network(shown: &str, reason: &str, for_model: &str, retryable: bool) -> CallError {
    CallError::new(ErrorCode::Network, format!("{shown}: {reason}")).for_model(for_model).retryable(retryable)
}

/// The request timed out.
pub(super) fn timeout(shown: &str, limit: Duration, safety: RetrySafety) -> CallError {
    let limit = haft_core::duration::format(limit);
    CallError::new(ErrorCode::Timeout, format!("{shown}: no complete response within {limit}"))
        .for_model(format!("the service did not respond within {limit}"))
        .retryable(safety.sent)
}

/// The call timed out before the response was complete.
pub(super) fn call_timeout(shown: &str, safety: RetrySafety) -> CallError {
    CallError::new(
        ErrorCode::Timeout,
        format!("{shown}: no complete response before the timeout of the call"),
    )
    .for_model("the service did not respond in time")
    .retryable(safety.sent)
}

/// The body of a response could not be read.
pub(super) fn body_failure(error: &BodyError, shown: &str, limit: u64, safety: RetrySafety) -> CallError {
    match error {
        BodyError::TooLarge => {
            let text = format!("the response exceeds the limit of {limit} bytes");
            CallError::new(
                ErrorCode::TooLarge,
                format!("{shown}: {text}; raise `execution.limits.max_response_bytes`"),
            )
            .for_model(text)
        }
        BodyError::Corrupt(reason) => {
            CallError::new(ErrorCode::InvalidResponse, format!("{shown}: the response is corrupt: {reason}"))
                .for_model("the service sent a corrupt response")
        }
        BodyError::UnsupportedEncoding(name) => {
            let text =
                format!("the response has the unsupported content encoding `{name}`; only gzip is supported");
            CallError::new(ErrorCode::InvalidResponse, format!("{shown}: {text}")).for_model(text)
        }
        BodyError::Disconnected(reason) => network(
            shown,
            &format!("the response was cut off: {reason}"),
            "the connection to the service was lost",
            safety.sent,
        ),
    }
}

/// The status is not a success.
pub(super) async fn status_failure(
    mut response: reqwest::Response,
    shown: &str,
    safety: RetrySafety,
    now: Timestamp,
    secrets: &[Secret],
) -> CallError {
    let status = response.status();
    let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = wait.and_then(|text| parse_retry_after(text, now));
    let content_type = response::content_type(&response);
    let bytes = response::read_start(&mut response, EXCERPT_BYTES).await;
    let body = ResponseBody { content_type, bytes, bodiless: false };
    let mut error = status_error(status, &body, shown, secrets)
        .retryable(safety.sent && (status.as_u16() == 429 || status.is_server_error()));
    error.retry_after = retry_after;
    error
}

/// The status is not a success, and the beginning of the body was read.
pub(super) fn status_error(
    status: StatusCode,
    body: &ResponseBody,
    shown: &str,
    secrets: &[Secret],
) -> CallError {
    let mut text = response::text(body);
    scrub_text(&mut text, secrets);
    let name = status_name(status);
    let mut for_model = format!("the service returned {name}");
    if !response::is_html(&body.content_type) && !text.trim().is_empty() {
        for_model = format!("{for_model}: {}", excerpt(text.trim(), MODEL_CHARACTERS));
    }
    CallError::new(ErrorCode::HttpStatus, format!("{shown} returned {name}"))
        .for_model(for_model)
        .with_details(json!({"status": status.as_u16(), "body": excerpt(&text, DETAILS_CHARACTERS)}))
}

pub(super) fn status_name(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}
