//! The settings of mail, messages and search, and their owner.
//!
//! A tenant's settings are stored credentials. Tenants without them use the platform's settings, which come from the
//! server's environment and which definitions cannot reference. The two are never mixed: a tenant that could set only
//! the host would receive the platform's password.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use haft_core::executor::CallContext;
use haft_core::outcome::CallError;
use haft_core::secret::Secret;

/// The environment variables that the built-in tools use if no credential is stored.
pub const VARIABLES: &[(&str, &str)] = &[
    ("SMTP_HOST", "`send_email`: the host name of the mail server"),
    ("SMTP_PORT", "`send_email`: the port. Default: 587, or 465 with `SMTP_TLS=tls`"),
    ("SMTP_USER", "`send_email`: the user name, and the sender address if `SMTP_FROM` is not set"),
    ("SMTP_PASS", "`send_email`: the password"),
    ("SMTP_FROM", "`send_email`: the sender, such as `Reports <reports@example.com>`"),
    (
        "SMTP_TLS",
        "`send_email`: `starttls` (default), `tls`, or `none`, which sends the password unencrypted",
    ),
    ("SMTP_CA", "`send_email`: additional trusted certificates in PEM format"),
    (
        "WHATSAPP_PHONE_NUMBER_ID",
        "`send_whatsapp`: the id of the business phone number in the WhatsApp Cloud API",
    ),
    ("WHATSAPP_TOKEN", "`send_whatsapp`: the access token"),
    ("WHATSAPP_API_URL", "`send_whatsapp`: the endpoint. Default: `https://graph.facebook.com/v23.0`"),
    ("WEB_SEARCH_PROVIDER", "`web_search`: `serper`, `brave` or `searxng`, if several are configured"),
    ("SERPER_API_KEY", "`web_search`: the API key for Serper"),
    ("BRAVE_API_KEY", "`web_search`: the API key for Brave Search"),
    ("SEARXNG_URL", "`web_search`: the URL of a SearXNG instance, such as `https://search.example.com`"),
];

/// The settings of the platform, by the names of [`VARIABLES`].
#[derive(Clone, Default)]
pub struct PlatformSettings(Arc<HashMap<String, Secret>>);

impl PlatformSettings {
    /// Creates settings from values by name; unknown names are ignored.
    pub fn new(values: impl IntoIterator<Item = (String, Secret)>) -> Self {
        Self(Arc::new(values.into_iter().collect()))
    }
}

impl fmt::Debug for PlatformSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The owner of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsOwner {
    /// The tenant: its credentials, and the variables that definitions may use.
    Tenant,
    /// The platform.
    Platform,
}

/// The settings of one owner.
pub(crate) struct Settings<'a> {
    call: &'a CallContext,
    platform: &'a PlatformSettings,
    owner: SettingsOwner,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(call: &'a CallContext, platform: &'a PlatformSettings, owner: SettingsOwner) -> Self {
        Self { call, platform, owner }
    }

    /// Returns the settings of the owner that has `key`; the tenant takes precedence.
    pub(crate) async fn with_key(
        call: &'a CallContext,
        platform: &'a PlatformSettings,
        key: &str,
    ) -> Result<Option<Settings<'a>>, CallError> {
        for owner in [SettingsOwner::Tenant, SettingsOwner::Platform] {
            let settings = Settings::new(call, platform, owner);
            if settings.plain(key).await?.is_some() {
                return Ok(Some(settings));
            }
        }
        Ok(None)
    }

    /// Returns a value that is not secret; an empty one counts as missing.
    pub(crate) async fn plain(&self, name: &str) -> Result<Option<String>, CallError> {
        let value = match self.owner {
            SettingsOwner::Tenant => self.call.setting(name).await?,
            SettingsOwner::Platform => self.platform.0.get(name).map(|value| value.expose().to_owned()),
        };
        Ok(value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()))
    }

    /// Returns a secret, which is then redacted from the outcome; an empty one counts as missing.
    pub(crate) async fn secret(&self, name: &str) -> Result<Option<Secret>, CallError> {
        let secret = match self.owner {
            SettingsOwner::Tenant => self.call.secret(name).await?,
            SettingsOwner::Platform => {
                let secret = self.platform.0.get(name).cloned();
                if let Some(secret) = &secret {
                    self.call.hide(secret.clone());
                }
                secret
            }
        };
        Ok(secret.filter(|secret| !secret.expose().trim().is_empty()))
    }
}
