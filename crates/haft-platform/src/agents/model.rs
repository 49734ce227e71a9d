//! The models of agents: settings, credentials, connections.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use haft_agent::model::{
    ConfiguredBy, Fallback, Model, ModelEgress, ModelError, ModelSettings as ConnectionSettings, Prices,
    Provider, ProviderChoice, Script, Timeouts, connect,
};
use haft_core::agent::{AgentDefinition, AgentModel};
use haft_core::hash;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::matches_pattern;
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::{CredentialSelector, Secret, SecretSource};
use haft_definition::agent::DEFAULT_MODEL;
use serde::Serialize;
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use super::check::AgentCheck;
use crate::error::ServiceError;
use crate::installation::Installation;
use crate::settings::ModelSettings;

/// How many connections are kept.
const MAX_CONNECTIONS: usize = 256;
/// The fields of a credential that may have the key.
const KEY_FIELDS: [&str; 4] = ["api_key", "key", "token", "value"];

/// The connections to models, by settings and key.
pub struct ModelConnections {
    egress: ModelEgress,
    secrets: Arc<dyn SecretSource>,
    cache: Mutex<HashMap<String, Arc<dyn Model>>>,
}

impl ModelConnections {
    /// Creates an empty set of connections.
    pub fn new(egress: ModelEgress, secrets: Arc<dyn SecretSource>) -> Self {
        Self { egress, secrets, cache: Mutex::default() }
    }

    /// Returns the model of an agent, with its fallback.
    pub async fn connect(
        &self,
        app: &Installation,
        tenant: &TenantId,
        definition: &AgentDefinition,
    ) -> Result<Arc<dyn Model>, CallError> {
        let first = self.model(app, tenant, &definition.model).await?;
        match &definition.fallback {
            Some(fallback) => {
                let second = self.model(app, tenant, fallback).await?;
                Ok(Arc::new(Fallback::new(first, second)))
            }
            None => Ok(first),
        }
    }

    async fn model(
        &self,
        app: &Installation,
        tenant: &TenantId,
        model: &AgentModel,
    ) -> Result<Arc<dyn Model>, CallError> {
        let platform = &app.settings().models;
        let name = name_of(platform, model)?;
        let key = self.key(tenant, model, name).await?;
        let known = {
            let key = key.as_ref().map(|key| hash::of_bytes(key.expose().as_bytes()));
            let text = serde_json::json!([tenant, name, model, key]);
            hash::of_bytes(text.to_string().as_bytes())
        };
        if let Some(known) = self.lock().get(&known) {
            return Ok(Arc::clone(known));
        }
        let settings = settings(platform, model, name, key)?;
        let model = connect(&settings, &self.egress).map_err(|error| invalid_model(&error))?;
        let mut cache = self.lock();
        if cache.len() >= MAX_CONNECTIONS {
            cache.clear();
        }
        cache.insert(known, Arc::clone(&model));
        Ok(model)
    }

    /// Returns the key of a model: that of its credential, or the one that is stored under the provider's usual name.
    async fn key(
        &self,
        tenant: &TenantId,
        model: &AgentModel,
        name: &str,
    ) -> Result<Option<Secret>, CallError> {
        if let Some(credential) = &model.credential {
            let found = self.credential(tenant, credential).await?;
            return found.map(Some).ok_or_else(|| {
                let message = format!(
                    "credential `{}` of model `{}` not found",
                    excerpt(credential, 60),
                    excerpt(name, 60)
                );
                CallError::new(ErrorCode::SecretMissing, message).for_model("the model has no credential")
            });
        }
        // The usual key of a provider goes to its own address only.
        let provider = provider_of(model, name).filter(|_| model.base_url.is_none());
        for variable in provider.map_or(&[][..], key_variables) {
            if let Some(key) = self.credential(tenant, variable).await? {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    async fn credential(&self, tenant: &TenantId, name: &str) -> Result<Option<Secret>, CallError> {
        let found = self.secrets.credential(tenant, CredentialSelector::Name(name)).await;
        let found = found.map_err(|error| CallError::internal(format!("{error}: {}", error.source)))?;
        Ok(found.map(|stored| key_in(&stored)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<dyn Model>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key in a credential: its value, or one of its fields.
pub fn key_in(stored: &Secret) -> Secret {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(stored.expose()) else {
        return stored.clone();
    };
    let key = KEY_FIELDS.iter().find_map(|name| fields.get(*name)?.as_str());
    key.map_or_else(|| stored.clone(), |key| Secret::new(key.to_owned()))
}

fn invalid_model(error: &ModelError) -> CallError {
    CallError::new(ErrorCode::InvalidDefinition, format!("the model cannot be used: {error}"))
        .for_model("the model of the agent cannot be used")
}

/// Returns the name of a model: its own, or the configured default.
fn name_of<'a>(platform: &'a ModelSettings, model: &'a AgentModel) -> Result<&'a str, CallError> {
    let own = Some(model.name.trim()).filter(|name| !name.is_empty() && *name != DEFAULT_MODEL);
    own.or(platform.default.as_deref()).ok_or_else(|| {
        let message = "the agent has no model; set `model`, or the setting `models.default`";
        CallError::new(ErrorCode::InvalidDefinition, message)
    })
}

fn provider_of(model: &AgentModel, name: &str) -> Option<Provider> {
    let explicit = model.provider.as_deref().and_then(Provider::parse);
    ProviderChoice::new(explicit, name, model.base_url.is_some()).map(|choice| choice.provider)
}

/// Returns the settings of a connection.
fn settings(
    platform: &ModelSettings,
    model: &AgentModel,
    name: &str,
    key: Option<Secret>,
) -> Result<ConnectionSettings, CallError> {
    let invalid = |message: String| CallError::new(ErrorCode::InvalidDefinition, message);
    let provider = model.provider.as_deref().map(|text| {
        Provider::parse(text).ok_or_else(|| {
            let known = Provider::ALL.map(Provider::as_str).join(", ");
            invalid(format!("unknown provider `{}`; expected one of {known}", excerpt(text, 40)))
        })
    });
    let provider = provider.transpose()?;
    let script = model.script.as_deref().map(|text| Script::parse("script", text));
    let script = script.transpose().map_err(|error| invalid(format!("invalid `model.script`: {error}")))?;
    let total = platform.timeout;
    let defaults = Timeouts::default();
    let timeouts =
        Timeouts { first_byte: defaults.first_byte.min(total), idle: defaults.idle.min(total), total };
    Ok(ConnectionSettings {
        provider,
        base_url: model.base_url.clone(),
        credential: key,
        timeouts,
        prices: prices(platform, name).cloned(),
        text_tools: model.text_tools,
        configured_by: configured_by(platform, model, name),
        script: script.map(Arc::new),
        ..ConnectionSettings::new(name)
    })
}

/// Returns the prices of a model: those under its name, or under a pattern with `*` that matches it.
fn prices<'a>(platform: &'a ModelSettings, name: &str) -> Option<&'a Prices> {
    let by_pattern = || platform.prices.iter().find(|(pattern, _)| matches_pattern(pattern, name));
    platform.prices.get(name).or_else(|| by_pattern().map(|(_, prices)| prices))
}

/// Returns whether the platform lists the address of a model, so that it may be private.
fn configured_by(platform: &ModelSettings, model: &AgentModel, name: &str) -> ConfiguredBy {
    let default = provider_of(model, name).and_then(Provider::default_url);
    let url = model.base_url.as_deref().or(default).and_then(|url| Url::parse(url).ok());
    let is_listed = |url: &Url| {
        platform
            .private_urls
            .iter()
            .filter_map(|listed| Url::parse(listed).ok())
            .any(|l| l.origin() == url.origin())
    };
    if url.as_ref().is_some_and(is_listed) { ConfiguredBy::Platform } else { ConfiguredBy::Tenant }
}

/// Checks the settings of a model, as far as they do not depend on its key.
pub(super) fn check_model(app: &Installation, field: &str, model: &AgentModel, found: &mut AgentCheck) {
    let platform = &app.settings().models;
    let checked = name_of(platform, model).and_then(|name| {
        // A key that is missing now may be stored later.
        let key = Some(Secret::new("unknown".to_owned()));
        let settings = settings(platform, model, name, key)?;
        connect(&settings, &app.runs().models().egress).map_err(|error| invalid_model(&error))?;
        Ok(())
    });
    if let Err(error) = checked {
        found.errors.push(Problem::new(field, "invalid_model", error.message));
    }
}

/// The names under which the key of a provider is usually stored.
const fn key_variables(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::OpenAi | Provider::OpenAiChat => &["OPENAI_API_KEY"],
        Provider::Anthropic => &["ANTHROPIC_API_KEY"],
        Provider::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        Provider::OpenRouter => &["OPENROUTER_API_KEY"],
        Provider::Groq => &["GROQ_API_KEY"],
        Provider::Mistral => &["MISTRAL_API_KEY"],
        Provider::DeepSeek => &["DEEPSEEK_API_KEY"],
        Provider::XAi => &["XAI_API_KEY"],
        Provider::Ollama
        | Provider::LmStudio
        | Provider::Vllm
        | Provider::LlamaCpp
        | Provider::OpenAiCompatible
        | Provider::Scripted => &[],
    }
}

/// A model that an agent may use.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConfiguredModel {
    /// Its name.
    #[schema(example = "claude-sonnet-5")]
    name: String,
    /// Its provider, if that follows from the name.
    #[schema(required, example = "anthropic")]
    provider: Option<String>,
    /// Whether it can answer: the key of its provider is stored, or it needs none.
    has_key: bool,
    /// Whether agents without a model use it.
    is_default: bool,
    /// What it costs per million tokens, if that is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    prices: Option<Prices>,
}

/// A provider of models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConfiguredProvider {
    /// The name in settings.
    #[schema(example = "anthropic")]
    name: &'static str,
    /// Its address, unless an agent sets another one.
    #[schema(required, example = "https://api.anthropic.com/v1")]
    base_url: Option<&'static str>,
    /// Whether it answers only with a key.
    requires_key: bool,
    /// Whether its key is stored under its usual name.
    has_key: bool,
    /// The names of credentials that are used if an agent names none.
    credentials: &'static [&'static str],
}

/// Lists the providers, with whether a key is stored for each.
pub async fn providers(
    app: &Installation,
    tenant: &TenantId,
) -> Result<Vec<ConfiguredProvider>, ServiceError> {
    let mut found = Vec::new();
    for provider in Provider::ALL {
        found.push(ConfiguredProvider {
            name: provider.as_str(),
            base_url: provider.default_url(),
            requires_key: provider.requires_key(),
            has_key: has_key(app, tenant, provider).await?,
            credentials: key_variables(provider),
        });
    }
    Ok(found)
}

/// Lists the models that the settings name, and those of the tenant's agents.
pub async fn configured_models(
    app: &Installation,
    tenant: &TenantId,
    of_agents: Vec<AgentModel>,
) -> Result<Vec<ConfiguredModel>, ServiceError> {
    let platform = &app.settings().models;
    let configured = platform.prices.keys().filter(|name| !name.contains('*')).cloned();
    let configured = configured.chain(platform.default.clone()).map(AgentModel::new);
    let mut models: BTreeMap<String, AgentModel> = BTreeMap::new();
    for model in of_agents.into_iter().chain(configured) {
        if !model.name.is_empty() && model.name != DEFAULT_MODEL {
            models.entry(model.name.clone()).or_insert(model);
        }
    }
    let mut found = Vec::new();
    for (name, model) in models {
        let provider = provider_of(&model, &name);
        let has_key = match (&model.credential, provider) {
            (Some(credential), _) => app.has_secret(tenant, credential).await.unwrap_or(false),
            (None, Some(provider)) => has_key(app, tenant, provider).await?,
            (None, None) => false,
        };
        found.push(ConfiguredModel {
            provider: provider.map(|provider| provider.as_str().to_owned()),
            has_key,
            is_default: platform.default.as_deref() == Some(name.as_str()),
            prices: prices(platform, &name).cloned(),
            name,
        });
    }
    Ok(found)
}

async fn has_key(app: &Installation, tenant: &TenantId, provider: Provider) -> Result<bool, ServiceError> {
    if !provider.requires_key() {
        return Ok(true);
    }
    for variable in key_variables(provider) {
        let stored = app.has_secret(tenant, variable).await;
        if stored.map_err(|error| CallError::internal(format!("{error}: {}", error.source)))? {
            return Ok(true);
        }
    }
    Ok(false)
}
