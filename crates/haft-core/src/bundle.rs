//! Bundles: named containers of tools with one on/off switch.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::BundleId;
use crate::name::{BundleSlug, TenantId};

/// How long an empty soft-deleted bundle is kept before it is removed permanently.
pub const REAP_AFTER_HOURS: i64 = 48;

/// Where the tools of a bundle come from; it decides who may change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BundleKind {
    /// Created by a user, through files or the API.
    #[default]
    User,
    /// Compiled into the program; only `enabled` can change.
    BuiltIn,
    /// Installed with a toolset.
    Toolset,
    /// Mirrors the tools of an MCP server.
    Mcp,
}

impl BundleKind {
    /// Every kind.
    pub const ALL: [BundleKind; 4] =
        [BundleKind::User, BundleKind::BuiltIn, BundleKind::Toolset, BundleKind::Mcp];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            BundleKind::User => "user",
            BundleKind::BuiltIn => "built_in",
            BundleKind::Toolset => "toolset",
            BundleKind::Mcp => "mcp",
        }
    }

    /// Tells whether users can change only `enabled`: the content comes from the program or from an MCP server.
    pub const fn is_read_only(self) -> bool {
        match self {
            BundleKind::BuiltIn | BundleKind::Mcp => true,
            BundleKind::User | BundleKind::Toolset => false,
        }
    }
}

impl fmt::Display for BundleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error of parsing a [`BundleKind`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown bundle kind `{0}`; expected `user`, `built_in`, `toolset` or `mcp`")]
pub struct UnknownBundleKind(pub String);

impl FromStr for BundleKind {
    type Err = UnknownBundleKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        BundleKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownBundleKind(text.to_owned()))
    }
}

/// A named container of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// The id.
    pub id: BundleId,
    /// The tenant that owns it; [`TenantId::global`] for a bundle that every tenant sees.
    pub tenant: TenantId,
    /// The name, which is also the name of its folder.
    pub slug: BundleSlug,
    /// The display name.
    pub display_name: String,
    /// The description.
    pub description: String,
    /// Whether its tools can be called.
    pub enabled: bool,
    /// Where its tools come from.
    #[serde(default)]
    pub kind: BundleKind,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When its content last changed; changing `enabled` does not count.
    pub modified_at: Timestamp,
    /// When it was deleted; it is removed permanently after [`REAP_AFTER_HOURS`].
    pub soft_deleted_at: Option<Timestamp>,
}

impl Bundle {
    /// Returns whether its tools can be called and changed.
    pub fn is_open(&self) -> bool {
        self.enabled && self.soft_deleted_at.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundle_kinds_round_trip_through_text_and_json() {
        for kind in BundleKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), serde_json::json!(kind.as_str()));
            assert_eq!(serde_json::from_value::<BundleKind>(serde_json::json!(kind.as_str())).unwrap(), kind);
        }
        assert_eq!(BundleKind::default(), BundleKind::User);
        assert_eq!(
            "built-in".parse::<BundleKind>().unwrap_err().to_string(),
            "unknown bundle kind `built-in`; expected `user`, `built_in`, `toolset` or `mcp`"
        );
    }
}
