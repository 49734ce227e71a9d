//! What mail and search need to know, and whose it is.
//!
//! A tenant's own settings are stored credentials. Where a tenant has none, those of the platform hold, which come from
//! the environment of the server and which no definition can name. The two are never mixed: a tenant that could set the
//! host alone would be handed the platform's password.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use haft_core::executor::CallContext;
use haft_core::outcome::CallError;
use haft_core::secret::Secret;

/// The variables of the environment that the built-in tools read where no credential is stored.
pub const VARIABLES: &[(&str, &str)] = &[
    ("SMTP_HOST", "`send_email`: the mail server"),
    ("SMTP_PORT", "`send_email`: its port; 587, or 465 with `SMTP_TLS=tls`"),
    ("SMTP_USER", "`send_email`: the user name, and the sender where `SMTP_FROM` is not set"),
    ("SMTP_PASS", "`send_email`: the password"),
    ("SMTP_FROM", "`send_email`: the sender, as in `Reports <reports@example.com>`"),
    (
        "SMTP_TLS",
        "`send_email`: `starttls` (the default), `tls`, or `none`, which sends the password in clear",
    ),
    ("SMTP_CA", "`send_email`: certificates in PEM that are trusted besides the public ones"),
    (
        "WEB_SEARCH_PROVIDER",
        "`web_search`: `serper`, `brave` or `searxng`, where there are settings for several",
    ),
    ("SERPER_API_KEY", "`web_search`: the key for Serper"),
    ("BRAVE_API_KEY", "`web_search`: the key for Brave Search"),
    ("SEARXNG_URL", "`web_search`: the address of a SearXNG, as in `https://search.example.com`"),
];

/// The settings of the platform, by the names of [`VARIABLES`].
#[derive(Clone, Default)]
pub struct PlatformSettings(Arc<HashMap<String, Secret>>);

impl PlatformSettings {
    /// Takes values by name; names that are not known are harmless.
    pub fn new(values: impl IntoIterator<Item = (String, Secret)>) -> Self {
        Self(Arc::new(values.into_iter().collect()))
    }
}

impl fmt::Debug for PlatformSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Whose settings are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The tenant's credentials, and what the configuration hands to all definitions.
    Tenant,
    /// The platform's.
    Platform,
}

/// Settings of one owner.
pub(crate) struct Settings<'a> {
    call: &'a CallContext,
    platform: &'a PlatformSettings,
    whose: Whose,
}

impl<'a> Settings<'a> {
    pub(crate) fn new(call: &'a CallContext, platform: &'a PlatformSettings, whose: Whose) -> Self {
        Self { call, platform, whose }
    }

    /// Returns the settings of whoever has the one that decides: the tenant first.
    pub(crate) async fn of_owner(
        call: &'a CallContext,
        platform: &'a PlatformSettings,
        deciding: &str,
    ) -> Result<Option<Settings<'a>>, CallError> {
        for whose in [Whose::Tenant, Whose::Platform] {
            let settings = Settings::new(call, platform, whose);
            if settings.plain(deciding).await?.is_some() {
                return Ok(Some(settings));
            }
        }
        Ok(None)
    }

    /// Returns a value that is no secret; an empty one counts as none.
    pub(crate) async fn plain(&self, name: &str) -> Result<Option<String>, CallError> {
        let found = match self.whose {
            Whose::Tenant => self.call.setting(name).await?,
            Whose::Platform => self.platform.0.get(name).map(|value| value.expose().to_owned()),
        };
        Ok(found.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()))
    }

    /// Returns a value and keeps it out of the outcome; an empty one counts as none.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Secret>, CallError> {
        let found = match self.whose {
            Whose::Tenant => self.call.secret(name).await?,
            Whose::Platform => {
                let found = self.platform.0.get(name).cloned();
                if let Some(secret) = &found {
                    self.call.hide(secret.clone());
                }
                found
            }
        };
        Ok(found.filter(|secret| !secret.expose().trim().is_empty()))
    }
}
