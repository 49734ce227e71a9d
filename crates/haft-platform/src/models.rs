//! The models of agents: settings, credentials, connections.

use std::collections::HashMap;
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
use haft_core::problem::excerpt;
use haft_core::secret::{CredentialSelector, ExternalSecretError, Secret, SecretError, SecretSource};
use haft_definition::agent::DEFAULT_MODEL;
use serde_json::Value;
use url::Url;

use crate::settings::ModelSettings;

/// How many connections are kept.
const MAX_CONNECTIONS: usize = 256;
/// The fields of a credential that may have the key.
const KEY_FIELDS: [&str; 6] = ["api_key", "key", "token", "value", "password", "secret"];

/// The connections to models, by settings and key.
pub struct ModelConnections {
    platform: ModelSettings,
    egress: ModelEgress,
    secrets: Arc<dyn SecretSource>,
    cache: Mutex<HashMap<String, Arc<dyn Model>>>,
}

impl ModelConnections {
    /// Creates an empty set of connections.
    pub fn new(platform: ModelSettings, egress: ModelEgress, secrets: Arc<dyn SecretSource>) -> Self {
        Self { platform, egress, secrets, cache: Mutex::default() }
    }

    /// Returns the model of an agent, with its fallback.
    pub async fn connect(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
    ) -> Result<Arc<dyn Model>, CallError> {
        let first = self.model(tenant, &definition.model).await?;
        match &definition.fallback {
            Some(fallback) => {
                let second = self.model(tenant, fallback).await?;
                Ok(Arc::new(Fallback::new(first, second)))
            }
            None => Ok(first),
        }
    }

    async fn model(&self, tenant: &TenantId, model: &AgentModel) -> Result<Arc<dyn Model>, CallError> {
        let name = name_of(&self.platform, model)?;
        let key = self.key(tenant, model, name).await?;
        let known = {
            let key = key.as_ref().map(|key| hash::of_bytes(key.expose().as_bytes()));
            let text = serde_json::json!([tenant, name, model, key]);
            hash::of_bytes(text.to_string().as_bytes())
        };
        if let Some(known) = self.lock().get(&known) {
            return Ok(Arc::clone(known));
        }
        let settings = settings(&self.platform, model, name, key)?;
        let model = connect(&settings, &self.egress).map_err(|error| invalid_model(&error))?;
        let mut cache = self.lock();
        if cache.len() >= MAX_CONNECTIONS {
            cache.clear();
        }
        cache.insert(known, Arc::clone(&model));
        Ok(model)
    }

    /// Checks the settings of a model, as far as they do not depend on its key.
    pub fn check(&self, model: &AgentModel) -> Result<(), CallError> {
        let name = name_of(&self.platform, model)?;
        // A key that is missing now may be stored later.
        let key = Some(Secret::new("unknown".to_owned()));
        let settings = settings(&self.platform, model, name, key)?;
        connect(&settings, &self.egress).map(drop).map_err(|error| invalid_model(&error))
    }

    /// Returns the error of an agent without a model, if the settings have no default model.
    pub fn missing(&self, model: &AgentModel) -> Option<String> {
        // A scripted model needs no name.
        let has_script = model.script.is_some();
        name_of(&self.platform, model).err().filter(|_| !has_script).map(|error| error.message)
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
        // The default key of a provider is sent only to its own address.
        let provider = provider_of(model, name).filter(|_| model.base_url.is_none());
        for variable in provider.map_or(&[][..], key_variables) {
            if let Some(key) = self.credential(tenant, variable).await? {
                return Ok(Some(key));
            }
        }
        match provider.filter(|provider| provider.requires_key()) {
            Some(provider) => Err(CallError::new(ErrorCode::SecretMissing, missing_key(provider))
                .for_model("the model has no credential")),
            None => Ok(None),
        }
    }

    async fn credential(&self, tenant: &TenantId, name: &str) -> Result<Option<Secret>, CallError> {
        let found = self.secrets.credential(tenant, CredentialSelector::Name(name)).await;
        let found = found.map_err(|error| CallError::from(&error))?;
        let key = found.map(|stored| key_in(&stored)).transpose();
        key.map_err(|error| {
            CallError::from(&SecretError { name: excerpt(name, 100), source: Box::new(error) })
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<dyn Model>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key in a credential: its value, one of the usual fields, or the only field. Several fields are never sent
/// together, because the others are no business of a model server.
pub fn key_in(stored: &Secret) -> Result<Secret, ExternalSecretError> {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(stored.expose()) else {
        return Ok(stored.clone());
    };
    let usual = KEY_FIELDS.iter().find_map(|name| fields.get(*name)?.as_str());
    let only = || fields.values().next().filter(|_| fields.len() == 1)?.as_str();
    let key = usual.or_else(only).ok_or(ExternalSecretError::SeveralKeys)?;
    Ok(Secret::new(key.to_owned()))
}

fn invalid_model(error: &ModelError) -> CallError {
    CallError::new(ErrorCode::InvalidDefinition, format!("the model cannot be used: {error}"))
        .for_model("the model of the agent cannot be used")
}

/// Returns the name of a model: its own, or the configured default.
pub(crate) fn name_of<'a>(platform: &'a ModelSettings, model: &'a AgentModel) -> Result<&'a str, CallError> {
    let own = Some(model.name.trim()).filter(|name| !name.is_empty() && *name != DEFAULT_MODEL);
    own.or(platform.default.as_deref()).ok_or_else(|| {
        let message = "the agent has no model; set `model`, or the setting `models.default`";
        CallError::new(ErrorCode::InvalidDefinition, message)
    })
}

/// Returns the provider of a model, if its settings determine it.
pub fn provider_of(model: &AgentModel, name: &str) -> Option<Provider> {
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
pub fn prices<'a>(platform: &'a ModelSettings, name: &str) -> Option<&'a Prices> {
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

/// Returns the message for a provider whose key is not stored.
pub(crate) fn missing_key(provider: Provider) -> String {
    let name = key_variables(provider).first().copied().unwrap_or("NAME");
    format!("no key for {provider}: store it with `haft secret set {name}`")
}

/// The names under which the key of a provider is usually stored.
pub const fn key_variables(provider: Provider) -> &'static [&'static str] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_with_several_fields_is_not_sent_as_a_key() {
        let several = "the secret has several keys; name one, as in `vault:PATH#KEY`";
        for (stored, expected) in [
            ("sk-1", Ok("sk-1")),
            (r#"{"user":"ada","api_key":"sk-2"}"#, Ok("sk-2")),
            (r#"{"user":"ada","password":"pw"}"#, Ok("pw")),
            (r#"{"openai":"sk-3"}"#, Ok("sk-3")),
            (r#"{"openai":"sk-3","anthropic":"sk-4"}"#, Err(several)),
            ("{}", Err(several)),
        ] {
            let key = key_in(&Secret::new(stored.to_owned())).map_err(|error| error.to_string());
            let key = key.as_ref().map(Secret::expose).map_err(String::as_str);
            assert_eq!(key, expected, "{stored}");
        }
    }
}
