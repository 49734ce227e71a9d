//! The egress guard of model traffic.

use std::fmt;
use std::sync::Arc;

use haft_core::Clock;
use haft_core::problem::excerpt;
use haft_executors::egress::{Egress, EgressError, EgressRules, RulesError};
use url::{Origin, Url};

use super::settings::ConfiguredBy;

/// The guard that all requests to models go through.
///
/// Addresses that the platform lists for models may be private, so that a local model server works. They are open to
/// models that the platform configured, and to nothing else: neither to tools nor to models of tenants.
#[derive(Clone)]
pub struct ModelEgress {
    /// The guard of tools.
    common: Egress,
    /// The same rules, and the listed addresses.
    platform: Egress,
    listed: Vec<Origin>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Why the guard could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ModelEgressError {
    /// An address for models is not a URL.
    #[error("model address `{url}` is not an `http` or `https` URL")]
    Url {
        /// The address.
        url: String,
    },
    /// The rules are invalid.
    #[error(transparent)]
    Rules(#[from] RulesError),
}

impl ModelEgress {
    /// Creates a guard from the rules of tools, and the addresses of model servers that the platform lists.
    pub fn new(
        rules: &EgressRules,
        listed_urls: &[String],
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ModelEgressError> {
        let common = Egress::new(rules)?;
        let mut extended = rules.clone();
        let mut listed = Vec::with_capacity(listed_urls.len());
        for text in listed_urls {
            let invalid = || ModelEgressError::Url { url: excerpt(text, 100) };
            let url = Url::parse(text).map_err(|_| invalid())?;
            let is_http = matches!(url.scheme(), "http" | "https");
            let (Some(host), Some(port), true) = (url.host_str(), url.port_or_known_default(), is_http)
            else {
                return Err(invalid());
            };
            // An IPv6 address is in brackets already, as a pattern with a port needs it.
            let pattern = format!("{host}:{port}");
            if !extended.allowed_hosts.is_empty() {
                extended.allowed_hosts.push(pattern.clone());
            }
            extended.private_hosts.push(pattern);
            listed.push(url.origin());
        }
        let platform = if listed.is_empty() { common.clone() } else { Egress::new(&extended)? };
        Ok(Self { common, platform, listed, clock })
    }

    /// Returns the guard for an address.
    pub fn guard(&self, url: &Url, configured_by: ConfiguredBy) -> &Egress {
        match configured_by {
            ConfiguredBy::Platform if self.listed.contains(&url.origin()) => &self.platform,
            ConfiguredBy::Platform | ConfiguredBy::Tenant => &self.common,
        }
    }
}

/// Returns why the guard denied the address of a model, with the setting that allows it.
pub fn denied_address(error: &EgressError) -> String {
    match error.special_address() {
        Some(reason) => {
            format!("{reason}: an admin of the platform can add its URL to `models.private_urls` to allow it")
        }
        None => error.to_string(),
    }
}

impl fmt::Debug for ModelEgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelEgress").field("listed", &self.listed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use haft_runtime::clock::SystemClock;

    use super::*;

    fn allowed(allowed: &[&str], listed: &[&str], url: &str, by: ConfiguredBy) -> bool {
        let own = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
        let rules = EgressRules { allowed_hosts: own(allowed), private_hosts: Vec::new() };
        let egress = ModelEgress::new(&rules, &own(listed), Arc::new(SystemClock)).unwrap();
        let url = Url::parse(url).unwrap();
        egress.guard(&url, by).check(&url).is_ok()
    }

    #[test]
    fn listed_private_addresses_are_for_the_platform_only() {
        let (platform, tenant) = (ConfiguredBy::Platform, ConfiguredBy::Tenant);
        let local = &["http://127.0.0.1:11434/v1", "http://[::1]:8000"][..];
        for (list, url, by, expected) in [
            (local, "http://127.0.0.1:11434/v1/chat", platform, true),
            (local, "http://[::1]:8000/v1", platform, true),
            (local, "http://127.0.0.1:11434/v1/chat", tenant, false),
            (local, "http://127.0.0.1:11435/", platform, false),
            (local, "http://10.0.0.1:11434/", platform, false),
            (&[], "http://127.0.0.1:11434/", platform, false),
            (&[], "https://api.openai.com/v1", tenant, true),
        ] {
            assert_eq!(allowed(&[], list, url, by), expected, "{url} {by:?}");
        }
        assert!(allowed(&["api.openai.com"], local, "http://127.0.0.1:11434/", platform));
        assert!(!allowed(&["api.openai.com"], local, "https://api.anthropic.com/", platform));
    }

    #[test]
    fn a_denied_address_names_the_setting_of_models() {
        let rules = EgressRules { allowed_hosts: vec!["a.test".to_owned()], private_hosts: Vec::new() };
        for (rules, url, expected) in [
            (
                EgressRules::default(),
                "http://127.0.0.1:11434/",
                "`127.0.0.1` is a loopback address: an admin of the platform can add its URL to `models.private_urls` to allow it",
            ),
            (
                rules,
                "https://api.openai.com/",
                "`api.openai.com` (port 443) is not on the allow-list: add it to `egress.allowed_hosts` to allow it",
            ),
        ] {
            let egress = ModelEgress::new(&rules, &[], Arc::new(SystemClock)).unwrap();
            let url = Url::parse(url).unwrap();
            let denied = egress.guard(&url, ConfiguredBy::Platform).check(&url).unwrap_err();
            assert_eq!(denied_address(&denied), expected);
        }
    }

    #[test]
    fn invalid_addresses_are_reported() {
        for url in ["localhost:11434", "ftp://x", "", "http://"] {
            let made = ModelEgress::new(&EgressRules::default(), &[url.to_owned()], Arc::new(SystemClock));
            assert!(made.unwrap_err().to_string().starts_with("model address `"), "{url}");
        }
    }
}
