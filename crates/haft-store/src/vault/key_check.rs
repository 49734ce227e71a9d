//! Which key is in force: the table has a known value that is encrypted with it.

use haft_core::catalog::StoreError;
use haft_core::secret::Secret;
use sqlx::{AnyConnection, Row as _};

use super::cipher::{Cipher, CipherError};
use super::key::{self, KeyError};
use super::{refresh, signing_keys};
use crate::engine::failed_to;
use crate::vault::Vault;

/// The name that the known value is encrypted with; no credential has such a name.
const CHECK_NAME: &str = "key check";
const CHECK_VALUE: &str = "haft";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The known value.
pub(super) struct KeyCheck {
    /// The number of keys so far.
    pub(super) generation: i64,
    sealed: String,
}

impl KeyCheck {
    pub(super) fn new(generation: i64, cipher: &Cipher) -> Result<Self, CipherError> {
        let sealed = cipher.seal("", CHECK_NAME, &Secret::new(CHECK_VALUE.to_owned()))?;
        Ok(Self { generation, sealed })
    }

    /// Returns the known value; `None` if no key was used yet, or only by a version of haft that did not store one.
    pub(super) async fn load(connection: &mut AnyConnection) -> Result<Option<Self>, sqlx::Error> {
        let row = sqlx::query("SELECT generation, sealed FROM vault_key WHERE one = 1")
            .fetch_optional(connection)
            .await?;
        let check = |row: sqlx::any::AnyRow| {
            Ok(Self { generation: row.try_get("generation")?, sealed: row.try_get("sealed")? })
        };
        row.map(check).transpose()
    }

    pub(super) async fn save(&self, connection: &mut AnyConnection, now: i64) -> Result<(), sqlx::Error> {
        let sql = "INSERT INTO vault_key (one, generation, sealed, modified_at) VALUES (1, $1, $2, $3) \
                   ON CONFLICT (one) DO UPDATE SET generation = excluded.generation, sealed = excluded.sealed, \
                   modified_at = excluded.modified_at";
        let save = sqlx::query(sql).bind(self.generation).bind(&self.sealed).bind(now);
        save.execute(connection).await.map(drop)
    }

    /// Returns whether a key is the one in force.
    pub(super) fn matches(&self, cipher: &Cipher) -> bool {
        cipher.open("", CHECK_NAME, &self.sealed).is_ok()
    }
}

/// The table of an encrypted value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SealedTable {
    Credentials,
    RefreshTokens,
    Webhooks,
    SigningKeys,
}

/// Returns the name that the secret of a webhook is encrypted with; no credential has such a name.
pub(crate) fn webhook_secret_name(id: &str) -> String {
    format!("webhook {id}")
}

/// An encrypted value.
pub(super) struct SealedValue {
    pub(super) table: SealedTable,
    pub(super) tenant: String,
    /// The name of the credential, the key of the grant, the id of the webhook, or the purpose of the signing key.
    pub(super) key: String,
    sealed: String,
}

impl SealedValue {
    /// Returns all encrypted values.
    pub(super) async fn load_all(connection: &mut AnyConnection) -> Result<Vec<Self>, sqlx::Error> {
        let credentials = "SELECT tenant, name, sealed FROM credentials";
        let tokens = "SELECT tenant, grant_key, sealed FROM refresh_tokens WHERE sealed IS NOT NULL";
        let webhooks = "SELECT tenant, id, sealed FROM webhooks";
        let signing_keys =
            "SELECT '', purpose, SUBSTR(value, 8) FROM signing_keys WHERE value LIKE 'sealed:%'";
        let mut values = Vec::new();
        for (table, sql) in [
            (SealedTable::Credentials, credentials),
            (SealedTable::RefreshTokens, tokens),
            (SealedTable::Webhooks, webhooks),
            (SealedTable::SigningKeys, signing_keys),
        ] {
            for row in sqlx::query(sql).fetch_all(&mut *connection).await? {
                let (tenant, key, sealed) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
                values.push(Self { table, tenant, key, sealed });
            }
        }
        Ok(values)
    }

    pub(super) fn open(&self, cipher: &Cipher) -> Result<Secret, CipherError> {
        cipher.open(&self.tenant, &self.sealed_name(), &self.sealed)
    }

    /// Replaces the stored value by one that is encrypted with another key.
    pub(super) async fn reseal(
        &self,
        connection: &mut AnyConnection,
        cipher: &Cipher,
        value: &Secret,
    ) -> Result<(), BoxError> {
        let sealed = cipher.seal(&self.tenant, &self.sealed_name(), value)?;
        let sql = match self.table {
            SealedTable::Credentials => "UPDATE credentials SET sealed = $1 WHERE tenant = $2 AND name = $3",
            SealedTable::RefreshTokens => {
                "UPDATE refresh_tokens SET sealed = $1 WHERE tenant = $2 AND grant_key = $3"
            }
            SealedTable::Webhooks => "UPDATE webhooks SET sealed = $1 WHERE tenant = $2 AND id = $3",
            SealedTable::SigningKeys => {
                "UPDATE signing_keys SET value = 'sealed:' || $1 WHERE $2 = '' AND purpose = $3"
            }
        };
        sqlx::query(sql).bind(sealed).bind(&self.tenant).bind(&self.key).execute(connection).await?;
        Ok(())
    }

    fn sealed_name(&self) -> String {
        match self.table {
            SealedTable::Credentials => self.key.clone(),
            SealedTable::RefreshTokens => refresh::sealed_name(&self.key),
            SealedTable::Webhooks => webhook_secret_name(&self.key),
            SealedTable::SigningKeys => signing_keys::sealed_name(&self.key),
        }
    }
}

impl Vault {
    /// Checks that the key in force is available, and ends a rotation that a crash interrupted. A wrong key stops the
    /// start: new credentials would be encrypted with it.
    pub(crate) async fn verify_key(&self) -> Result<(), StoreError> {
        let action = "use the key of the stored credentials";
        let lock = match (&self.db.files, self.key.file()) {
            // Another process may be rotating the key.
            (Some(files), Some(path)) if key::new_file(path).exists() => Some(files.lock().await?),
            _ => None,
        };
        let mut connection = self.db.engine.pool.acquire().await.map_err(failed_to(action))?;
        let check = KeyCheck::load(&mut connection).await.map_err(failed_to(action))?;
        let values = match &check {
            Some(_) => Vec::new(),
            None => SealedValue::load_all(&mut connection).await.map_err(failed_to(action))?,
        };
        if check.is_none() && values.is_empty() {
            return Ok(());
        }
        let is_in_force = move |key: &Cipher| match &check {
            Some(check) => check.matches(key),
            None => values.iter().any(|value| value.open(key).is_ok()),
        };
        let candidates = self.candidates().await.map_err(|reason| StoreError::unavailable(action, reason))?;
        if !candidates.iter().any(&is_in_force) {
            return Err(StoreError::unavailable(action, self.wrong_key()));
        }
        if let (Some(_lock), Some(path)) = (&lock, self.key.file()) {
            let path = path.to_owned();
            let settled = run_blocking(move || key::settle(&path, is_in_force)).await;
            settled.map_err(|reason| StoreError::unavailable(action, reason))?;
        }
        Ok(())
    }

    /// Returns the keys that may be in force.
    pub(crate) async fn candidates(&self) -> Result<Vec<Cipher>, String> {
        let source = self.key.clone();
        run_blocking(move || source.candidates()).await
    }

    /// Returns the key in force, to encrypt a value within a change: no other process can rotate it meanwhile. The
    /// first one creates the key.
    pub(crate) async fn cipher_in(&self, connection: &mut AnyConnection) -> Result<Cipher, BoxError> {
        if let Some(check) = KeyCheck::load(connection).await? {
            let found = self.candidates().await?.into_iter().find(|key| check.matches(key));
            return found.ok_or_else(|| self.wrong_key().into());
        }
        let values = SealedValue::load_all(connection).await?;
        let cipher = if values.is_empty() {
            let source = self.key.clone();
            run_blocking(move || source.current_or_new()).await?
        } else {
            let opens = |key: &Cipher| values.iter().any(|value| value.open(key).is_ok());
            self.candidates().await?.into_iter().find(opens).ok_or_else(|| self.wrong_key())?
        };
        KeyCheck::new(1, &cipher)?.save(connection, self.db.now().as_microsecond()).await?;
        Ok(cipher)
    }

    pub(super) fn wrong_key(&self) -> String {
        let key = self.key.describe();
        let fix = if self.key.file().is_some() {
            "restore the right key"
        } else {
            "restore the right key, or set `HAFT_KEY` to the new one if it was rotated"
        };
        format!("{key} is not the key that the stored credentials are encrypted with; {fix}")
    }
}

/// Runs work on key files off the async workers.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyError> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| error.with_cause()),
        Err(error) => Err(error.to_string()),
    }
}
