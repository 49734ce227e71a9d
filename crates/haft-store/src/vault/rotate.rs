//! Rotation of the key.
//!
//! With a key file, the new key is on disk in `key.new` before the transaction that encrypts every value with it; then
//! `key.new` is renamed to `key`. Both files are read until that is done, so a crash at any point loses nothing, and the
//! next start ends or undoes the rotation.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use sqlx::{Any, Transaction};

use super::cipher::Cipher;
use super::key;
use super::key_check::{KeyCheck, SealedTable, SealedValue, run_blocking};
use crate::engine::failed_to;
use crate::session::advance_generation;
use crate::store::{Inner, Store};
use crate::watch::notification::ChangeSet;

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

impl Store {
    /// Encrypts all credentials with a new key: the configured one, or else a random one in the key file.
    pub async fn rotate_key(&self) -> Result<KeyRotation, StoreError> {
        self.run(|inner| async move { inner.rotate_key().await }).await
    }
}

impl Inner {
    async fn rotate_key(self: Arc<Self>) -> Result<KeyRotation, StoreError> {
        let failed = |error: BoxError| StoreError::unavailable(ACTION, error);
        let mut state = self.state.lock().await;
        let _lock = match &self.files {
            Some(files) => Some(files.lock().await?),
            None => None,
        };
        let mut tx = self.engine.begin_change().await.map_err(failed_to(ACTION))?;
        // Also records the check value of a database that has none.
        let current = self.cipher_in(&mut tx).await.map_err(failed)?;
        let check = KeyCheck::load(&mut tx).await.map_err(failed_to(ACTION))?;
        let next = self.next_key(&current, check.as_ref()).await?;
        let credentials = self.reseal_all(&mut tx, &next).await?;
        let generation = check.map_or(1, |check| check.generation) + 1;
        let check = KeyCheck::new(generation, &next).map_err(|error| failed(error.into()))?;
        let now = self.now().as_microsecond();
        check.save(&mut tx, now).await.map_err(failed_to(ACTION))?;
        self.engine
            .notify(&mut tx, &self.node, &ChangeSet::credentials())
            .await
            .map_err(failed_to(ACTION))?;
        let advanced = advance_generation(&mut tx, "key").await.map_err(failed_to(ACTION))?;
        tx.commit().await.map_err(failed_to(ACTION))?;
        state.advance(advanced);
        self.settle_files(check).await;
        let is_configured = self.vault.key.next().is_some();
        Ok(KeyRotation { generation, credentials, is_configured })
    }

    /// Returns the new key; if it is random, its file is on disk.
    async fn next_key(&self, current: &Cipher, check: Option<&KeyCheck>) -> Result<Cipher, StoreError> {
        if let Some(next) = self.vault.key.next() {
            if check.is_some_and(|check| check.matches(next)) {
                let message = "the key in `HAFT_KEY_NEW` is already in force; set `HAFT_KEY` to it, and \
                               `HAFT_KEY_NEW` to another key";
                return Err(StoreError::Conflict(message.to_owned()));
            }
            return Ok(next.clone());
        }
        // Other nodes cannot read the key file of this one.
        let (Some(path), Some(_)) = (self.vault.key.file(), &self.files) else {
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
        let Some(path) = self.vault.key.file().filter(|_| self.files.is_some()) else { return };
        let path = path.to_owned();
        if let Err(error) = run_blocking(move || key::settle(&path, |key| check.matches(key))).await {
            tracing::warn!(error, "the new key stays in `key.new` until the next start");
        }
    }
}
