//! Access tokens and roles.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::{ActorId, TokenId};
use crate::limit::CallRate;
use crate::name::TenantId;
use crate::principal::AllowList;

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
    /// Whether it administers the platform: tenants, and the tokens of every tenant.
    pub platform: bool,
    /// The tools that it may see and call.
    pub tools: AllowList,
    /// How many calls it may make; `None` for no limit.
    pub rate_limit: Option<CallRate>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was last used; written once a minute at most.
    pub last_used_at: Option<Timestamp>,
    /// The value before the last rotation, while it still works.
    pub previous: Option<PreviousToken>,
    /// The token with which the login was approved that this one comes from. It is revoked with that one, and its calls
    /// count for the rate of that one, too.
    pub parent: Option<TokenId>,
    /// The person or service account that it belongs to. It never does more than that one may do now.
    pub actor: Option<ActorId>,
}

/// The value of a token before its rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousToken {
    /// The SHA-256 of the value, in hexadecimal.
    pub hash: String,
    /// When it stops working.
    pub expires_at: Timestamp,
}
