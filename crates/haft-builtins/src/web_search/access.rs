//! Selects the search provider and its credentials.
//!
//! In order of precedence: `api_key` of the definition; the credential in its `credentials_ref`; the tenant's credential
//! of the category `custom` for the provider `web_search`, with the variant `serper`, `brave` or `searxng` or without
//! one; its credential named `web_search`; one for or named after a search provider, or named after its setting
//! (`SERPER_API_KEY`, …); the platform's settings. A credential is the key itself, or has the fields `api_key` (or
//! `token`), `provider` and `endpoint`. Key and endpoint always come from the same source: the platform's key is never sent to an endpoint that
//! a tenant has set.

use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::{CredentialSelector, Secret};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::provider::Provider;
use crate::settings::{PlatformSettings, Settings, SettingsOwner};

/// The name of the tool, which is also that of its credential and its provider key.
const NAME: &str = "web_search";
/// The category of the tenant's credentials.
const CATEGORY: &str = "custom";

/// The message for the model; the operator reads the details.
pub(super) const NOT_CONFIGURED: &str = "web search is not configured";

/// A provider with its endpoint and key.
pub(super) struct ProviderAccess {
    pub(super) provider: Provider,
    pub(super) endpoint: String,
    pub(super) key: Option<Secret>,
}

/// A credential in JSON.
#[derive(Default, Deserialize)]
struct CredentialPayload {
    provider: Option<String>,
    api_key: Option<String>,
    token: Option<String>,
    endpoint: Option<String>,
    url: Option<String>,
}

/// The `config` of a definition.
#[derive(Clone, Default)]
pub(super) struct DefinitionConfig {
    provider: Option<Provider>,
    /// The key itself, or `${NAME}`.
    api_key: Option<Secret>,
    credentials_ref: Option<String>,
}

impl DefinitionConfig {
    /// Parses the `config` of a definition.
    pub(super) fn parse(config: &Map<String, Value>) -> Result<Self, Problem> {
        let problem = |key: &str, code: &str, message: &str| {
            Problem::new(format!("implementation.config.{}", excerpt(key, 60)), code, message)
        };
        let mut parsed = Self::default();
        for (key, value) in config {
            let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
            let text = text.ok_or_else(|| problem(key, "wrong_type", "expected a non-empty string"))?;
            match key.as_str() {
                "api_key" => parsed.api_key = Some(Secret::new(text.to_owned())),
                "credentials_ref" => parsed.credentials_ref = Some(text.to_owned()),
                "provider" => {
                    let provider = Provider::parse(text).ok_or_else(|| {
                        problem(key, "invalid_value", "expected `serper`, `brave` or `searxng`")
                    })?;
                    parsed.provider = Some(provider);
                }
                _ => {
                    let message = "unknown key; expected `api_key`, `credentials_ref` or `provider`";
                    return Err(problem(key, "unknown_key", message));
                }
            }
        }
        Ok(parsed)
    }

    /// Returns the key in the definition. A missing credential is an error: another key would belong to someone else.
    async fn key(&self, call: &CallContext) -> Result<Option<Secret>, CallError> {
        let literal = self.api_key.as_ref().map(|key| key.expose().to_owned());
        let reference = literal.as_deref().and_then(|key| key.strip_prefix("${")?.strip_suffix('}'));
        if let (Some(literal), None) = (&literal, reference) {
            let key = Secret::new(literal.clone());
            call.hide(key.clone());
            return Ok(Some(key));
        }
        let Some(name) = reference.or(self.credentials_ref.as_deref()) else { return Ok(None) };
        let key = call.credential(CredentialSelector::Name(name)).await?;
        let key = key.filter(|key| !key.expose().trim().is_empty());
        let missing = || {
            let name = excerpt(name, 100);
            not_configured(format!("the definition references the credential `{name}`, which is not stored"))
        };
        key.ok_or_else(missing).map(Some)
    }
}

/// Returns access to the requested provider, or to the first one that is configured.
pub(super) async fn find(
    call: &CallContext,
    config: &DefinitionConfig,
    platform: &PlatformSettings,
    requested: Option<Provider>,
) -> Result<ProviderAccess, CallError> {
    if let Some(key) = config.key(call).await?
        && let Some(access) = parse_credential(call, &key, config.provider, requested)?
    {
        return Ok(access);
    }
    let requested = requested.or(config.provider);
    let mut missing = requested;
    for owner in [SettingsOwner::Tenant, SettingsOwner::Platform] {
        let settings = Settings::new(call, platform, owner);
        if let Some(access) = find_in_settings(call, &settings, owner, requested).await? {
            return Ok(access);
        }
        if missing.is_none() {
            missing = preferred_provider(&settings).await?;
        }
    }
    let names = match missing {
        Some(provider) => format!("`{}`", provider.setting()),
        None => Provider::ALL.map(|provider| format!("`{}`", provider.setting())).join(", "),
    };
    Err(not_configured(format!(
        "no search provider is configured; store a credential or set an environment variable: {names}"
    )))
}

fn for_provider<'a>(key: &'a str, variant: Option<&'a str>) -> CredentialSelector<'a> {
    CredentialSelector::Provider { category: CATEGORY, key, variant }
}

async fn find_in_settings(
    call: &CallContext,
    settings: &Settings<'_>,
    owner: SettingsOwner,
    requested: Option<Provider>,
) -> Result<Option<ProviderAccess>, CallError> {
    let providers = requested
        .or(preferred_provider(settings).await?)
        .map_or_else(|| Provider::ALL.to_vec(), |provider| vec![provider]);
    if owner == SettingsOwner::Tenant {
        for provider in &providers {
            let variant = Some(provider.as_str());
            if let Some(credential) = call.credential(for_provider(NAME, variant)).await?
                && let Some(access) = parse_credential(call, &credential, Some(*provider), requested)?
            {
                return Ok(Some(access));
            }
        }
        for selector in [for_provider(NAME, None), CredentialSelector::Name(NAME)] {
            if let Some(credential) = call.credential(selector).await?
                && let Some(access) = parse_credential(call, &credential, None, requested)?
            {
                return Ok(Some(access));
            }
        }
    }
    for provider in providers {
        let by_name = match owner {
            SettingsOwner::Tenant => match call.credential(for_provider(provider.as_str(), None)).await? {
                Some(credential) => Some(credential),
                None => call.credential(CredentialSelector::Name(provider.as_str())).await?,
            },
            SettingsOwner::Platform => None,
        };
        let credential = match by_name {
            Some(credential) => Some(credential),
            None => settings.secret(provider.setting()).await?,
        };
        if let Some(credential) = credential
            && let Some(access) = parse_credential(call, &credential, Some(provider), requested)?
        {
            return Ok(Some(access));
        }
    }
    Ok(None)
}

/// Returns the provider to use if several are configured.
async fn preferred_provider(settings: &Settings<'_>) -> Result<Option<Provider>, CallError> {
    let name = settings.plain("WEB_SEARCH_PROVIDER").await?;
    name.map(|name| parse_provider("`WEB_SEARCH_PROVIDER`", &name)).transpose()
}

/// Parses a provider name. An unknown one is an error, because the key would be sent to another provider.
fn parse_provider(source: &str, name: &str) -> Result<Provider, CallError> {
    Provider::parse(name).ok_or_else(|| {
        not_configured(format!("{source}: unknown provider; expected `serper`, `brave` or `searxng`"))
    })
}

/// Parses a credential; `None` if it is for another provider than the requested one.
fn parse_credential(
    call: &CallContext,
    credential: &Secret,
    provider: Option<Provider>,
    requested: Option<Provider>,
) -> Result<Option<ProviderAccess>, CallError> {
    let text = credential.expose().trim();
    let payload = if text.starts_with('{') {
        // Invalid JSON must not be sent as a key, and the parse error would quote a part of the secret.
        let payload = serde_json::from_str::<CredentialPayload>(text).map_err(|_| {
            let example = "{\"provider\": \"brave\", \"api_key\": \"…\"}";
            not_configured(format!(
                "the credential for web search is not valid JSON; store it again, such as `{example}`"
            ))
        })?;
        CredentialPayload {
            api_key: payload.api_key.or(payload.token),
            endpoint: payload.endpoint.or(payload.url),
            token: None,
            url: None,
            ..payload
        }
    } else {
        CredentialPayload { api_key: Some(text.to_owned()), ..CredentialPayload::default() }
    };
    let in_payload = payload
        .provider
        .as_deref()
        .map(|name| parse_provider("`provider` of the credential", name))
        .transpose()?;
    let provider = provider.or(in_payload).unwrap_or(Provider::Serper);
    if requested.is_some_and(|requested| requested != provider) {
        return Ok(None);
    }
    // A SearXNG instance has a URL and rarely a key, so a plain string is its URL.
    let (endpoint, key) = match (provider, payload.endpoint) {
        (Provider::Searxng, None) => (payload.api_key, None),
        (_, endpoint) => (endpoint.or_else(|| provider.endpoint().map(str::to_owned)), payload.api_key),
    };
    let key = key.map(Secret::new);
    if let Some(key) = &key {
        call.hide(key.clone());
    }
    Ok(endpoint.map(|endpoint| ProviderAccess { provider, endpoint, key }))
}

fn not_configured(message: String) -> CallError {
    CallError::new(ErrorCode::SecretMissing, message).for_model(NOT_CONFIGURED)
}
