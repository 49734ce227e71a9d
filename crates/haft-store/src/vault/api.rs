//! Storing, listing, deleting and reading credentials.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::problem::Problem;
use haft_core::secret::{MASK, Secret, SecretError, SecretSource};
use haft_core::{BoxFuture, Timestamp};
use sqlx::Row as _;

use super::cipher::Cipher;
use super::key::KeySource;
use super::refresh;
use crate::engine::failed_to;
use crate::rows;
use crate::session::advance_generation;
use crate::settings::StoreSettings;
use crate::store::{Inner, Store};
use crate::watch::notification::ChangeSet;

const MAX_NAME_BYTES: usize = 128;
const MAX_VALUE_BYTES: usize = 64 * 1024;

/// A credential without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialInfo {
    /// Its name, as in `${NAME}`.
    pub name: String,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When its value last changed.
    pub modified_at: Timestamp,
    /// Why it cannot be decrypted, and the fix.
    pub error: Option<String>,
}

/// The decrypted credentials and their key.
pub(crate) struct Vault {
    pub(super) key: KeySource,
    open: RwLock<OpenCredentials>,
}

#[derive(Default)]
struct OpenCredentials {
    values: HashMap<(TenantId, String), Secret>,
    /// The credentials that could not be decrypted, and why.
    failed: HashMap<(TenantId, String), String>,
}

impl Vault {
    pub(crate) fn new(settings: &StoreSettings) -> Result<Self, StoreError> {
        let home = settings.home.as_deref();
        let key = KeySource::new(settings.key.as_ref(), settings.new_key.as_ref(), home)
            .map_err(|error| StoreError::unavailable("use the configured key", error))?;
        Ok(Self { key, open: RwLock::default() })
    }
}

impl Store {
    /// Stores a credential, or replaces its value.
    pub async fn put_credential(
        &self,
        tenant: TenantId,
        name: String,
        value: Secret,
    ) -> Result<(), StoreError> {
        check(&name, &value)?;
        self.run(|inner| async move { inner.put_credential(tenant, name, value).await }).await
    }

    /// Lists the credentials of a tenant by name; never their values.
    pub async fn credentials(&self, tenant: &TenantId) -> Result<Vec<CredentialInfo>, StoreError> {
        let action = "list the credentials";
        let sql = "SELECT name, created_at, modified_at FROM credentials WHERE tenant = $1 ORDER BY name";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .fetch_all(&self.inner.engine.pool)
            .await
            .map_err(failed_to(action))?;
        let info = |row| {
            let name: String = sqlx::Row::try_get(row, "name")?;
            Ok(CredentialInfo {
                error: self.inner.credential_error(tenant, &name),
                name,
                created_at: rows::timestamp(row, "created_at")?,
                modified_at: rows::timestamp(row, "modified_at")?,
            })
        };
        found.iter().map(info).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Deletes a credential.
    pub async fn delete_credential(&self, tenant: TenantId, name: String) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.delete_credential(tenant, name).await }).await
    }
}

impl SecretSource for Store {
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move {
            let opened = self.inner.vault.open.read().unwrap_or_else(PoisonError::into_inner);
            let key = (tenant.clone(), name.to_owned());
            if let Some(reason) = opened.failed.get(&key) {
                return Err(SecretError { name: name.to_owned(), source: reason.clone().into() });
            }
            Ok(opened.values.get(&key).cloned())
        })
    }
}

impl Inner {
    /// Decrypts all stored credentials. A failure is an error only when the credential is used.
    pub(crate) async fn open_vault(&self) -> Result<(), StoreError> {
        let mut opened = self.load_credentials().await?;
        if !opened.failed.is_empty() {
            // The key may have been rotated between reading the key and the table.
            opened = self.load_credentials().await?;
        }
        if let Some(reason) = opened.failed.values().next() {
            tracing::error!(
                credentials = opened.failed.len(),
                error = reason,
                "cannot decrypt stored credentials"
            );
        }
        *self.vault.open.write().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(())
    }

    async fn load_credentials(&self) -> Result<OpenCredentials, StoreError> {
        let action = "load the credentials";
        let found = sqlx::query("SELECT tenant, name, sealed FROM credentials")
            .fetch_all(&self.engine.pool)
            .await
            .map_err(failed_to(action))?;
        let mut opened = OpenCredentials::default();
        if found.is_empty() {
            return Ok(opened);
        }
        let candidates = self.candidates().await;
        for row in &found {
            let tenant: TenantId = rows::parse_column(row, "tenant").map_err(failed_to(action))?;
            let name: String = row.try_get("name").map_err(failed_to(action))?;
            let sealed: &str = row.try_get("sealed").map_err(failed_to(action))?;
            let open = |cipher: &Cipher| cipher.open(tenant.as_str(), &name, sealed).ok();
            let value = match &candidates {
                Ok(candidates) => candidates.iter().find_map(open).ok_or_else(|| self.wrong_key()),
                Err(reason) => Err(reason.clone()),
            };
            match value {
                Ok(value) => drop(opened.values.insert((tenant, name), value)),
                Err(reason) => drop(opened.failed.insert((tenant, name), reason)),
            }
        }
        Ok(opened)
    }

    fn credential_error(&self, tenant: &TenantId, name: &str) -> Option<String> {
        let opened = self.vault.open.read().unwrap_or_else(PoisonError::into_inner);
        opened.failed.get(&(tenant.clone(), name.to_owned())).cloned()
    }

    fn is_stored(&self, tenant: &TenantId, name: &str, value: &Secret) -> bool {
        let opened = self.vault.open.read().unwrap_or_else(PoisonError::into_inner);
        opened.values.get(&(tenant.clone(), name.to_owned())) == Some(value)
    }

    async fn put_credential(
        self: Arc<Self>,
        tenant: TenantId,
        name: String,
        value: Secret,
    ) -> Result<(), StoreError> {
        let action = format!("store the credential `{name}`");
        let mut state = self.state.lock().await;
        let now = self.now().as_microsecond();
        let mut tx = self.engine.begin_change().await.map_err(failed_to(&action))?;
        let cipher =
            self.cipher_in(&mut tx).await.map_err(|error| StoreError::unavailable(action.clone(), error))?;
        let sealed = cipher
            .seal(tenant.as_str(), &name, &value)
            .map_err(|error| StoreError::unavailable(action.clone(), error))?;
        sqlx::query(
            "INSERT INTO credentials (tenant, name, sealed, created_at, modified_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tenant, name) DO UPDATE SET sealed = excluded.sealed, modified_at = excluded.modified_at",
        )
        .bind(tenant.as_str())
        .bind(&name)
        .bind(sealed)
        .bind(now)
        .bind(now)
        .execute(&mut *tx)
        .await
        .map_err(failed_to(&action))?;
        // Storing the same value again keeps its refresh tokens.
        if !self.is_stored(&tenant, &name, &value) {
            refresh::forget(&mut tx, &tenant, &name).await.map_err(failed_to(&action))?;
        }
        self.engine
            .notify(&mut tx, &self.node, &ChangeSet::credentials())
            .await
            .map_err(failed_to(&action))?;
        let generation = advance_generation(&mut tx, &name).await.map_err(failed_to(&action))?;
        tx.commit().await.map_err(failed_to(&action))?;
        state.advance(generation);
        let mut opened = self.vault.open.write().unwrap_or_else(PoisonError::into_inner);
        opened.failed.remove(&(tenant.clone(), name.clone()));
        opened.values.insert((tenant, name), value);
        Ok(())
    }

    async fn delete_credential(self: Arc<Self>, tenant: TenantId, name: String) -> Result<(), StoreError> {
        let action = format!("delete the credential `{name}`");
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(&action))?;
        let done = sqlx::query("DELETE FROM credentials WHERE tenant = $1 AND name = $2")
            .bind(tenant.as_str())
            .bind(&name)
            .execute(&mut *tx)
            .await
            .map_err(failed_to(&action))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("credential", name));
        }
        refresh::forget(&mut tx, &tenant, &name).await.map_err(failed_to(&action))?;
        self.engine
            .notify(&mut tx, &self.node, &ChangeSet::credentials())
            .await
            .map_err(failed_to(&action))?;
        let generation = advance_generation(&mut tx, &name).await.map_err(failed_to(&action))?;
        tx.commit().await.map_err(failed_to(&action))?;
        state.advance(generation);
        let mut opened = self.vault.open.write().unwrap_or_else(PoisonError::into_inner);
        opened.failed.remove(&(tenant.clone(), name.clone()));
        opened.values.remove(&(tenant, name));
        Ok(())
    }
}

fn check(name: &str, value: &Secret) -> Result<(), StoreError> {
    let mut letters = name.chars();
    let start = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let rest = letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let mut problems = Vec::new();
    if !start || !rest || name.len() > MAX_NAME_BYTES {
        let message = format!(
            "invalid name: start with a letter or `_`, continue with letters, digits, `_`, `.` or `-`; at most {MAX_NAME_BYTES} characters"
        );
        problems.push(Problem::new("name", "invalid_name", message));
    }
    if value.expose().is_empty() {
        problems.push(Problem::new("value", "empty", "the value is empty"));
    } else if value.expose() == MASK {
        problems.push(Problem::new(
            "value",
            "masked",
            "`***` is the mask of a hidden value; pass the value itself",
        ));
    } else if value.expose().len() > MAX_VALUE_BYTES {
        let message = format!("{} bytes exceed the limit of {MAX_VALUE_BYTES}", value.expose().len());
        problems.push(Problem::new("value", "too_large", message));
    }
    if problems.is_empty() { Ok(()) } else { Err(StoreError::Invalid(problems)) }
}
