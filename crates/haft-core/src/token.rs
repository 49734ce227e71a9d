//! Access tokens and roles.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::TokenId;
use crate::name::TenantId;

/// The role of a token; each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read.
    Viewer,
    /// Call tools.
    Caller,
    /// Change tools and bundles.
    Editor,
    /// Manage credentials and tokens.
    Admin,
}

impl Role {
    /// Every role, from the weakest to the strongest.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Caller, Role::Editor, Role::Admin];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Caller => "caller",
            Role::Editor => "editor",
            Role::Admin => "admin",
        }
    }

    /// Parses the name that [`Role::as_str`] returns.
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// The record of a token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The id.
    pub id: TokenId,
    /// The tenant that it gives access to.
    pub tenant: TenantId,
    /// The name.
    pub name: String,
    /// The SHA-256 of the token, in hexadecimal.
    pub hash: String,
    /// The role.
    pub role: Role,
    /// Whether tools that need approval run without it.
    pub elevated: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}
