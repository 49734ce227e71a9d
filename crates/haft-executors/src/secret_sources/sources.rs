//! All sources of an installation.

use std::sync::Arc;

use futures_util::future::join_all;
use haft_core::Clock;
use haft_core::name::TenantId;
use haft_core::secret::{ExternalReference, ExternalSecretError, Secret, SourceKind};

use super::cache::SecretCache;
use super::commands::Commands;
use super::files::SecretFiles;
use super::settings::{SecretSourceSettings, SourceSettingsError};
use super::value::SecretValue;
use super::vault::Vault;
use crate::process::Processes;

/// The sources of secrets outside of haft, except the environment.
pub struct SecretSources {
    vault: Option<Vault>,
    files: Option<SecretFiles>,
    commands: Arc<Commands>,
    cache: Arc<SecretCache>,
}

/// Whether a source works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceReport {
    /// The source, as references begin: `vault:`, `cmd:NAME`.
    pub name: String,
    /// What was found.
    pub result: Result<String, ExternalSecretError>,
}

impl SecretSources {
    /// Checks the settings, without connecting to anything.
    pub fn open(
        settings: &SecretSourceSettings,
        processes: Processes,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, SourceSettingsError> {
        Ok(Self {
            vault: Vault::open(&settings.vault, clock)?,
            files: SecretFiles::open(&settings.files, settings.vault.credential_files())?,
            commands: Arc::new(Commands::new(processes, settings.commands.clone())),
            cache: Arc::new(SecretCache::new(Arc::clone(clock))),
        })
    }

    /// Checks that the source of a reference is configured, and that a tenant may read from it. Nothing is read.
    pub fn check(
        &self,
        tenant: &TenantId,
        reference: &ExternalReference<'_>,
    ) -> Result<(), ExternalSecretError> {
        let not_configured = ExternalSecretError::NotConfigured(reference.kind);
        match reference.kind {
            SourceKind::Vault => self.vault.as_ref().ok_or(not_configured)?.check(tenant, reference.path),
            SourceKind::File => self.files.as_ref().ok_or(not_configured)?.check(tenant),
            SourceKind::Command => self.commands.check(tenant, reference.path),
            SourceKind::Environment | SourceKind::Account => Err(not_configured),
        }
    }

    /// Returns a secret.
    pub async fn secret(
        &self,
        tenant: &TenantId,
        reference: &ExternalReference<'_>,
    ) -> Result<Secret, ExternalSecretError> {
        self.read(tenant, reference).await?.select(reference.key)
    }

    /// Returns a secret as a credential: if the reference has no key, all keys as a JSON object.
    pub async fn credential(
        &self,
        tenant: &TenantId,
        reference: &ExternalReference<'_>,
    ) -> Result<Secret, ExternalSecretError> {
        self.read(tenant, reference).await?.credential(reference.key)
    }

    async fn read(
        &self,
        tenant: &TenantId,
        reference: &ExternalReference<'_>,
    ) -> Result<Arc<SecretValue>, ExternalSecretError> {
        self.check(tenant, reference)?;
        let path = reference.path;
        match (reference.kind, &self.vault, &self.files) {
            (SourceKind::Vault, Some(vault), _) => {
                self.cache.get(&format!("vault:{path}"), vault.lifetimes(), vault.read(path)).await
            }
            (SourceKind::File, _, Some(files)) => files.read(path).await.map(Arc::new),
            (SourceKind::Command, ..) => self.command(path).await,
            (kind, ..) => Err(ExternalSecretError::NotConfigured(kind)),
        }
    }

    async fn command(&self, name: &str) -> Result<Arc<SecretValue>, ExternalSecretError> {
        let lifetimes = self.commands.lifetimes(name)?;
        let (cache, commands, name) = (Arc::clone(&self.cache), Arc::clone(&self.commands), name.to_owned());
        // A task of its own: a caller that gives up leaves the output to the next one. The timeout of the command ends it.
        let task =
            tokio::spawn(
                async move { cache.get(&format!("cmd:{name}"), lifetimes, commands.run(&name)).await },
            );
        let stopped = |_| ExternalSecretError::CommandFailed("was interrupted".to_owned());
        task.await.map_err(stopped)?
    }

    /// Returns whether several tenants may read the same paths of Vault, because no prefix separates them.
    pub fn shares_vault_paths(&self) -> bool {
        self.vault.as_ref().is_some_and(Vault::is_shared)
    }

    /// Returns whether each configured source works. Commands run, unless their output is known.
    pub async fn probe(&self) -> Vec<SourceReport> {
        let mut reports = Vec::new();
        if let Some(vault) = &self.vault {
            reports.push(SourceReport { name: "vault:".to_owned(), result: vault.probe().await });
        }
        if let Some(files) = &self.files {
            reports.push(SourceReport { name: "file:".to_owned(), result: files.probe().await });
        }
        let commands = self.commands.names().map(|name| async move {
            let result = self.command(name).await.map(|_| "the command returns a value".to_owned());
            SourceReport { name: format!("cmd:{name}"), result }
        });
        reports.extend(join_all(commands).await);
        reports
    }
}
