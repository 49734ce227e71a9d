//! The settings of the sources, as the administrator writes them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use haft_core::name::TenantId;
use haft_core::secret::Secret;

/// The entry in a list of tenants that stands for all of them.
const EVERY_TENANT: &str = "*";

/// The file with the service account token of a Kubernetes pod.
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// The sources of secrets outside of haft.
#[derive(Debug, Clone, Default)]
pub struct SecretSourceSettings {
    /// HashiCorp Vault or OpenBao.
    pub vault: VaultSettings,
    /// A folder with files.
    pub files: SecretFileSettings,
    /// Commands by name.
    pub commands: BTreeMap<String, SecretCommandSettings>,
}

/// How haft reads from the KV store (version 2) of HashiCorp Vault or OpenBao.
#[derive(Debug, Clone)]
pub struct VaultSettings {
    /// The address, such as `https://vault.example.com:8200`; empty means that there is no Vault.
    pub address: String,
    /// The path of the KV store.
    pub mount: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// How haft logs in.
    pub auth: VaultAuth,
    /// The path of the auth method; empty for its usual one.
    pub auth_mount: String,
    /// The token.
    pub token: Option<Secret>,
    /// A file with the token, which is read again for each request.
    pub token_file: Option<PathBuf>,
    /// The role id of `approle`.
    pub role_id: String,
    /// The secret id of `approle`.
    pub secret_id: Option<Secret>,
    /// A file with the secret id.
    pub secret_id_file: Option<PathBuf>,
    /// The role of `kubernetes`.
    pub role: String,
    /// The file with the service account token.
    pub jwt_file: PathBuf,
    /// A file with further root certificates in PEM format.
    pub ca_file: Option<PathBuf>,
    /// The beginning of all paths, such as `tenants/{tenant}`; empty allows every path.
    pub path_prefix: String,
    /// The tenants that may read from it.
    pub tenants: Vec<String>,
    /// How long one request may take.
    pub timeout: Duration,
    /// How long a value is kept.
    pub cache: Duration,
    /// How much longer it is used while Vault does not respond.
    pub stale: Duration,
}

impl Default for VaultSettings {
    fn default() -> Self {
        Self {
            address: String::new(),
            mount: "secret".to_owned(),
            namespace: String::new(),
            auth: VaultAuth::Token,
            auth_mount: String::new(),
            token: None,
            token_file: None,
            role_id: String::new(),
            secret_id: None,
            secret_id_file: None,
            role: String::new(),
            jwt_file: SERVICE_ACCOUNT_TOKEN.into(),
            ca_file: None,
            path_prefix: String::new(),
            tenants: only_default(),
            timeout: Duration::from_secs(5),
            cache: Duration::from_mins(5),
            stale: Duration::ZERO,
        }
    }
}

impl VaultSettings {
    /// Returns the files with haft's own credentials, whether the auth method reads them or not. The usual file of a pod
    /// is one of them, because Kubernetes mounts it without being asked.
    pub(super) fn credential_files(&self) -> Vec<PathBuf> {
        let own = [&self.token_file, &self.secret_id_file].into_iter().flatten().cloned();
        own.chain([self.jwt_file.clone(), SERVICE_ACCOUNT_TOKEN.into()]).collect()
    }
}

/// How haft logs in to Vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultAuth {
    /// With a token.
    Token,
    /// With a role id and a secret id.
    AppRole,
    /// With the service account token of a Kubernetes pod.
    Kubernetes,
}

impl VaultAuth {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::Token, Self::AppRole, Self::Kubernetes];

    /// Returns the name used in the configuration, which is also the usual path of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::AppRole => "approle",
            Self::Kubernetes => "kubernetes",
        }
    }
}

/// A folder whose files are secrets.
#[derive(Debug, Clone)]
pub struct SecretFileSettings {
    /// The folder; `None` means that there is none.
    pub directory: Option<PathBuf>,
    /// The tenants that may read its files.
    pub tenants: Vec<String>,
}

impl Default for SecretFileSettings {
    fn default() -> Self {
        Self { directory: None, tenants: only_default() }
    }
}

/// A command whose output is a secret.
#[derive(Debug, Clone)]
pub struct SecretCommandSettings {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment variables, in addition to `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, Secret)>,
    /// How long it may run.
    pub timeout: Duration,
    /// How long its output is kept.
    pub cache: Duration,
    /// The tenants that may use it.
    pub tenants: Vec<String>,
}

impl SecretCommandSettings {
    /// Returns the settings of a command line, with defaults.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            environment: Vec::new(),
            timeout: Duration::from_secs(10),
            cache: Duration::from_mins(5),
            tenants: only_default(),
        }
    }
}

fn only_default() -> Vec<String> {
    vec![TenantId::default_tenant().to_string()]
}

/// Returns whether a list of tenants has a tenant.
pub(super) fn has_tenant(tenants: &[String], tenant: &TenantId) -> bool {
    tenants.iter().any(|listed| listed == EVERY_TENANT || listed == tenant.as_str())
}

/// Returns whether a list of tenants stands for more than one.
pub(super) fn has_several(tenants: &[String]) -> bool {
    let differs = |listed: &String| Some(listed) != tenants.first();
    tenants.iter().any(|listed| listed == EVERY_TENANT || differs(listed))
}

/// Settings that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceSettingsError {
    /// The address is not the URL of a server.
    #[error(
        "`secrets.vault.address` must be a URL such as `https://vault.example.com:8200`, without user or query"
    )]
    Address,
    /// A setting is missing.
    #[error("`secrets.vault.auth` is `{auth}`, which requires {missing}")]
    Missing {
        /// The auth method.
        auth: &'static str,
        /// The names of the settings.
        missing: &'static str,
    },
    /// Two settings exclude each other.
    #[error("`secrets.vault.{0}` and `secrets.vault.{0}_file` exclude each other")]
    Twice(&'static str),
    /// A path is invalid.
    #[error("`secrets.vault.{setting}` is invalid: {reason}")]
    Path {
        /// The setting.
        setting: &'static str,
        /// What is invalid.
        reason: &'static str,
    },
    /// The folder is a relative path.
    #[error("`secrets.files.directory` must be an absolute path")]
    Directory,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tenants_names_them_or_all() {
        let [default, acme] = ["default", "acme"].map(|id| TenantId::new(id).unwrap());
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(has_tenant(&only_default(), &default) && !has_tenant(&only_default(), &acme));
        assert!(has_tenant(&own(&["acme"]), &acme) && !has_tenant(&own(&["acme"]), &default));
        assert!(has_tenant(&own(&["*"]), &acme));
        assert!(!has_tenant(&[], &default));
    }
}
