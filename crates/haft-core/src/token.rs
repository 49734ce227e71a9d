//! Who may call: tokens and roles.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::TokenId;
use crate::name::TenantId;

/// What a token may do; each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// Every role, the weakest first.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Caller, Role::Editor, Role::Admin];

    /// Returns the spelling on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Caller => "caller",
            Role::Editor => "editor",
            Role::Admin => "admin",
        }
    }

    /// Reads [`Role::as_str`].
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// Who calls a tool, as far as a call has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token.
    pub name: Arc<str>,
    /// Whether tools that need an approval run directly.
    pub elevated: bool,
    /// What the token may do besides.
    pub role: Role,
}

impl Caller {
    /// Returns nobody in particular, who may do nothing but call.
    pub fn nobody() -> Self {
        Self { name: Arc::default(), elevated: false, role: Role::Caller }
    }
}

/// A stored token: everything but the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its identity.
    pub id: TokenId,
    /// Whose things it sees.
    pub tenant: TenantId,
    /// What it is for.
    pub name: String,
    /// The SHA-256 of the token, in hexadecimal.
    pub hash: String,
    /// What it may do.
    pub role: Role,
    /// Whether tools that need an approval run directly.
    pub elevated: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}
