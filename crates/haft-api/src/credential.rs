//! Stored secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use haft_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A stored credential, without its value.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CredentialView {
    #[schema(example = "API_TOKEN")]
    pub name: String,
    /// The category.
    #[schema(example = "custom")]
    pub category: String,
    /// The provider that it is for.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "web_search")]
    pub provider_key: Option<String>,
    /// The variant of the provider.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "serper")]
    pub provider_variant: Option<String>,
    pub description: String,
    /// Always `***`.
    #[schema(example = "***")]
    pub value: Cow<'static, str>,
    /// The fields, each with the value `***`; `null` for a plain value.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = json!({"api_key": "***"}))]
    pub payload: Option<BTreeMap<String, Cow<'static, str>>>,
    /// The tools, as `bundle:name@version`, and MCP servers that refer to it.
    #[schema(example = json!(["user-created:weather@1.0.0"]))]
    pub used_by: Vec<String>,
    /// Why it cannot be decrypted.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub modified_at: Timestamp,
}

/// A page of credentials.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CredentialList {
    pub credentials: Vec<CredentialView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A credential: a `value` or a `payload`, with its metadata. Without either, the stored secret is kept.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct CredentialBody {
    /// The secret.
    #[schema(example = "s3cr3t")]
    pub value: Option<String>,
    /// Several secrets by name. A field with the value `***` keeps its stored value.
    #[schema(example = json!({"api_key": "s3cr3t", "endpoint": "https://search.example.com"}))]
    pub payload: Option<BTreeMap<String, String>>,
    /// The category: lower-case letters, digits, `_`, `-` or `.`; default: `custom`.
    #[schema(example = "custom")]
    pub category: Option<String>,
    /// The provider that it is for.
    #[schema(example = "web_search")]
    pub provider_key: Option<String>,
    /// The variant of the provider.
    #[schema(example = "serper")]
    pub provider_variant: Option<String>,
    #[schema(max_length = 500)]
    pub description: Option<String>,
}
