//! Reads secrets from the files of one folder, such as secrets that Kubernetes or Docker mounts.

use std::path::PathBuf;
use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::secret::ExternalSecretError;

use super::settings::{SecretFileSettings, SourceSettingsError, has_tenant};
use super::value::{MAX_VALUE_BYTES, SecretValue};
use crate::files::{SmallFileError, read_small};

/// The folder with the service account token of a Kubernetes pod, beside mounted secrets.
const KUBERNETES: &str = "kubernetes.io";

/// A folder whose files are secrets.
pub(super) struct SecretFiles {
    directory: PathBuf,
    tenants: Vec<String>,
    /// haft's own credentials, which no reference may read.
    hidden: Arc<[PathBuf]>,
}

impl SecretFiles {
    /// Checks the settings; `None` if no folder is configured.
    pub(super) fn open(
        settings: &SecretFileSettings,
        hidden: Vec<PathBuf>,
    ) -> Result<Option<Self>, SourceSettingsError> {
        match &settings.directory {
            None => Ok(None),
            Some(directory) if !directory.is_absolute() => Err(SourceSettingsError::Directory),
            Some(directory) => Ok(Some(Self {
                directory: directory.clone(),
                tenants: settings.tenants.clone(),
                hidden: hidden.into(),
            })),
        }
    }

    /// Checks that a tenant may read the files.
    pub(super) fn check(&self, tenant: &TenantId) -> Result<(), ExternalSecretError> {
        if has_tenant(&self.tenants, tenant) {
            return Ok(());
        }
        let setting = "secrets.files.tenants".to_owned();
        Err(ExternalSecretError::TenantDenied { tenant: tenant.to_string(), setting })
    }

    /// Reads a file. It is not kept: a change takes effect at once.
    pub(super) async fn read(&self, path: &str) -> Result<SecretValue, ExternalSecretError> {
        let unusable = |reason: String| ExternalSecretError::File(format!("the file {reason}"));
        if path.split('/').next() == Some(KUBERNETES) {
            return Err(unusable("does not exist".to_owned()));
        }
        let (directory, hidden, path) = (self.directory.clone(), Arc::clone(&self.hidden), path.to_owned());
        let reading =
            tokio::task::spawn_blocking(move || read_small(&directory, &path, MAX_VALUE_BYTES, &hidden));
        let read = reading.await.map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let bytes = read.map_err(|error| match error {
            SmallFileError::TooLarge => ExternalSecretError::TooLarge(MAX_VALUE_BYTES),
            SmallFileError::Unusable(reason) => unusable(reason),
        })?;
        SecretValue::from_bytes(bytes)
    }

    /// Checks that the folder can be opened.
    pub(super) async fn probe(&self) -> Result<String, ExternalSecretError> {
        let shown = self.directory.display();
        match tokio::fs::read_dir(&self.directory).await {
            Ok(_) => Ok(format!("the folder `{shown}` can be read")),
            Err(error) => {
                Err(ExternalSecretError::File(format!("the folder `{shown}` cannot be read: {error}")))
            }
        }
    }
}
