//! Applications that people connect: hosted clients that log in with OAuth. What a person allows one of them is a grant: a
//! token of the person whose values are short-lived.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::TokenId;
use crate::name::TenantId;
use crate::token::{Role, TokenRecord};

/// What the stored value of a grant starts with. It is no hash, so no value of a token is mistaken for it.
const GRANT_KEY: &str = "grant:";

/// Returns what stands for the value of a grant.
pub fn grant_key(id: TokenId) -> String {
    format!("{GRANT_KEY}{id}")
}

/// Returns whether what stands for the value of a token is that of a grant.
pub fn is_grant_key(hash: &str) -> bool {
    hash.starts_with(GRANT_KEY)
}

impl TokenRecord {
    /// Returns whether it is what a person has allowed an application.
    pub fn is_grant(&self) -> bool {
        is_grant_key(&self.hash)
    }
}

/// An application that registered itself, or that an admin created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRecord {
    /// The `client_id`.
    pub id: String,
    /// The tenant whose admin created it; `None` for one that registered itself.
    pub tenant: Option<TenantId>,
    /// The name.
    pub name: String,
    /// Where answers may go.
    pub redirect_uris: Vec<String>,
    /// How it authenticates, as in its metadata.
    pub auth_method: String,
    /// The SHA-256 of its secret, in hexadecimal.
    pub secret_hash: Option<String>,
    /// Whether it uses refresh tokens.
    pub refreshes: bool,
    /// The network address that registered it; empty if that is unknown.
    pub address: String,
    /// When it was registered or created.
    pub created_at: Timestamp,
    /// When somebody last connected it.
    pub used_at: Option<Timestamp>,
}

/// The part of a grant that other tokens do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRecord {
    /// The id, which is that of its token.
    pub id: TokenId,
    /// The `client_id` of the application.
    pub client_id: String,
    /// The host that describes the application; `None` if the application or an admin described it.
    pub client_host: Option<String>,
    /// Where the answers go, for people.
    pub destination: String,
    /// The refresh token; `None` if it has none.
    pub refresh: Option<RefreshState>,
}

/// The refresh token of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshState {
    /// The hash of the one in use.
    pub hash: String,
    /// The hash of the one before it.
    pub previous_hash: Option<String>,
    /// When that one was replaced.
    pub rotated_at: Option<Timestamp>,
    /// When the one in use expires.
    pub expires_at: Timestamp,
}

/// What a person has allowed an application, until the application fetches its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedRequest {
    /// The `client_id`.
    pub client_id: String,
    /// The name of the application.
    pub client_name: String,
    /// The host that describes the application.
    pub client_host: Option<String>,
    /// Where the answer went.
    pub redirect_uri: String,
    /// The challenge of PKCE.
    pub challenge: String,
    /// The resource that the request named.
    pub resource: Option<String>,
    /// The highest role.
    pub role: Role,
    /// The rules of the tools; `None` for all that the person may use.
    pub tools: Option<Vec<String>>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// What stands for the token or the login of the person who allowed it.
    pub approver: String,
}
