//! Reads secrets from the KV store (version 2) of HashiCorp Vault or OpenBao.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_core::Clock;
use haft_core::name::TenantId;
use haft_core::secret::{ExternalSecretError, Secret, check_path};
use serde_json::Value;

use super::cache::Lifetimes;
use super::settings::{SourceSettingsError, VaultSettings, has_several, has_tenant};
use super::value::{MAX_VALUE_BYTES, SecretValue};
use super::vault_client::{Reply, VaultClient};
use super::vault_session::{LOOKUP, VaultSession};

/// What stands for the tenant in `path_prefix`.
const TENANT: &str = "{tenant}";

/// The maximum size of all fields of a secret in bytes.
const MAX_FIELDS_BYTES: usize = 256 * 1024;

/// A KV store.
pub(super) struct Vault {
    client: VaultClient,
    session: VaultSession,
    mount: String,
    /// The beginning of all paths, without `/` at its end.
    prefix: String,
    tenants: Vec<String>,
    lifetimes: Lifetimes,
}

impl Vault {
    /// Checks the settings; `None` if no Vault is configured.
    pub(super) fn open(
        settings: &VaultSettings,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, SourceSettingsError> {
        if settings.address.is_empty() {
            return Ok(None);
        }
        let prefix = settings.path_prefix.trim_end_matches('/');
        for (setting, path) in
            [("mount", &*settings.mount), ("auth_mount", &*settings.auth_mount), ("path_prefix", prefix)]
        {
            let is_optional = setting != "mount";
            if !(is_optional && path.is_empty()) {
                check_path(path).map_err(|reason| SourceSettingsError::Path { setting, reason })?;
            }
        }
        Ok(Some(Self {
            client: VaultClient::new(settings)?,
            session: VaultSession::new(settings, clock)?,
            mount: settings.mount.clone(),
            prefix: prefix.to_owned(),
            tenants: settings.tenants.clone(),
            lifetimes: Lifetimes { fresh: settings.cache, stale: settings.stale },
        }))
    }

    pub(super) fn lifetimes(&self) -> Lifetimes {
        self.lifetimes
    }

    /// Returns whether several tenants may read the same paths.
    pub(super) fn is_shared(&self) -> bool {
        has_several(&self.tenants) && !self.prefix.contains(TENANT)
    }

    /// Checks that a tenant may read a path.
    pub(super) fn check(&self, tenant: &TenantId, path: &str) -> Result<(), ExternalSecretError> {
        if !has_tenant(&self.tenants, tenant) {
            let setting = "secrets.vault.tenants".to_owned();
            return Err(ExternalSecretError::TenantDenied { tenant: tenant.to_string(), setting });
        }
        let prefix = self.prefix.replace(TENANT, tenant.as_str());
        let is_below = path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if prefix.is_empty() || is_below { Ok(()) } else { Err(ExternalSecretError::OutsidePrefix(prefix)) }
    }

    /// Reads all keys of a path.
    pub(super) async fn read(&self, path: &str) -> Result<SecretValue, ExternalSecretError> {
        let Reply { status, body } = self.get(&[self.mount.as_str(), "data", path]).await?;
        match status {
            200..=299 => fields(&body),
            403 => Err(ExternalSecretError::Denied(format!("{}/data/{path}", self.mount))),
            404 => Err(ExternalSecretError::NotFound(
                "Vault has no secret with this path in `secrets.vault.mount`, or its newest version is deleted",
            )),
            status => Err(ExternalSecretError::Status(status)),
        }
    }

    /// Checks that Vault responds and accepts haft's token.
    pub(super) async fn probe(&self) -> Result<String, ExternalSecretError> {
        match self.get(&LOOKUP).await?.status {
            200..=299 => {}
            403 => return Err(ExternalSecretError::Denied(LOOKUP.join("/"))),
            status => return Err(ExternalSecretError::Status(status)),
        }
        let warning = if self.client.is_private() { "" } else { "; requests are not encrypted: use `https`" };
        Ok(format!("Vault accepts the login by `{}`{warning}", self.session.method()))
    }

    /// Reads a path of the API. A token that Vault does not accept any more is replaced once.
    async fn get(&self, path: &[&str]) -> Result<Reply, ExternalSecretError> {
        let token = self.session.token(&self.client).await?;
        let reply = self.client.get(path, &token).await?;
        if reply.status != 403 {
            return Ok(reply);
        }
        match self.session.replace(&self.client, &token).await? {
            Some(token) => {
                let reply = self.client.get(path, &token).await?;
                if reply.status == 403 {
                    self.session.note_useless_login().await;
                }
                Ok(reply)
            }
            None => Ok(reply),
        }
    }
}

/// Returns the keys of a secret. Numbers, lists and maps become JSON.
fn fields(body: &Value) -> Result<SecretValue, ExternalSecretError> {
    let Some(Value::Object(found)) = body.pointer("/data/data") else {
        return Err(ExternalSecretError::InvalidResponse(
            "it has no `data.data`; `secrets.vault.mount` must be a KV store of version 2",
        ));
    };
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let fields: BTreeMap<String, Secret> =
        found.iter().filter_map(|(key, value)| Some((key.clone(), Secret::new(text(value)?)))).collect();
    if fields.is_empty() {
        return Err(ExternalSecretError::NotFound("the secret has no keys"));
    }
    if fields.values().any(|value| value.expose().len() > MAX_VALUE_BYTES) {
        return Err(ExternalSecretError::TooLarge(MAX_VALUE_BYTES));
    }
    let size: usize = fields.iter().map(|(key, value)| key.len() + value.expose().len()).sum();
    if size > MAX_FIELDS_BYTES {
        return Err(ExternalSecretError::FieldsTooLarge(MAX_FIELDS_BYTES));
    }
    Ok(SecretValue::Fields(fields))
}

#[cfg(test)]
mod tests {
    use haft_core::Timestamp;
    use serde_json::json;

    use super::*;

    struct NoClock;

    impl Clock for NoClock {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    fn open(change: impl FnOnce(&mut VaultSettings)) -> Result<Option<Vault>, SourceSettingsError> {
        let mut settings = VaultSettings {
            address: "https://vault.example.com".to_owned(),
            token: Some(Secret::new("t".to_owned())),
            ..VaultSettings::default()
        };
        change(&mut settings);
        Vault::open(&settings, &(Arc::new(NoClock) as Arc<dyn Clock>))
    }

    #[test]
    fn a_prefix_limits_each_tenant_to_its_paths() {
        let vault = open(|settings| {
            settings.path_prefix = "tenants/{tenant}/".to_owned();
            settings.tenants = vec!["*".to_owned()];
        });
        let vault = vault.unwrap().unwrap();
        let check = |tenant: &str, path: &str| {
            let checked = vault.check(&TenantId::new(tenant).unwrap(), path);
            checked.map_err(|error| error.to_string())
        };
        let outside = |prefix: &str| {
            Err(format!(
                "the path is not below `{prefix}`, to which `secrets.vault.path_prefix` limits the tenant"
            ))
        };
        assert_eq!(check("acme", "tenants/acme/weather"), Ok(()));
        assert_eq!(check("acme", "tenants/acme"), outside("tenants/acme"));
        assert_eq!(check("acme", "tenants/acme2/weather"), outside("tenants/acme"));
        assert_eq!(check("acme", "tenants/default/weather"), outside("tenants/acme"));
        assert_eq!(check("default", "tenants/default/weather"), Ok(()));
    }

    #[test]
    fn only_listed_tenants_may_read() {
        let vault = open(|_| {}).unwrap().unwrap();
        assert_eq!(vault.check(&TenantId::default_tenant(), "a"), Ok(()));
        let denied = vault.check(&TenantId::new("acme").unwrap(), "a").unwrap_err().to_string();
        assert_eq!(
            denied,
            "tenant `acme` may not use this source; add the tenant to `secrets.vault.tenants`"
        );
    }

    #[test]
    fn several_tenants_share_paths_unless_the_prefix_names_the_tenant() {
        for (tenants, prefix, expected) in [
            (&["default"][..], "", false),
            (&["default", "default"][..], "", false),
            (&["default", "acme"][..], "", true),
            (&["*"][..], "apps", true),
            (&["*"][..], "tenants/{tenant}", false),
        ] {
            let vault = open(|settings| {
                settings.tenants = tenants.iter().map(|tenant| (*tenant).to_owned()).collect();
                settings.path_prefix = prefix.to_owned();
            });
            assert_eq!(vault.unwrap().unwrap().is_shared(), expected, "{tenants:?} {prefix}");
        }
    }

    #[test]
    fn invalid_settings_are_named() {
        let error = |change: fn(&mut VaultSettings)| open(change).err().unwrap().to_string();
        let address = "`secrets.vault.address` must be a URL such as `https://vault.example.com:8200`, without user or query";
        assert_eq!(error(|settings| settings.address = "vault".to_owned()), address);
        assert_eq!(error(|settings| settings.address = "https://u:p@vault".to_owned()), address);
        assert_eq!(
            error(|settings| settings.mount = "../sys".to_owned()),
            "`secrets.vault.mount` is invalid: the path has the part `.` or `..`"
        );
        assert_eq!(
            error(|settings| settings.mount = String::new()),
            "`secrets.vault.mount` is invalid: the path is empty"
        );
        assert!(open(|settings| settings.address = String::new()).unwrap().is_none());
    }

    #[test]
    fn the_keys_of_a_secret_become_texts() {
        let read = |data: Value| match fields(&json!({"data": {"data": data}})) {
            Ok(value) => value.credential(None).unwrap().expose().to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            read(json!({"key": "k", "port": 5432, "none": null, "list": [1]})),
            r#"{"key":"k","list":"[1]","port":"5432"}"#
        );
        assert_eq!(read(json!({})), "not found: the secret has no keys");
        assert!(read(Value::Null).starts_with("invalid response of Vault: it has no `data.data`"));
        assert!(read(json!({"key": "x".repeat(MAX_VALUE_BYTES + 1)})).starts_with("the value exceeds"));
        let text = "x".repeat(MAX_VALUE_BYTES);
        let (fits, large) = (json!({"a": text, "b": text, "c": text}), ["a", "b", "c", "d"]);
        assert!(read(fits).starts_with("{\"a\""));
        let large: Value = large.iter().map(|key| ((*key).to_owned(), Value::from(text.as_str()))).collect();
        assert_eq!(read(large), "the fields of the secret together exceed the limit of 262144 bytes");
    }
}
