//! What went wrong with a server, in words for people: rmcp's own name types and say little.

use std::error::Error;
use std::fmt::Display;

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::clients::not_connected;
use super::http::Failed;

/// Says why a server could not be spoken to.
pub(super) fn of_opening(error: &ClientInitializeError) -> String {
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        other => other,
    };
    if matches!(error, ClientInitializeError::ConnectionClosed(_)) {
        return "it closed the connection before it had answered".to_owned();
    }
    // What went wrong in the transport is wrapped in the name of its type.
    match error {
        ClientInitializeError::TransportError { error, .. } => deepest(error.error.as_ref()),
        other => deepest(other),
    }
}

/// Says why a server cannot be spoken to whose version of the protocol nobody knows.
pub(super) fn of_version(version: &ProtocolVersion) -> Option<String> {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    if known.contains(version) {
        return None;
    }
    let names: Vec<&str> = known.iter().map(ProtocolVersion::as_str).collect();
    let version = excerpt(version.as_str(), 40);
    Some(format!("it speaks version `{version}` of the protocol; supported are {}", names.join(", ")))
}

/// Says why a server that was spoken to did not answer.
pub(super) fn of_request(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => deepest(error.error.as_ref()),
        ServiceError::TransportClosed => "it closed the connection".to_owned(),
        ServiceError::UnexpectedResponse => "its answer is not one to what it was asked".to_owned(),
        ServiceError::Timeout { timeout } => {
            format!("it did not answer within {} seconds", timeout.as_secs())
        }
        ServiceError::Cancelled { .. } => "the request was cancelled".to_owned(),
        ServiceError::McpError(error) => {
            format!("it answered with the error {}: {}", error.code.0, error.message)
        }
        other => other.to_string(),
    }
}

/// Makes the error of a call that a server did not answer as it should.
pub(super) fn of_call(server: &dyn Display, error: &ServiceError) -> CallError {
    let why = of_request(error);
    let senseless = |code| {
        CallError::new(code, format!("the MCP server `{server}`: {why}"))
            .for_model("the server of this tool answered in a way that makes no sense")
    };
    match error {
        ServiceError::McpError(error) => {
            CallError::new(ErrorCode::ExecutionFailed, error.message.to_string())
        }
        ServiceError::TransportSend(sending) => {
            match sending.error.downcast_ref::<StreamableHttpError<Failed>>() {
                Some(StreamableHttpError::AuthRequired(_)) => {
                    let why = "it wants a login: log in to it, or put a token into its headers";
                    not_connected(server, why).retryable(false)
                }
                Some(StreamableHttpError::Client(failed)) if !failed.sent => not_connected(server, &why),
                Some(StreamableHttpError::UnexpectedServerResponse(text))
                    if text.starts_with("HTTP status 2") =>
                {
                    senseless(ErrorCode::InvalidResponse)
                }
                Some(StreamableHttpError::UnexpectedServerResponse(text))
                    if ["HTTP status 429", "HTTP status 503"].iter().any(|busy| text.starts_with(busy)) =>
                {
                    CallError::new(ErrorCode::HttpStatus, format!("the MCP server `{server}` is busy: {why}"))
                        .for_model("the server of this tool is busy; try again later")
                        .retryable(true)
                }
                Some(StreamableHttpError::UnexpectedServerResponse(_)) => senseless(ErrorCode::HttpStatus),
                Some(StreamableHttpError::Deserialize(_)) => senseless(ErrorCode::InvalidResponse),
                _ => broke(server, &why),
            }
        }
        ServiceError::TransportClosed => broke(server, &why),
        _ => senseless(ErrorCode::InvalidResponse),
    }
}

fn broke(server: &dyn Display, why: &str) -> CallError {
    CallError::new(ErrorCode::Network, format!("the connection to the MCP server `{server}` broke: {why}"))
        // It may have run.
        .retryable(false)
        .for_model("the connection to the server of this tool broke")
}

/// The outer layers of these errors say only that something failed.
fn deepest(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(inner) = at {
        text = inner.to_string();
        at = inner.source();
    }
    text.strip_prefix("Client error: ").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::ErrorData;

    use super::*;

    #[test]
    fn words_name_no_types() {
        for (error, expected) in [
            (
                ServiceError::Timeout { timeout: Duration::from_secs(30) },
                "it did not answer within 30 seconds",
            ),
            (ServiceError::UnexpectedResponse, "its answer is not one to what it was asked"),
            (ServiceError::TransportClosed, "it closed the connection"),
            (
                ServiceError::McpError(ErrorData::invalid_params("no", None)),
                "it answered with the error -32602: no",
            ),
        ] {
            assert_eq!(of_request(&error), expected);
        }
    }

    #[test]
    fn a_version_that_nobody_knows_is_refused() {
        let version = |text: &str| -> ProtocolVersion { serde_json::from_value(text.into()).unwrap() };
        for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
            assert_eq!(of_version(&version(known)), None, "{known}");
        }
        assert_eq!(
            of_version(&version("2020-01-01")).as_deref(),
            Some(
                "it speaks version `2020-01-01` of the protocol; supported are 2024-11-05, 2025-03-26, 2025-06-18, \
                 2025-11-25, 2026-07-28"
            )
        );
    }
}
