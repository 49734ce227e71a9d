//! Bundles: named containers of tools with one on/off switch.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::BundleId;
use crate::name::{BundleSlug, TenantId};

/// How long a soft-deleted bundle waits, still empty, before it is removed for good.
pub const REAP_AFTER_HOURS: i64 = 48;

/// A named container of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Its identity.
    pub id: BundleId,
    /// Who owns it.
    pub tenant: TenantId,
    /// Its name; also the name of its folder.
    pub slug: BundleSlug,
    /// The name shown to people.
    pub display_name: String,
    /// What it is for.
    pub description: String,
    /// The switch of all its tools.
    pub enabled: bool,
    /// Whether it is compiled in: then only `enabled` changes.
    pub built_in: bool,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When its content last changed; switching does not move it.
    pub modified_at: Timestamp,
    /// When it was deleted; it is removed for good after [`REAP_AFTER_HOURS`].
    pub soft_deleted_at: Option<Timestamp>,
}

impl Bundle {
    /// Tells whether calls and changes inside are allowed.
    pub fn is_open(&self) -> bool {
        self.enabled && self.soft_deleted_at.is_none()
    }
}
