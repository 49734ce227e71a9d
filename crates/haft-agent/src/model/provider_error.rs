//! Classifies the errors of providers, whether they are statuses or events of a stream.

use std::time::Duration;

use haft_core::problem::excerpt;
use serde_json::Value;

use super::error::{Failure, ModelErrorKind};

/// Words in an error about the size of the context window. Most providers have no code for it.
const CONTEXT_WORDS: [&str; 9] = [
    "context_length",
    "context length",
    "context window",
    "maximum context",
    "context size",
    "prompt is too long",
    "too many tokens",
    "input is too long",
    "exceeds the maximum number of tokens",
];

/// Classifies a response with a status that is not a success.
pub(super) fn from_status(status: u16, body: &str, retry_after: Option<Duration>) -> Failure {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let report = parsed.as_ref().map(Report::read).unwrap_or_default();
    let is_page = body.trim_start().starts_with('<');
    let detail = match (&report.message, is_page) {
        (Some(message), _) => message.clone(),
        (None, true) => format!("an HTML page with status {status}"),
        (None, false) if body.trim().is_empty() => format!("status {status}"),
        (None, false) => format!("status {status}: {}", excerpt(body.trim(), 300)),
    };
    let kind = report.kind(Some(status), retry_after.or(report.retry_after)).unwrap_or(match status {
        300..=399 => ModelErrorKind::Redirected,
        500..=599 => ModelErrorKind::Server { status },
        _ => ModelErrorKind::BadRequest,
    });
    Failure::new(kind, detail)
}

/// Classifies the error in an event or in a response with a success status.
pub(super) fn from_event(error: &Value) -> Failure {
    let report = Report::read(error);
    let status = report.status;
    let kind = report.kind(status, report.retry_after).unwrap_or(match status {
        Some(status @ 500..=599) => ModelErrorKind::Server { status },
        Some(400..=499) => ModelErrorKind::BadRequest,
        _ => ModelErrorKind::Server { status: 500 },
    });
    let detail = report.message.unwrap_or_else(|| excerpt(&error.to_string(), 300));
    Failure::new(kind, detail)
}

/// What an error body says, in the form of any provider.
#[derive(Default)]
struct Report {
    message: Option<String>,
    /// `type`, `code`, `status` and the reasons of details, in lower case.
    codes: Vec<String>,
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Report {
    fn read(body: &Value) -> Self {
        // Gemini streams its error in a list.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let mut report = Self::default();
        let message = match error {
            Value::String(text) => Some(text.as_str()),
            other => ["message", "detail", "error"].iter().find_map(|key| other.get(key)?.as_str()),
        };
        report.message = message.map(str::to_owned).filter(|text| !text.trim().is_empty());
        for key in ["type", "code", "status"] {
            match error.get(key) {
                Some(Value::String(code)) => report.codes.push(code.to_ascii_lowercase()),
                Some(Value::Number(number)) => {
                    let status = number.as_u64().and_then(|number| u16::try_from(number).ok());
                    report.status = status.or(report.status);
                }
                _ => {}
            }
        }
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten().take(20) {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                report.codes.push(reason.to_ascii_lowercase());
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                report.retry_after = haft_core::duration::parse(delay, Duration::from_secs(1)).ok();
            }
        }
        report
    }

    fn has(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    /// Classifies by the codes of the providers first, then by the status.
    fn kind(&self, status: Option<u16>, retry_after: Option<Duration>) -> Option<ModelErrorKind> {
        let text = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        let about_context = || CONTEXT_WORDS.iter().any(|words| text.contains(words));
        if self.has(&["context_length_exceeded", "exceed_context_size_error", "request_too_large"]) {
            return Some(ModelErrorKind::ContextTooLong);
        }
        if self.has(&["insufficient_quota", "billing_error", "billing_hard_limit_reached"]) {
            return Some(ModelErrorKind::Quota);
        }
        if self.has(&["content_filter", "content_policy_violation", "moderation_blocked"]) {
            return Some(ModelErrorKind::ContentFilter);
        }
        if self.has(&["api_key_invalid", "invalid_api_key", "authentication_error", "permission_error"]) {
            return Some(ModelErrorKind::Auth);
        }
        if self.has(&["overloaded_error", "unavailable", "server_is_overloaded", "slow_down"]) {
            return Some(ModelErrorKind::Overloaded { retry_after });
        }
        if self.has(&["rate_limit_error", "rate_limit_exceeded", "resource_exhausted"]) {
            return Some(ModelErrorKind::RateLimited { retry_after });
        }
        match status {
            Some(401 | 403) => Some(ModelErrorKind::Auth),
            Some(402) => Some(ModelErrorKind::Quota),
            Some(404) => Some(ModelErrorKind::NotFound),
            Some(413) => Some(ModelErrorKind::ContextTooLong),
            Some(429) => Some(ModelErrorKind::RateLimited { retry_after }),
            Some(408 | 503 | 529) => Some(ModelErrorKind::Overloaded { retry_after }),
            Some(400 | 422 | 500) | None if about_context() => Some(ModelErrorKind::ContextTooLong),
            None if self.has(&["invalid_request_error", "invalid_prompt"]) => {
                Some(ModelErrorKind::BadRequest)
            }
            None if self.has(&["not_found_error"]) => Some(ModelErrorKind::NotFound),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_providers() {
        let openai =
            r#"{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
        let quota = r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        let anthropic = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let long = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"}}"#;
        let gemini = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        let slow = r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34s"}]}}"#;
        for (status, body, expected) in [
            (401, "", "auth: status 401"),
            (400, openai, "context_too_long: m"),
            (429, quota, "quota: m"),
            (529, anthropic, "overloaded: Overloaded"),
            (400, long, "context_too_long: prompt is too long: 9 tokens"),
            (400, gemini, "auth: API key not valid."),
            (429, slow, "rate_limited: m"),
            (404, r#"{"error":"model 'x' not found"}"#, "not_found: model 'x' not found"),
            (500, "<html><body>Bad", "server: an HTML page with status 500"),
            (302, "", "redirected: status 302"),
            (418, "short and stout", "bad_request: status 418: short and stout"),
            (400, r#"{"detail":"no such field"}"#, "bad_request: no such field"),
        ] {
            let failure = from_status(status, body, None);
            assert_eq!(format!("{}: {}", failure.kind.as_str(), failure.detail), expected, "{body}");
        }
        let wait = Duration::from_secs(34);
        assert_eq!(
            from_status(429, slow, None).kind,
            ModelErrorKind::RateLimited { retry_after: Some(wait) }
        );
    }

    #[test]
    fn errors_in_streams() {
        for (event, expected) in [
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "overloaded"),
            (r#"{"error":{"code":502,"message":"Provider disconnected"}}"#, "server"),
            (r#"{"error":{"code":"server_error","message":"x"}}"#, "server"),
            (r#"{"error":{"type":"invalid_request_error","message":"x"}}"#, "bad_request"),
            (r#"{"error":"llama runner exited"}"#, "server"),
            (r#"{"code":"rate_limit_exceeded","message":"x"}"#, "rate_limited"),
            ("{}", "server"),
        ] {
            let failure = from_event(&serde_json::from_str(event).unwrap());
            assert_eq!(failure.kind.as_str(), expected, "{event}");
        }
    }
}
