//! Tenants.

use haft_core::Timestamp;
use haft_core::tenant::{FileRoot, Tenant, TenantLimits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TenantView {
    #[schema(example = "acme")]
    pub id: String,
    #[schema(example = "Acme Inc.")]
    pub name: String,
    /// Whether its tokens work.
    pub enabled: bool,
    /// Folders that its file tools may use, besides its own one.
    pub file_roots: Vec<FileRoot>,
    /// The environment variables that its tools may read as `${NAME}`; `*` matches every configured one.
    #[schema(example = json!(["WEATHER_API_KEY"]))]
    pub environment: Vec<String>,
    pub limits: TenantLimits,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
}

impl From<Tenant> for TenantView {
    fn from(tenant: Tenant) -> Self {
        let Tenant { id, name, enabled, settings, created_at, modified_at } = tenant;
        Self {
            id: id.to_string(),
            name,
            enabled,
            file_roots: settings.file_roots,
            environment: settings.environment,
            limits: settings.limits,
            created_at,
            modified_at,
        }
    }
}

/// A page of tenants.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TenantList {
    pub tenants: Vec<TenantView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A new tenant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewTenant {
    /// The id, which cannot be changed: 1 to 64 lower-case letters, digits, `-` and `_`.
    #[schema(example = "acme", min_length = 1, max_length = 64, pattern = "^[a-z0-9_-]+$")]
    pub id: String,
    /// The name for people; default: the id.
    #[schema(example = "Acme Inc.", min_length = 1, max_length = 100)]
    pub name: Option<String>,
}

/// Changes of a tenant; missing fields are kept.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct TenantPatch {
    /// The name for people.
    #[schema(example = "Acme Inc.", min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// Whether its tokens work.
    pub enabled: Option<bool>,
    /// Folders that its file tools may use, besides its own one; replaces the list.
    #[schema(max_items = 32)]
    pub file_roots: Option<Vec<FileRoot>>,
    /// The environment variables that its tools may read; replaces the list. `*` matches every configured one.
    #[schema(max_items = 256, example = json!(["WEATHER_API_KEY"]))]
    pub environment: Option<Vec<String>>,
    /// The limits; replaces all of them.
    #[serde(deserialize_with = "crate::read::optional_object")]
    pub limits: Option<TenantLimits>,
}
