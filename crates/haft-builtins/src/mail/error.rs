//! Errors of the connection to the mail server.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_executors::egress::SendError;
use lettre::transport::smtp::Error;

use serde_json::json;

use super::account::TlsMode;

/// The number of rejected recipients that are listed with the server's reply.
const MAX_LISTED: usize = 5;

/// The message for the model if the server is too slow.
pub(super) const TIMED_OUT: &str = "the mail server did not respond in time";

/// The server's name cannot be resolved, or its addresses are not allowed.
pub(super) fn resolve_error(error: SendError) -> CallError {
    match error {
        SendError::Denied(denied) => {
            denied.to_error().for_model("connections to the mail server are not allowed")
        }
        SendError::Connect(why) | SendError::Disconnected(why) | SendError::Redirect(why) => {
            CallError::new(ErrorCode::Network, format!("cannot connect to the mail server: {why}"))
                .for_model("cannot connect to the mail server")
        }
    }
}

/// No address of the server accepts a connection.
pub(super) fn connect_error(error: &io::Error) -> CallError {
    let (code, for_model) = match error.kind() {
        io::ErrorKind::TimedOut => (ErrorCode::Timeout, TIMED_OUT),
        _ => (ErrorCode::Network, "the connection to the mail server failed"),
    };
    let message = format!("cannot connect to the mail server: {error}");
    CallError::new(code, message).for_model(for_model).retryable(true)
}

/// A step of the SMTP session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    Encrypt,
    LogIn,
    Send,
}

impl Step {
    /// Returns what the server rejected, and what failed.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Connect => ("the connection", "cannot connect to the mail server"),
            Self::Encrypt => ("STARTTLS", "cannot encrypt the connection"),
            Self::LogIn => ("the login", "cannot log in"),
            Self::Send => ("the message", "cannot send the message"),
        }
    }
}

/// A step of the SMTP session failed.
pub(super) fn step_error(step: Step, error: &Error) -> CallError {
    let why = reply(error);
    let (rejected, failure) = step.words();
    if let Some(code) = error.status() {
        let message = format!("the mail server rejected {rejected}: {code} {why}");
        let error = CallError::new(ErrorCode::ExecutionFailed, message).retryable(error.is_transient());
        // The model can correct a recipient or the content, but not the login.
        return match step {
            Step::LogIn => error.for_model("the mail server rejected the login"),
            Step::Connect | Step::Encrypt | Step::Send => error,
        };
    }
    let message = format!("{failure}: {why}");
    // The client lacks a feature, so a retry does not help.
    if error.is_client() {
        let error = CallError::new(ErrorCode::ExecutionFailed, message).retryable(false);
        return match step {
            Step::LogIn => error.for_model("the mail server offers no supported login method"),
            Step::Connect | Step::Encrypt | Step::Send => error,
        };
    }
    if error.is_tls() || is_invalid_tls(error) {
        let hint = "; set `SMTP_TLS` to `tls` if the port uses TLS from the start, otherwise to `starttls`";
        let is_plain_text = step == Step::Connect && message.contains("corrupt message");
        let hint = if is_plain_text { hint } else { "" };
        return CallError::new(ErrorCode::Network, message + hint)
            .for_model("no trusted TLS connection to the mail server could be established")
            .retryable(false);
    }
    let (code, for_model) = if error.is_timeout() {
        (ErrorCode::Timeout, TIMED_OUT)
    } else {
        (ErrorCode::Network, "the connection to the mail server failed")
    };
    CallError::new(code, message).for_model(for_model).retryable(step != Step::Send)
}

/// A recipient that the server rejected.
pub(super) struct RejectedRecipient {
    pub(super) address: String,
    pub(super) error: Error,
}

/// The server rejected some recipients. The message is then sent to nobody: after a partial delivery it could not be
/// sent again.
pub(super) fn recipients_error(rejected: &[RejectedRecipient], total: usize) -> CallError {
    let describe = |recipient: &RejectedRecipient| {
        let (why, code) = (reply(&recipient.error), recipient.error.status());
        let code = code.map(|code| format!("{code} ")).unwrap_or_default();
        format!("`{}`: {code}{why}", excerpt(&recipient.address, 100))
    };
    let listed: Vec<String> = rejected.iter().take(MAX_LISTED).map(describe).collect();
    let more = match rejected.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let others = if rejected.len() < total { "; the message was not sent to the others either" } else { "" };
    let noun = if rejected.len() == 1 { "recipient" } else { "recipients:" };
    let message = format!("the mail server rejected the {noun} {}{more}{others}", listed.join("; "));
    let addresses: Vec<&str> = rejected.iter().map(|recipient| recipient.address.as_str()).collect();
    CallError::new(ErrorCode::ExecutionFailed, message)
        .retryable(rejected.iter().all(|recipient| recipient.error.is_transient()))
        .with_details(json!({"refused": addresses, "sent": false}))
}

/// Returns the reply of the server, shortened.
fn reply(error: &Error) -> String {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    excerpt(&why, 300)
}

/// Returns whether the server sent invalid TLS data or an untrusted certificate.
fn is_invalid_tls(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::InvalidData) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The server did not send a greeting.
pub(super) fn greeting_timeout(tls_mode: TlsMode, waited: Duration) -> CallError {
    let hint = match tls_mode {
        TlsMode::StartTls => "; if the port uses TLS from the start, set `SMTP_TLS` to `tls`",
        TlsMode::Tls | TlsMode::None => "",
    };
    let message = format!("the mail server sent no greeting within {} seconds{hint}", waited.as_secs());
    CallError::new(ErrorCode::Timeout, message).for_model(TIMED_OUT)
}

/// The server does not support STARTTLS.
pub(super) fn starttls_unsupported(host: &str) -> CallError {
    let message = format!(
        "the mail server `{}` does not support STARTTLS, so nothing was sent; set `SMTP_TLS` to `tls` if its port uses TLS \
         from the start, or to `none` to send unencrypted",
        excerpt(host, 100)
    );
    CallError::new(ErrorCode::Network, message)
        .for_model("the mail server does not support encryption, so nothing was sent")
        .retryable(false)
}
