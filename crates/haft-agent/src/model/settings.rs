//! The settings of a model.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use haft_core::secret::Secret;

use super::exchange::Timeouts;
use super::price::Prices;
use super::provider::Provider;
use super::retrying::RetryPolicy;
use super::script::Script;

/// Who wrote the settings. Only the platform's own settings may name private addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConfiguredBy {
    /// A tenant.
    #[default]
    Tenant,
    /// The configuration of the platform.
    Platform,
}

/// The settings of a model.
#[derive(Clone)]
pub struct ModelSettings {
    /// The name of the model, such as `claude-sonnet-5` or `ollama/llama3.2`.
    pub name: String,
    /// The provider; `None`: the one that follows from the name.
    pub provider: Option<Provider>,
    /// The address of the provider; `None`: its default.
    pub base_url: Option<String>,
    /// The key.
    pub credential: Option<Secret>,
    /// More headers for every request. Their values are treated as secrets.
    pub headers: BTreeMap<String, Secret>,
    /// How long to wait for an answer.
    pub timeouts: Timeouts,
    /// How often to retry, and how long to wait between attempts.
    pub retries: RetryPolicy,
    /// What the model costs.
    pub prices: Option<Prices>,
    /// Whether the answer arrives piece by piece.
    pub streaming: bool,
    /// Whether tools are described in the instructions, for models without tool calling.
    pub text_tools: bool,
    /// Whether parts of the request are marked for the cache of the provider.
    pub prompt_caching: bool,
    /// Who wrote these settings.
    pub configured_by: ConfiguredBy,
    /// The script of a scripted model; `None`: the built-in demo.
    pub script: Option<Arc<Script>>,
}

impl ModelSettings {
    /// Creates settings with defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: None,
            base_url: None,
            credential: None,
            headers: BTreeMap::new(),
            timeouts: Timeouts::default(),
            retries: RetryPolicy::default(),
            prices: None,
            streaming: true,
            text_tools: false,
            prompt_caching: true,
            configured_by: ConfiguredBy::Tenant,
            script: None,
        }
    }
}

impl fmt::Debug for ModelSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSettings")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("base_url", &self.base_url)
            .field("credential", &self.credential)
            .field("headers", &self.headers)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .field("prices", &self.prices)
            .field("configured_by", &self.configured_by)
            .finish_non_exhaustive()
    }
}
