//! Which service is asked, and with whose key.
//!
//! The order: `api_key` of the definition; the credential that its `credentials_ref` names; a credential `web_search` of
//! the tenant; one that is named after a service (`serper`, `brave`,
//! `searxng`), or after its setting (`SERPER_API_KEY`, …); the settings of the platform. A credential holds the key
//! itself, or JSON with `api_key` (or `token`), `provider` and `endpoint`. Key and address always come from one place:
//! the platform's key never goes to an address that a tenant has set.

use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{Problem, excerpt};
use haft_core::secret::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::provider::Provider;
use crate::settings::{PlatformSettings, Settings, Whose};

/// The way to a service.
pub(super) struct Access {
    pub(super) provider: Provider,
    pub(super) endpoint: String,
    pub(super) key: Option<Secret>,
}

/// What a credential may hold.
#[derive(Default, Deserialize)]
struct Payload {
    provider: Option<String>,
    #[serde(alias = "token")]
    api_key: Option<String>,
    #[serde(alias = "url")]
    endpoint: Option<String>,
}

/// What a definition says of the service.
#[derive(Clone, Default)]
pub(super) struct Own {
    provider: Option<Provider>,
    /// The key itself, or `${NAME}`.
    api_key: Option<Secret>,
    credentials_ref: Option<String>,
}

impl Own {
    /// Reads the settings of a definition.
    pub(super) fn read(config: &Map<String, Value>) -> Result<Self, Problem> {
        let fault = |key: &str, code: &str, message: &str| {
            Problem::new(format!("implementation.config.{}", excerpt(key, 60)), code, message)
        };
        let mut own = Self::default();
        for (key, value) in config {
            let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
            let text = text.ok_or_else(|| fault(key, "wrong_type", "expected a text that is not empty"))?;
            match key.as_str() {
                "api_key" => own.api_key = Some(Secret::new(text.to_owned())),
                "credentials_ref" => own.credentials_ref = Some(text.to_owned()),
                "provider" => {
                    let known = Provider::parse(text);
                    let wrong = || fault(key, "invalid_value", "expected `serper`, `brave` or `searxng`");
                    own.provider = Some(known.ok_or_else(wrong)?);
                }
                _ => {
                    let message =
                        "is not known; `web_search` takes `api_key`, `credentials_ref` and `provider`";
                    return Err(fault(key, "unknown_key", message));
                }
            }
        }
        Ok(own)
    }

    /// Returns the key that the definition says or names. One that is named and missing is an error: another key
    /// would be somebody else's.
    async fn key(&self, call: &CallContext) -> Result<Option<Secret>, CallError> {
        let literal = self.api_key.as_ref().map(|key| key.expose().to_owned());
        let referred = literal.as_deref().and_then(|key| key.strip_prefix("${")?.strip_suffix('}'));
        if let (Some(literal), None) = (&literal, referred) {
            let key = Secret::new(literal.clone());
            call.hide(key.clone());
            return Ok(Some(key));
        }
        let Some(name) = referred.or(self.credentials_ref.as_deref()) else { return Ok(None) };
        let found = call.secret(name).await?;
        let missing = || {
            let message =
                format!("the definition names the credential `{}`, which is not stored", excerpt(name, 100));
            CallError::new(ErrorCode::SecretMissing, message).for_model("web search is not set up here")
        };
        found.filter(|key| !key.expose().trim().is_empty()).ok_or_else(missing).map(Some)
    }
}

/// Finds the way, for the service that was asked for or for the first that is set up.
pub(super) async fn find(
    call: &CallContext,
    own: &Own,
    platform: &PlatformSettings,
    wanted: Option<Provider>,
) -> Result<Access, CallError> {
    if let Some(key) = own.key(call).await?
        && let Some(access) = access(call, &key, own.provider, wanted)?
    {
        return Ok(access);
    }
    let wanted = wanted.or(own.provider);
    for whose in [Whose::Tenant, Whose::Platform] {
        let settings = Settings::new(call, platform, whose);
        if let Some(access) = of(call, &settings, whose, wanted).await? {
            return Ok(access);
        }
    }
    let mut missing = wanted;
    for whose in [Whose::Tenant, Whose::Platform] {
        missing = match missing {
            None => preferred(&Settings::new(call, platform, whose)).await?,
            found => found,
        };
    }
    let names = match missing {
        Some(provider) => format!("`{}`", provider.setting()),
        None => Provider::ALL.map(|provider| format!("`{}`", provider.setting())).join(", "),
    };
    let message = format!(
        "no search service is set up: store a credential, or set a variable that haft reads, one of {names}"
    );
    Err(CallError::new(ErrorCode::SecretMissing, message).for_model("web search is not set up here"))
}

async fn of(
    call: &CallContext,
    settings: &Settings<'_>,
    whose: Whose,
    wanted: Option<Provider>,
) -> Result<Option<Access>, CallError> {
    if whose == Whose::Tenant
        && let Some(found) = settings.get("web_search").await?
        && let Some(access) = access(call, &found, None, wanted)?
    {
        return Ok(Some(access));
    }
    let order = wanted
        .or(preferred(settings).await?)
        .map_or_else(|| Provider::ALL.to_vec(), |provider| vec![provider]);
    for provider in order {
        let own = match whose {
            Whose::Tenant => settings.get(provider.as_str()).await?,
            Whose::Platform => None,
        };
        let found = match own {
            Some(found) => Some(found),
            None => settings.get(provider.setting()).await?,
        };
        if let Some(found) = found
            && let Some(access) = access(call, &found, Some(provider), wanted)?
        {
            return Ok(Some(access));
        }
    }
    Ok(None)
}

/// Returns the service that is to be asked where there are settings for several.
async fn preferred(settings: &Settings<'_>) -> Result<Option<Provider>, CallError> {
    let name = settings.plain("WEB_SEARCH_PROVIDER").await?;
    name.map(|name| known("`WEB_SEARCH_PROVIDER`", &name)).transpose()
}

/// A name that is not known is refused: the key would go to a service that it is not for.
fn known(place: &str, name: &str) -> Result<Provider, CallError> {
    Provider::parse(name).ok_or_else(|| {
        let message = format!("{place} is not known; expected `serper`, `brave` or `searxng`");
        CallError::new(ErrorCode::SecretMissing, message).for_model("web search is not set up here")
    })
}

/// Reads a credential; `None` where it is for another service than the one that was asked for.
fn access(
    call: &CallContext,
    found: &Secret,
    named: Option<Provider>,
    wanted: Option<Provider>,
) -> Result<Option<Access>, CallError> {
    let text = found.expose().trim();
    let payload = if text.starts_with('{') {
        // As a key it would go to whichever service comes first. Where it is wrong would show some of it.
        serde_json::from_str::<Payload>(text).map_err(|_| {
            let message = "the credential for web search begins as JSON and is none; store it anew, such as \
                           `{\"provider\": \"brave\", \"api_key\": \"…\"}`";
            CallError::new(ErrorCode::SecretMissing, message).for_model("web search is not set up here")
        })?
    } else {
        Payload { api_key: Some(text.to_owned()), ..Payload::default() }
    };
    let said =
        payload.provider.as_deref().map(|name| known("`provider` of the credential", name)).transpose()?;
    let provider = named.or(said).unwrap_or(Provider::Serper);
    if wanted.is_some_and(|wanted| wanted != provider) {
        return Ok(None);
    }
    // A SearXNG has an address and seldom a key: a text alone is the address.
    let (endpoint, key) = match (provider, payload.endpoint) {
        (Provider::Searxng, None) => (payload.api_key, None),
        (_, endpoint) => (endpoint.or_else(|| provider.endpoint().map(str::to_owned)), payload.api_key),
    };
    let key = key.map(Secret::new);
    if let Some(key) = &key {
        call.hide(key.clone());
    }
    Ok(endpoint.map(|endpoint| Access { provider, endpoint, key }))
}
