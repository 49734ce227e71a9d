//! Putting, listing, deleting and using credentials.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::problem::Problem;
use haft_core::secret::{MASK, Secret, SecretError, SecretSource};
use haft_core::{BoxFuture, Timestamp};
use sqlx::Row as _;

use super::key::{KeySource, Missing};
use super::refresh;
use crate::engine::fault;
use crate::rows;
use crate::session::bump;
use crate::settings::StoreSettings;
use crate::store::{Inner, Store};

const NAME_LENGTH: usize = 128;
const VALUE_BYTES: usize = 64 * 1024;

/// What may be known of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialInfo {
    /// Its name, as `${NAME}` names it.
    pub name: String,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When its value last changed.
    pub modified_at: Timestamp,
    /// Why it cannot be used, where the key does not open it; with the remedy.
    pub error: Option<String>,
}

/// The opened credentials.
pub(crate) struct Vault {
    key: KeySource,
    open: RwLock<Opened>,
}

#[derive(Default)]
struct Opened {
    values: HashMap<(TenantId, String), Secret>,
    /// Names that are stored and do not open, and why.
    shut: HashMap<(TenantId, String), String>,
}

impl Vault {
    pub(crate) fn new(settings: &StoreSettings) -> Result<Self, StoreError> {
        let home = settings.home.as_deref();
        let key = KeySource::new(settings.key.as_ref(), home)
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
        let doing = "list the credentials";
        let sql = "SELECT name, created_at, modified_at FROM credentials WHERE tenant = $1 ORDER BY name";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .fetch_all(&self.inner.engine.pool)
            .await
            .map_err(fault(doing))?;
        let info = |row| {
            let name: String = sqlx::Row::try_get(row, "name")?;
            Ok(CredentialInfo {
                error: self.inner.shut(tenant, &name),
                name,
                created_at: rows::moment(row, "created_at")?,
                modified_at: rows::moment(row, "modified_at")?,
            })
        };
        found.iter().map(info).collect::<Result<_, _>>().map_err(fault(doing))
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
            if let Some(why) = opened.shut.get(&key) {
                return Err(SecretError { name: name.to_owned(), source: why.clone().into() });
            }
            Ok(opened.values.get(&key).cloned())
        })
    }
}

impl Inner {
    /// Opens every stored credential. One that does not open is an error only for who uses it.
    pub(crate) async fn open_vault(&self) -> Result<(), StoreError> {
        let doing = "load the credentials";
        let found = sqlx::query("SELECT tenant, name, sealed FROM credentials")
            .fetch_all(&self.engine.pool)
            .await
            .map_err(fault(doing))?;
        let mut opened = Opened::default();
        if !found.is_empty() {
            let cipher = self.cipher(Missing::Fail).await;
            if let Err(why) = &cipher {
                tracing::error!(%why, "stored credentials cannot be opened");
            }
            for row in &found {
                let tenant: TenantId = rows::parsed(row, "tenant").map_err(fault(doing))?;
                let name: String = row.try_get("name").map_err(fault(doing))?;
                let sealed: &str = row.try_get("sealed").map_err(fault(doing))?;
                let value = match &cipher {
                    Ok(cipher) => cipher.open(tenant.as_str(), &name, sealed).map_err(|_| self.wrong_key()),
                    Err(why) => Err(why.clone()),
                };
                match value {
                    Ok(value) => drop(opened.values.insert((tenant, name), value)),
                    Err(why) => drop(opened.shut.insert((tenant, name), why)),
                }
            }
        }
        *self.vault.open.write().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(())
    }

    /// A key may be made only while there is nothing that a lost one would open.
    pub(super) fn missing_key(&self) -> Missing {
        let opened = self.vault.open.read().unwrap_or_else(PoisonError::into_inner);
        if opened.values.is_empty() && opened.shut.is_empty() { Missing::Make } else { Missing::Fail }
    }

    fn shut(&self, tenant: &TenantId, name: &str) -> Option<String> {
        let opened = self.vault.open.read().unwrap_or_else(PoisonError::into_inner);
        opened.shut.get(&(tenant.clone(), name.to_owned())).cloned()
    }

    fn is_stored(&self, tenant: &TenantId, name: &str, value: &Secret) -> bool {
        let opened = self.vault.open.read().unwrap_or_else(PoisonError::into_inner);
        opened.values.get(&(tenant.clone(), name.to_owned())) == Some(value)
    }

    pub(super) fn wrong_key(&self) -> String {
        let key = self.vault.key.describe();
        format!(
            "{key} is not the one it was encrypted with; put the right key back, or store the credential anew"
        )
    }

    pub(super) async fn cipher(&self, missing: Missing) -> Result<super::cipher::Cipher, String> {
        let source = self.vault.key.clone();
        match tokio::task::spawn_blocking(move || source.cipher(missing)).await {
            Ok(Ok(cipher)) => Ok(cipher),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn put_credential(
        self: Arc<Self>,
        tenant: TenantId,
        name: String,
        value: Secret,
    ) -> Result<(), StoreError> {
        let doing = format!("store the credential `{name}`");
        let mut state = self.state.lock().await;
        let cipher = self
            .cipher(self.missing_key())
            .await
            .map_err(|why| StoreError::unavailable(doing.clone(), why))?;
        let sealed = cipher
            .seal(tenant.as_str(), &name, &value)
            .map_err(|error| StoreError::unavailable(doing.clone(), error))?;
        let now = self.now().as_microsecond();
        let mut tx = self.engine.begin_change().await.map_err(fault(&doing))?;
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
        .map_err(fault(&doing))?;
        // The same value once more says nothing new.
        if !self.is_stored(&tenant, &name, &value) {
            refresh::forget(&mut tx, &tenant, &name).await.map_err(fault(&doing))?;
        }
        self.engine.notify(&mut tx, &format!("{} c -", self.node)).await.map_err(fault(&doing))?;
        let generation = bump(&mut tx, &name).await.map_err(fault(&doing))?;
        tx.commit().await.map_err(fault(&doing))?;
        state.advance(generation);
        let mut opened = self.vault.open.write().unwrap_or_else(PoisonError::into_inner);
        opened.shut.remove(&(tenant.clone(), name.clone()));
        opened.values.insert((tenant, name), value);
        Ok(())
    }

    async fn delete_credential(self: Arc<Self>, tenant: TenantId, name: String) -> Result<(), StoreError> {
        let doing = format!("delete the credential `{name}`");
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(fault(&doing))?;
        let done = sqlx::query("DELETE FROM credentials WHERE tenant = $1 AND name = $2")
            .bind(tenant.as_str())
            .bind(&name)
            .execute(&mut *tx)
            .await
            .map_err(fault(&doing))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::not_found("credential", name));
        }
        refresh::forget(&mut tx, &tenant, &name).await.map_err(fault(&doing))?;
        self.engine.notify(&mut tx, &format!("{} c -", self.node)).await.map_err(fault(&doing))?;
        let generation = bump(&mut tx, &name).await.map_err(fault(&doing))?;
        tx.commit().await.map_err(fault(&doing))?;
        state.advance(generation);
        let mut opened = self.vault.open.write().unwrap_or_else(PoisonError::into_inner);
        opened.shut.remove(&(tenant.clone(), name.clone()));
        opened.values.remove(&(tenant, name));
        Ok(())
    }
}

fn check(name: &str, value: &Secret) -> Result<(), StoreError> {
    let mut letters = name.chars();
    let start = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let rest = letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let mut problems = Vec::new();
    if !start || !rest || name.len() > NAME_LENGTH {
        let message = format!(
            "start with a letter or `_`, go on with letters, digits, `_`, `.` or `-`; at most {NAME_LENGTH} characters"
        );
        problems.push(Problem::new("name", "invalid_name", message));
    }
    if value.expose().is_empty() {
        problems.push(Problem::new("value", "empty", "give the credential a value"));
    } else if value.expose() == MASK {
        problems.push(Problem::new(
            "value",
            "masked",
            "`***` stands for a value that is not shown; give the value itself",
        ));
    } else if value.expose().len() > VALUE_BYTES {
        let message = format!("it has {} bytes; at most {VALUE_BYTES} are kept", value.expose().len());
        problems.push(Problem::new("value", "too_large", message));
    }
    if problems.is_empty() { Ok(()) } else { Err(StoreError::Invalid(problems)) }
}
