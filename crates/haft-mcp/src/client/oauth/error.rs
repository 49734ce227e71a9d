//! Why a login or a token is unavailable.

use haft_executors::egress::SendError;

use crate::client::http::send_error;

/// Why a login or a token is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum OAuthError {
    /// There is no login, or it has expired.
    #[error("login required")]
    NeedsLogin,
    /// The metadata of the server or its authorization server is unusable.
    #[error("{0}")]
    Metadata(String),
    /// The authorization server has no page on which people log in.
    #[error("the authorization server has no authorization endpoint")]
    NoAuthorizationEndpoint,
    /// A request failed.
    #[error("{address}: {why}")]
    Unreachable {
        /// The address of the request.
        address: String,
        /// The cause.
        why: String,
    },
    /// The authorization server rejected a request.
    #[error("{address} returned HTTP status {status}{}{why}", if why.is_empty() { "" } else { ": " })]
    Refused {
        /// The address of the request.
        address: String,
        /// The status of the response.
        status: u16,
        /// The reason, if any.
        why: String,
    },
    /// The callback belongs to no pending login.
    #[error(
        "unknown login: already used, expired after 10 minutes, or started on another server; log in again"
    )]
    UnknownState,
    /// The person or the authorization server denied the login.
    #[error("login denied: {0}")]
    Denied(String),
    /// The configuration is invalid.
    #[error("{0}")]
    Configuration(String),
    /// The login could not be read or stored.
    #[error("failed to access the stored login: {0}")]
    Store(String),
}

impl OAuthError {
    /// Returns whether the authorization server rejected the grant, as opposed to a request that failed.
    pub(super) fn is_rejection(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 401 | 403, .. })
    }

    pub(super) fn not_sent(address: &str, error: &SendError) -> Self {
        Self::Unreachable { address: address.to_owned(), why: send_error(error) }
    }
}
