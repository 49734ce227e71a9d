//! Why there is no login.

use haft_runtime::egress::SendError;

/// Says why there is no login, or no token.
#[derive(Debug, thiserror::Error)]
pub enum OAuthError {
    /// Nobody has logged in, or what they got is worth nothing any more.
    #[error("it wants a login")]
    NeedsLogin,
    /// The server, or its authorisation server, says something that cannot be followed.
    #[error("{0}")]
    Metadata(String),
    /// A request came to nothing.
    #[error("{address}: {why}")]
    Unreachable {
        /// Where it went.
        address: String,
        /// What went wrong.
        why: String,
    },
    /// The authorisation server said no.
    #[error("{address} answered {status}{}{why}", if why.is_empty() { "" } else { ": " })]
    Refused {
        /// Who said so.
        address: String,
        /// The status of its answer.
        status: u16,
        /// Its reason.
        why: String,
    },
    /// The answer to a login fits no login that was begun.
    #[error("this login is not known: it was used already, took too long, or began elsewhere; begin again")]
    UnknownState,
    /// The person, or the authorisation server, did not agree.
    #[error("the login was refused: {0}")]
    Denied(String),
    /// The configuration says something that does not fit.
    #[error("{0}")]
    Configuration(String),
    /// What was got could not be kept, or what was kept could not be read.
    #[error("the login cannot be kept: {0}")]
    Store(String),
}

impl OAuthError {
    /// Tells whether the authorisation server turned the grant down, rather than could not be asked.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 401 | 403, .. })
    }

    pub(super) fn unsent(address: &str, error: SendError) -> Self {
        let why = match error {
            SendError::Denied(refused) => refused.to_string(),
            SendError::Connect(why) => format!("no connection: {why}"),
            SendError::Disconnected(why) => format!("the connection broke: {why}"),
            SendError::Redirect(why) => why,
        };
        Self::Unreachable { address: address.to_owned(), why }
    }
}
