//! Turns rmcp's errors into messages and call errors: rmcp's own messages name types and omit causes.

use std::error::Error;
use std::fmt::Display;

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use http::StatusCode;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::clients::not_connected;
use super::http::{HttpError, REQUIRED_SCOPE};

/// Describes a failed connection.
pub(super) fn connect_message(error: &ClientInitializeError) -> String {
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        other => other,
    };
    if matches!(error, ClientInitializeError::ConnectionClosed(_)) {
        return "the server closed the connection before responding".to_owned();
    }
    // The transport wraps its error in the name of its type.
    match error {
        ClientInitializeError::TransportError { error, .. } => innermost(error.error.as_ref()),
        other => innermost(other),
    }
}

/// Describes an unsupported protocol version; `None` where it is supported.
pub(super) fn unsupported_version(version: &ProtocolVersion) -> Option<String> {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    if known.contains(version) {
        return None;
    }
    let names: Vec<&str> = known.iter().map(ProtocolVersion::as_str).collect();
    let version = excerpt(version.as_str(), 40);
    Some(format!("unsupported protocol version `{version}`; supported: {}", names.join(", ")))
}

/// Describes a failed request.
pub(super) fn request_message(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => innermost(error.error.as_ref()),
        ServiceError::TransportClosed => "the server closed the connection".to_owned(),
        ServiceError::UnexpectedResponse => "the response does not match the request".to_owned(),
        ServiceError::Timeout { timeout } => {
            format!("request timeout ({} s) exceeded", timeout.as_secs())
        }
        ServiceError::Cancelled { .. } => "the request was cancelled".to_owned(),
        ServiceError::McpError(error) => {
            format!("the server returned error {}: {}", error.code.0, error.message)
        }
        other => other.to_string(),
    }
}

/// Returns the error of a failed call.
pub(super) fn call_error(server: &dyn Display, error: &ServiceError) -> CallError {
    let why = request_message(error);
    let invalid = |code| {
        CallError::new(code, format!("MCP server `{server}`: {why}"))
            .for_model("the server of this tool returned an invalid response")
    };
    match error {
        ServiceError::McpError(error) => {
            let call_error = CallError::new(ErrorCode::ExecutionFailed, error.message.to_string());
            match &error.data {
                Some(data) if data.get(REQUIRED_SCOPE).is_some() => call_error.with_details(data.clone()),
                _ => call_error,
            }
        }
        ServiceError::TransportSend(sending) => {
            match sending.error.downcast_ref::<StreamableHttpError<HttpError>>() {
                Some(StreamableHttpError::AuthRequired(_)) => {
                    let why = "login required: log in to the server, or add a token to its headers";
                    not_connected(server, why).retryable(false)
                }
                Some(StreamableHttpError::Client(HttpError::Denied(_))) => egress_refused(server, &why),
                Some(StreamableHttpError::Client(HttpError::NotSent(_))) => not_connected(server, &why),
                Some(StreamableHttpError::SessionExpired) => {
                    not_connected(server, "it rejected the session, and a new one")
                }
                Some(StreamableHttpError::Client(HttpError::Response { status, .. })) => match *status {
                    status if status.is_success() => invalid(ErrorCode::InvalidResponse),
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                        CallError::new(ErrorCode::HttpStatus, format!("MCP server `{server}` is busy: {why}"))
                            .for_model("the server of this tool is busy; retry later")
                            .retryable(true)
                    }
                    _ => invalid(ErrorCode::HttpStatus),
                },
                Some(StreamableHttpError::UnexpectedServerResponse(_)) => invalid(ErrorCode::HttpStatus),
                Some(StreamableHttpError::Deserialize(_)) => invalid(ErrorCode::InvalidResponse),
                _ => disconnected(server, &why),
            }
        }
        ServiceError::TransportClosed => disconnected(server, &why),
        _ => invalid(ErrorCode::InvalidResponse),
    }
}

/// Returns whether a server rejected a request because it requires a login.
pub(super) fn is_login_required(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(sending) = error else { return false };
    let error = sending.error.downcast_ref::<StreamableHttpError<HttpError>>();
    matches!(error, Some(StreamableHttpError::AuthRequired(_)))
}

/// Returns the error of a call that the egress guard denied.
pub(super) fn egress_refused(server: &dyn Display, why: &str) -> CallError {
    CallError::new(ErrorCode::EgressRefused, format!("MCP server `{server}`: {why}"))
        .for_model("the server of this tool is not allowed")
}

/// Returns whether the egress guard denied a connection.
pub(super) fn is_denied(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
            is_denied(discover) || is_denied(fallback)
        }
        ClientInitializeError::TransportError { error, .. } => matches!(
            error.error.downcast_ref::<StreamableHttpError<HttpError>>(),
            Some(StreamableHttpError::Client(HttpError::Denied(_)))
        ),
        _ => false,
    }
}

/// What a failed call says about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// It responded.
    Alive,
    /// It may be gone.
    Doubtful,
    /// It cannot be reached, or the connection was lost.
    Gone,
}

/// Returns what a failed call says about its server.
pub(super) fn health(error: &ServiceError) -> Health {
    match error {
        ServiceError::McpError(_) => Health::Alive,
        ServiceError::TransportSend(sending) => {
            match sending.error.downcast_ref::<StreamableHttpError<HttpError>>() {
                // `None` is a program that closed its input.
                None | Some(StreamableHttpError::Client(HttpError::NotSent(_) | HttpError::Failed(_))) => {
                    Health::Gone
                }
                Some(StreamableHttpError::AuthRequired(_)) => Health::Alive,
                Some(StreamableHttpError::Client(HttpError::Response { status, .. }))
                    if !status.is_server_error() =>
                {
                    Health::Alive
                }
                Some(_) => Health::Doubtful,
            }
        }
        _ => Health::Doubtful,
    }
}

fn disconnected(server: &dyn Display, why: &str) -> CallError {
    CallError::new(ErrorCode::Network, format!("lost the connection to MCP server `{server}`: {why}"))
        // The call may have run.
        .retryable(false)
        .for_model("lost the connection to the server of this tool; the call may have run")
}

/// Returns the message of the innermost error: the outer ones only say that something failed.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    match error.downcast_ref::<StreamableHttpError<HttpError>>() {
        Some(StreamableHttpError::Client(error)) => error.to_string(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::ErrorData;

    use super::*;

    #[test]
    fn messages_name_no_types() {
        for (error, expected) in [
            (ServiceError::Timeout { timeout: Duration::from_secs(30) }, "request timeout (30 s) exceeded"),
            (ServiceError::UnexpectedResponse, "the response does not match the request"),
            (ServiceError::TransportClosed, "the server closed the connection"),
            (
                ServiceError::McpError(ErrorData::invalid_params("no", None)),
                "the server returned error -32602: no",
            ),
        ] {
            assert_eq!(request_message(&error), expected);
        }
    }

    #[test]
    fn unknown_versions_are_unsupported() {
        let version = |text: &str| -> ProtocolVersion { serde_json::from_value(text.into()).unwrap() };
        for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
            assert_eq!(unsupported_version(&version(known)), None, "{known}");
        }
        assert_eq!(
            unsupported_version(&version("2020-01-01")).as_deref(),
            Some(
                "unsupported protocol version `2020-01-01`; supported: 2024-11-05, 2025-03-26, 2025-06-18, \
                 2025-11-25, 2026-07-28"
            )
        );
    }
}
