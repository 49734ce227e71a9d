//! What went wrong with a server, in words for people: rmcp's own name types and say little.

use std::error::Error;
use std::fmt::Display;

use haft_core::outcome::{CallError, ErrorCode};
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

/// Says why a server that was spoken to did not answer.
pub(super) fn of_request(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => deepest(error.error.as_ref()),
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
