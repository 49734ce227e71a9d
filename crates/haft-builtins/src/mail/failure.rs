//! What goes wrong between here and the mail server.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_runtime::egress::SendError;
use lettre::transport::smtp::Error;

use serde_json::json;

use super::account::Privacy;

/// How many refused recipients are told with what the server said of them.
const MAX_TOLD: usize = 5;

/// No address of the server may be connected to.
pub(super) fn unresolved(error: SendError) -> CallError {
    match error {
        SendError::Denied(refused) => {
            refused.to_error().for_model("the mail server is not allowed as a destination")
        }
        SendError::Connect(why) | SendError::Disconnected(why) | SendError::Redirect(why) => {
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

/// A step of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    Encrypt,
    LogIn,
    Send,
}

impl Step {
    /// What the server refused, and what was not possible.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Connect => ("the connection", "could not connect to the mail server"),
            Self::Encrypt => ("to encrypt the connection", "could not encrypt the connection"),
            Self::LogIn => ("the login", "could not log in"),
            Self::Send => ("the message", "could not hand the message over"),
        }
    }
}

/// A step of the conversation failed.
pub(super) fn of_step(step: Step, error: &Error) -> CallError {
    let why = reply(error);
    let (what, impossible) = step.words();
    if let Some(code) = error.status() {
        let message = format!("the mail server refused {what}: {code} {why}");
        let refused = CallError::new(ErrorCode::ExecutionFailed, message).retryable(error.is_transient());
        // What it says about a recipient or the content lets a model correct itself; of a login it learns nothing.
        return match step {
            Step::LogIn => refused.for_model("the mail server refused the login"),
            Step::Connect | Step::Encrypt | Step::Send => refused,
        };
    }
    let message = format!("{impossible}: {why}");
    // What this side cannot do, it cannot do later either.
    if error.is_client() {
        let failed = CallError::new(ErrorCode::ExecutionFailed, message).retryable(false);
        return match step {
            Step::LogIn => failed.for_model("the mail server offers no way to log in that is known here"),
            Step::Connect | Step::Encrypt | Step::Send => failed,
        };
    }
    if error.is_tls() || is_no_tls(error) {
        let hint = "; `SMTP_TLS` has to be `tls` where the port speaks TLS from the start, else `starttls`";
        let is_no_tls = step == Step::Connect && message.contains("corrupt message");
        let hint = if is_no_tls { hint } else { "" };
        return CallError::new(ErrorCode::Network, message + hint)
            .for_model("the mail server could not be trusted")
            .retryable(false);
    }
    let (code, for_model) = if error.is_timeout() {
        (ErrorCode::Timeout, "the mail server did not answer in time")
    } else {
        (ErrorCode::Network, "the connection to the mail server failed")
    };
    CallError::new(code, message).for_model(for_model).retryable(step != Step::Send)
}

/// A recipient that the server does not take.
pub(super) struct Refusal {
    pub(super) address: String,
    pub(super) error: Error,
}

/// Some recipients are not taken. Nobody got the message then: one that reached a part of them could not be sent again.
pub(super) fn refused_recipients(refusals: &[Refusal], all: usize) -> CallError {
    let told = |refusal: &Refusal| {
        let (why, code) = (reply(&refusal.error), refusal.error.status());
        let code = code.map(|code| format!("{code} ")).unwrap_or_default();
        format!("`{}`: {code}{why}", excerpt(&refusal.address, 100))
    };
    let shown: Vec<String> = refusals.iter().take(MAX_TOLD).map(told).collect();
    let more = match refusals.len().saturating_sub(MAX_TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let rest = if refusals.len() < all { "; the others did not get it either: nothing was sent" } else { "" };
    let what = if refusals.len() == 1 { "the recipient" } else { "these recipients:" };
    let message = format!("the mail server refused {what} {}{more}{rest}", shown.join("; "));
    let addresses: Vec<&str> = refusals.iter().map(|refusal| refusal.address.as_str()).collect();
    CallError::new(ErrorCode::ExecutionFailed, message)
        .retryable(refusals.iter().all(|refusal| refusal.error.is_transient()))
        .with_details(json!({"refused": addresses, "sent": false}))
}

/// What the server said, bounded.
fn reply(error: &Error) -> String {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    excerpt(&why, 300)
}

/// Tells whether what came was no TLS, or no certificate that is trusted.
fn is_no_tls(error: &Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::InvalidData) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The server does not begin.
pub(super) fn no_greeting(privacy: Privacy, waited: Duration) -> CallError {
    let hint = match privacy {
        Privacy::StartTls => "; where its port speaks TLS from the start, set `SMTP_TLS` to `tls`",
        Privacy::Tls | Privacy::None => "",
    };
    let message = format!("the mail server said nothing for {} seconds{hint}", waited.as_secs());
    CallError::new(ErrorCode::Timeout, message).for_model("the mail server did not answer in time")
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
