//! The models that agents can use.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The models and providers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ModelList {
    /// The models that the settings and the agents of the tenant name.
    pub models: Vec<ConfiguredModel>,
    /// The providers.
    pub providers: Vec<ConfiguredProvider>,
    /// The private addresses of model servers that agents may use.
    pub private_urls: Vec<String>,
}

/// A model that an agent may use.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfiguredModel {
    /// Its name.
    #[schema(example = "claude-sonnet-5")]
    pub name: String,
    /// Its provider, if the name determines it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "anthropic")]
    pub provider: Option<String>,
    /// Whether the key of its provider is stored, or none is required.
    pub has_key: bool,
    /// Whether agents without a model use it.
    pub is_default: bool,
    /// The configured prices per million tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// A provider of models.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ConfiguredProvider {
    /// The name in settings.
    #[schema(example = "anthropic")]
    pub name: Cow<'static, str>,
    /// Its address, unless an agent sets another one.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "https://api.anthropic.com/v1")]
    pub base_url: Option<Cow<'static, str>>,
    /// Whether it requires a key.
    pub requires_key: bool,
    /// Whether its key is stored under its usual name.
    pub has_key: bool,
    /// The names of the credentials that agents without `credential` use.
    pub credentials: Vec<Cow<'static, str>>,
}

/// The prices of a model per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ModelPrices)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Tokens of the request.
    pub input: f64,
    /// Tokens of the answer.
    pub output: f64,
    /// Tokens that the provider read from its cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens that the provider wrote to its cache; `None`: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<f64>,
    /// The currency of all prices.
    #[serde(default = "default_currency")]
    pub currency: String,
}

fn default_currency() -> String {
    "USD".to_owned()
}
