//! Rotation of the key.
//!
//! With a key file, the new key is on disk in `key.new` before the transaction that encrypts every value with it; then
//! `key.new` is renamed to `key`. Both files are read until that is done, so a crash at any point loses nothing, and the
//! next start ends or undoes the rotation.

use haft_core::catalog::StoreError;
use sqlx::{Any, Transaction};

use super::cipher::Cipher;
use super::key;
use super::key_check::{KeyCheck, SealedTable, SealedValue, run_blocking};
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::vault::Vault;

const ACTION: &str = "rotate the key of the stored credentials";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A finished rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRotation {
    /// The number of keys so far.
    pub generation: i64,
    /// The number of credentials that were encrypted again.
    pub credentials: usize,
    /// Whether the new key is a configured one, which has to replace the old one in the configuration.
    pub is_configured: bool,
}

impl Vault {
    /// Encrypts all credentials with a new key: the configured one, or else a random one in the key file.
    pub async fn rotate_key(&self) -> Result<KeyRotation, StoreError> {
        let this = self.clone();
        let work = async move {
            let failed = |error: BoxError| StoreError::unavailable(ACTION, error);
            let _lock = match &this.db.files {
                Some(files) => Some(files.lock().await?),
                None => None,
            };
            let mut change = this.db.begin_shared().await.map_err(failed_to(ACTION))?;
            // Also records the check value of a database that has none.
            let current = this.cipher_in(&mut change.tx).await.map_err(failed)?;
            let check = KeyCheck::load(&mut change.tx).await.map_err(failed_to(ACTION))?;
            let next = this.next_key(&current, check.as_ref()).await?;
            let credentials = this.reseal_all(&mut change.tx, &next).await?;
            let generation = check.map_or(1, |check| check.generation) + 1;
            let check = KeyCheck::new(generation, &next).map_err(|error| failed(error.into()))?;
            let now = this.db.now().as_microsecond();
            check.save(&mut change.tx, now).await.map_err(failed_to(ACTION))?;
            let _lock = change.commit(&ChangeSet::credentials(), "key").await.map_err(failed_to(ACTION))?;
            this.settle_files(check).await;
            let is_configured = this.key.next().is_some();
            Ok(KeyRotation { generation, credentials, is_configured })
        };
        self.db.complete(work).await
    }
}

impl Vault {
    /// Returns the new key; if it is random, its file is on disk.
    async fn next_key(&self, current: &Cipher, check: Option<&KeyCheck>) -> Result<Cipher, StoreError> {
        if let Some(next) = self.key.next() {
            if check.is_some_and(|check| check.matches(next)) {
                let message = "the key in `HAFT_KEY_NEW` is already in force; set `HAFT_KEY` to it, and \
                               `HAFT_KEY_NEW` to another key";
                return Err(StoreError::Conflict(message.to_owned()));
            }
            return Ok(next.clone());
        }
        // Other nodes cannot read the key file of this one.
        let (Some(path), Some(_)) = (self.key.file(), &self.db.files) else {
            let message = "no new key is configured: set `HAFT_KEY_NEW` on every node to 64 hexadecimal digits, e.g. \
                           from `openssl rand -hex 32`, restart them, and rotate again";
            return Err(StoreError::Conflict(message.to_owned()));
        };
        let path = path.to_owned();
        // A key in `key.new` that is in force would be lost: the end of the last rotation failed.
        let probe = KeyCheck::new(0, current).map_err(|error| StoreError::unavailable(ACTION, error))?;
        let created = run_blocking(move || {
            key::settle(&path, |key| probe.matches(key))?;
            key::create_new(&path)
        });
        created.await.map_err(|reason| StoreError::unavailable(ACTION, reason))
    }

    /// Encrypts every value with another key; returns the number of credentials.
    async fn reseal_all(
        &self,
        tx: &mut Transaction<'static, Any>,
        next: &Cipher,
    ) -> Result<usize, StoreError> {
        let candidates = self.candidates().await.map_err(|reason| StoreError::unavailable(ACTION, reason))?;
        let mut credentials = 0;
        for value in SealedValue::load_all(tx).await.map_err(failed_to(ACTION))? {
            match (candidates.iter().find_map(|key| value.open(key).ok()), value.table) {
                (Some(secret), table) => {
                    let resealed = value.reseal(tx, next, &secret).await;
                    resealed.map_err(|error| StoreError::unavailable(ACTION, error))?;
                    credentials += usize::from(table == SealedTable::Credentials);
                }
                (None, SealedTable::Credentials) => {
                    return Err(StoreError::Conflict(format!(
                        "the credential `{}` of the tenant `{}` cannot be decrypted; delete it or store it again, then rotate the key",
                        value.key, value.tenant
                    )));
                }
                (None, SealedTable::Webhooks) => {
                    return Err(StoreError::Conflict(format!(
                        "the secret of the webhook `{}` of the tenant `{}` cannot be decrypted; delete the webhook, then rotate the key",
                        value.key, value.tenant
                    )));
                }
                (None, SealedTable::SigningKeys) => {
                    return Err(StoreError::Conflict(format!(
                        "the signing key `{}` cannot be decrypted; restore the key that it was encrypted with, then rotate the key",
                        value.key
                    )));
                }
                // It is not used either: the tool uses the credential that it came from.
                (None, SealedTable::RefreshTokens) => {
                    tracing::warn!(
                        tenant = value.tenant,
                        "a refresh token that cannot be decrypted stays as it is"
                    );
                }
            }
        }
        Ok(credentials)
    }

    /// Renames the file of the new key. If that fails, the next start does it.
    async fn settle_files(&self, check: KeyCheck) {
        let Some(path) = self.key.file().filter(|_| self.db.files.is_some()) else { return };
        let path = path.to_owned();
        if let Err(error) = run_blocking(move || key::settle(&path, |key| check.matches(key))).await {
            tracing::warn!(error, "the new key stays in `key.new` until the next start");
        }
    }
}
