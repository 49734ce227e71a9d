//! The models and providers that agents may use, and whether their keys are stored.

use std::collections::BTreeMap;

use haft_agent::model::{Prices, Provider};
use haft_core::agent::{AgentDefinition, AgentModel};
use haft_core::name::TenantId;
use haft_core::outcome::CallError;
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::ExternalReference;
use haft_definition::agent::DEFAULT_MODEL;
use serde::Serialize;

use crate::context::Context;
use crate::error::ServiceError;
use crate::models::{key_variables, missing_key, name_of, prices, provider_of};

/// A model that an agent may use.
#[derive(Debug, Serialize)]
pub struct ConfiguredModel {
    /// Its name.
    pub name: String,
    /// Its provider, if the name determines it.
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
#[derive(Debug, Serialize)]
pub struct ConfiguredProvider {
    /// The name in settings.
    pub name: &'static str,
    /// Its address, unless an agent sets another one.
    pub base_url: Option<&'static str>,
    /// Whether it requires a key.
    pub requires_key: bool,
    /// Whether its key is stored under its usual name.
    pub has_key: bool,
    /// The names of the credentials that agents without `credential` use.
    pub credentials: &'static [&'static str],
}

/// Lists the providers, with whether a key is stored for each.
pub async fn providers(app: &Context, tenant: &TenantId) -> Result<Vec<ConfiguredProvider>, ServiceError> {
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
    app: &Context,
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

/// Returns a warning for each model of an agent whose key is not stored: runs of the agent fail until it is.
pub async fn key_warnings(
    app: &Context,
    tenant: &TenantId,
    definition: &AgentDefinition,
) -> Result<Vec<Problem>, ServiceError> {
    let mut warnings = Vec::new();
    let models = [("model", Some(&definition.model)), ("fallback", definition.fallback.as_ref())];
    for (field, model) in models {
        let Some((model, name)) = model.and_then(|model| {
            let name = name_of(&app.settings().models, model).ok()?;
            Some((model, name))
        }) else {
            continue;
        };
        let message = match (&model.credential, provider_of(model, name)) {
            (Some(credential), _) => {
                let missing = app.secrets().missing(tenant, credential).await;
                let missing = missing.map_err(|error| CallError::from(&error))?;
                let shown = excerpt(credential, 60);
                missing.map(|missing| match ExternalReference::parse(credential) {
                    Some(_) => missing,
                    None => {
                        format!("credential `{shown}` not found: store it with `haft secret set {shown}`")
                    }
                })
            }
            // The default key of a provider is sent only to its own address.
            (None, Some(provider)) if model.base_url.is_none() => {
                (!has_key(app, tenant, provider).await?).then(|| missing_key(provider))
            }
            (None, _) => None,
        };
        warnings.extend(message.map(|message| Problem::new(field, "missing_key", message)));
    }
    Ok(warnings)
}

async fn has_key(app: &Context, tenant: &TenantId, provider: Provider) -> Result<bool, ServiceError> {
    if !provider.requires_key() {
        return Ok(true);
    }
    for variable in key_variables(provider) {
        let stored = app.has_secret(tenant, variable).await;
        if stored.map_err(|error| CallError::from(&error))? {
            return Ok(true);
        }
    }
    Ok(false)
}
