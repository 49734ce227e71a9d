//! Logins: sessions of browsers, the single-use links that open them, and logins of command lines that a person approves
//! in a browser. Their secrets are stored as hashes.

use crate::Timestamp;
use crate::name::TenantId;

/// A session of a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The SHA-256 of the cookie, in hexadecimal.
    pub hash: String,
    /// The hash of the token that opened it. The session ends with the token, also when the token is rotated.
    pub token_hash: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A link that opens a session, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginLinkRecord {
    /// The SHA-256 of the code in the link, in hexadecimal.
    pub hash: String,
    /// The hash of the token that created it.
    pub token_hash: String,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// A login of a command line, which a person approves or denies in a browser (RFC 8628).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLoginRecord {
    /// The SHA-256 of the device code, in hexadecimal.
    pub hash: String,
    /// The SHA-256 of the user code, in hexadecimal.
    pub user_code_hash: String,
    /// The name of the computer, as its command line sent it.
    pub device: String,
    /// The network address that started it; empty if that is unknown.
    pub address: String,
    /// Whether somebody has decided.
    pub state: DeviceLoginState,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its codes stop working.
    pub expires_at: Timestamp,
}

/// A login at an issuer of OpenID Connect that waits for its answer. The secrets that bind it to its browser are derived
/// from the cookie of the browser, so they are not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignOnLoginRecord {
    /// The SHA-256 of the state, in hexadecimal.
    pub hash: String,
    /// The id of the issuer in the configuration.
    pub issuer: String,
    /// The SHA-256 of the cookie of the browser, in hexadecimal.
    pub browser_hash: String,
    /// The page to show after the login.
    pub next: Option<String>,
    /// The tenant to log in to.
    pub tenant: Option<TenantId>,
    /// The network address that started it; empty if that is unknown.
    pub address: String,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The state of a login of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceLoginState {
    /// Nobody has decided.
    Pending,
    /// A person has approved it; the command line has not fetched its token.
    Approved,
    /// A person has denied it.
    Denied,
}

impl DeviceLoginState {
    /// Returns the name used in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeviceLoginState::Pending => "pending",
            DeviceLoginState::Approved => "approved",
            DeviceLoginState::Denied => "denied",
        }
    }

    /// Parses the name that [`DeviceLoginState::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Approved, Self::Denied].into_iter().find(|state| state.as_str() == text)
    }
}
