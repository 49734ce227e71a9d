//! What goes wrong between here and the mail server.

use std::error::Error as _;
use std::io;

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_runtime::egress::SendError;
use lettre::transport::smtp::Error;

/// No address of the server may be connected to.
pub(super) fn unresolved(error: SendError) -> CallError {
    match error {
        SendError::Refused(refused) => {
            refused.to_error().for_model("the mail server is not allowed as a destination")
        }
        SendError::Connect(why) | SendError::Broken(why) | SendError::Redirect(why) => {
            CallError::new(ErrorCode::Network, format!("the mail server cannot be reached: {why}"))
                .for_model("the mail server cannot be reached")
        }
    }
}

/// No address of the server answers.
pub(super) fn unreachable(error: &io::Error) -> CallError {
    let (code, for_model) = match error.kind() {
        io::ErrorKind::TimedOut => (ErrorCode::Timeout, "the mail server did not answer in time"),
        _ => (ErrorCode::Network, "the connection to the mail server failed"),
    };
    let message = format!("could not connect to the mail server: {error}");
    CallError::new(code, message).for_model(for_model).retryable(true)
}

/// A step of the conversation failed.
pub(super) fn of_step(step: &'static str, error: &Error) -> CallError {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let why = excerpt(&why, 300);
    if let Some(code) = error.status() {
        let message = format!("the mail server refused to {step}: {code} {why}");
        let refused = CallError::new(ErrorCode::ExecutionFailed, message).retryable(error.is_transient());
        // What it says about a recipient or the content lets a model correct itself; of a login it learns nothing.
        return if step == "log in" {
            refused.for_model("the mail server refused the login")
        } else {
            refused
        };
    }
    let (code, for_model) = if error.is_tls() {
        (ErrorCode::Network, "the mail server could not be trusted")
    } else if error.is_timeout() {
        (ErrorCode::Timeout, "the mail server did not answer in time")
    } else {
        (ErrorCode::Network, "the connection to the mail server failed")
    };
    let retryable = !error.is_tls() && step != "take the message";
    CallError::new(code, format!("could not {step}: {why}")).for_model(for_model).retryable(retryable)
}

/// The server offers no encryption.
pub(super) fn no_tls(host: &str) -> CallError {
    let message = format!(
        "the mail server `{}` offers no STARTTLS, and nothing is sent in clear: set `SMTP_TLS` to `tls` where it speaks TLS from \
         the start, or to `none` to do without",
        excerpt(host, 100)
    );
    CallError::new(ErrorCode::Network, message)
        .for_model("the mail server offers no encryption, so nothing was sent")
        .retryable(false)
}
