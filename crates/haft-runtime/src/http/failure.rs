//! What failed requests become.

use std::time::Duration;

use haft_core::Timestamp;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::secret::{Secret, scrub_text};
use http::StatusCode;
use http::header::RETRY_AFTER;
use serde_json::json;

use super::response::{self, Answer, BodyError};
use crate::egress::SendError;

/// How much of an error answer is read.
const EXCERPT_BYTES: usize = 8 * 1024;

/// How much of it is kept for programs, and how much the model reads.
const DETAILS_CHARACTERS: usize = 2000;
const MODEL_CHARACTERS: usize = 500;

/// The longest wait that another side may ask for.
const MAX_WAIT: Duration = Duration::from_mins(10);

/// When a failed request may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Safety {
    /// Everything before this request may be repeated, so that one which was not sent may be sent again.
    pub(super) unsent: bool,
    /// This request too may be repeated after it was sent.
    pub(super) sent: bool,
}

/// The request did not lead to an answer; `shown` is its method and masked URL.
pub(super) fn send_failure(error: &SendError, shown: &str, safety: Safety) -> CallError {
    match error {
        SendError::Refused(refused) if refused.is_by_redirect() => {
            let error = refused.to_error();
            CallError { message: format!("{shown}: {}", error.message), ..error }
        }
        SendError::Refused(refused) => refused.to_error(),
        SendError::Connect(why) => network(shown, why, "the service could not be reached", safety.unsent),
        SendError::Broken(why) => network(shown, why, "the connection to the service broke", safety.sent),
        SendError::Redirect(why) => CallError::new(ErrorCode::InvalidResponse, format!("{shown}: {why}"))
            .for_model("the service redirected the request in a way that cannot be followed"),
    }
}

fn network(shown: &str, why: &str, for_model: &str, retryable: bool) -> CallError {
    CallError::new(ErrorCode::Network, format!("{shown}: {why}")).for_model(for_model).retryable(retryable)
}

/// The answer did not come in time.
pub(super) fn timeout(shown: &str, limit: Duration, safety: Safety) -> CallError {
    let limit = haft_core::duration::format(limit);
    CallError::new(ErrorCode::Timeout, format!("{shown}: no complete answer within {limit}"))
        .for_model(format!("the service did not answer within {limit}"))
        .retryable(safety.sent)
}

/// The answer did not come before the call was over.
pub(super) fn too_late(shown: &str, safety: Safety) -> CallError {
    CallError::new(ErrorCode::Timeout, format!("{shown}: no complete answer within the time of the call"))
        .for_model("the service did not answer in time")
        .retryable(safety.sent)
}

/// The body of an answer could not be read.
pub(super) fn body_failure(error: &BodyError, shown: &str, limit: u64, safety: Safety) -> CallError {
    match error {
        BodyError::TooLarge => {
            let text = format!("the answer is larger than {limit} bytes");
            CallError::new(
                ErrorCode::TooLarge,
                format!("{shown}: {text}; raise `execution.limits.max_response_bytes` to allow it"),
            )
            .for_model(text)
        }
        BodyError::Garbled(why) => {
            CallError::new(ErrorCode::InvalidResponse, format!("{shown}: the answer is damaged: {why}"))
                .for_model("the service sent a damaged answer")
        }
        BodyError::Packed(name) => {
            let text =
                format!("the answer is compressed as `{name}`, which was not offered; only gzip is read");
            CallError::new(ErrorCode::InvalidResponse, format!("{shown}: {text}")).for_model(text)
        }
        BodyError::Broken(why) => network(
            shown,
            &format!("the answer broke off: {why}"),
            "the connection to the service broke",
            safety.sent,
        ),
    }
}

/// The status is not a success.
pub(super) async fn status_failure(
    mut response: reqwest::Response,
    shown: &str,
    safety: Safety,
    now: Timestamp,
    secrets: &[Secret],
) -> CallError {
    let status = response.status();
    let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = wait.and_then(|text| parse_retry_after(text, now));
    let content_type = response::content_type(&response);
    let bytes = response::read_start(&mut response, EXCERPT_BYTES).await;
    let answer = Answer { content_type, bytes, bodiless: false };
    let mut error = status_error(status, &answer, shown, secrets)
        .retryable(safety.sent && (status.as_u16() == 429 || status.is_server_error()));
    error.retry_after = retry_after;
    error
}

/// The status of an answer whose beginning was read is not a success.
pub(super) fn status_error(
    status: StatusCode,
    answer: &Answer,
    shown: &str,
    secrets: &[Secret],
) -> CallError {
    let mut body = response::text(answer);
    scrub_text(&mut body, secrets);
    let name = status_name(status);
    let mut for_model = format!("the service answered {name}");
    if !response::is_html(&answer.content_type) && !body.trim().is_empty() {
        for_model = format!("{for_model}: {}", excerpt(body.trim(), MODEL_CHARACTERS));
    }
    CallError::new(ErrorCode::HttpStatus, format!("{shown} answered {name}"))
        .for_model(for_model)
        .with_details(json!({"status": status.as_u16(), "body": excerpt(&body, DETAILS_CHARACTERS)}))
}

pub(super) fn status_name(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Reads seconds or an HTTP date, and bounds what the other side may ask for.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let wait = if let Ok(seconds) = text.parse::<u64>() {
        Duration::from_secs(seconds)
    } else {
        let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO)
    };
    Some(wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("3", Some(3)),
            (" 0 ", Some(0)),
            ("99999999", Some(600)),
            ("Sun, 15 Nov 2026 12:00:30 GMT", Some(30)),
            ("Sun, 15 Nov 2026 11:00:00 GMT", Some(0)),
            ("Sun, 15 Nov 2099 11:00:00 GMT", Some(600)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse_retry_after(text, now), expected.map(Duration::from_secs), "{text}");
        }
    }
}
