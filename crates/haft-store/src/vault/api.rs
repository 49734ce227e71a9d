//! Storing, listing, deleting and reading credentials.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::secret::{CredentialSelector, Secret, SecretError, SecretSource};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::cipher::Cipher;
use super::credential::{Credential, CredentialInfo, CredentialPurpose, OpenCredential};
use super::key::KeySource;
use super::refresh;
use crate::engine::failed_to;
use crate::rows;
use crate::session::advance_generation;
use crate::settings::StoreSettings;
use crate::store::{Inner, Store};
use crate::watch::notification::ChangeSet;

/// The decrypted credentials and their key.
pub(crate) struct Vault {
    pub(super) key: KeySource,
    open: RwLock<OpenCredentials>,
}

#[derive(Default)]
struct OpenCredentials {
    values: HashMap<(TenantId, String), OpenCredential>,
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
    /// Stores a plain value for `${NAME}`, or replaces it.
    pub async fn put_credential(
        &self,
        tenant: TenantId,
        name: String,
        value: Secret,
    ) -> Result<(), StoreError> {
        self.store_credential(tenant, name, Credential::plain(value)).await
    }

    /// Stores a credential, or replaces it.
    pub async fn store_credential(
        &self,
        tenant: TenantId,
        name: String,
        credential: Credential,
    ) -> Result<(), StoreError> {
        credential.check(&name)?;
        self.run(|inner| async move { inner.put_credential(tenant, name, credential).await }).await
    }

    /// Lists the credentials of a tenant by name; never their values.
    pub async fn credentials(&self, tenant: &TenantId) -> Result<Vec<CredentialInfo>, StoreError> {
        let action = "list the credentials";
        let sql = "SELECT name, category, provider_key, provider_variant, description, fields, created_at, \
                   modified_at FROM credentials WHERE tenant = $1 ORDER BY name";
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
                purpose: purpose(row)?,
                fields: rows::optional_json_column(row, "fields")?,
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
        Box::pin(async move { self.inner.opened().secret(tenant, name) })
    }

    fn credential<'a>(
        &'a self,
        tenant: &'a TenantId,
        selector: CredentialSelector<'a>,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { self.inner.opened().credential(tenant, selector) })
    }
}

impl OpenCredentials {
    /// Returns the value of `${NAME}` or `${NAME.field}`.
    fn secret(&self, tenant: &TenantId, name: &str) -> Result<Option<Secret>, SecretError> {
        if let Some(found) = self.by_name(tenant, name)? {
            return found.primary(name).map(Some);
        }
        let Some((name, field)) = name.rsplit_once('.') else { return Ok(None) };
        Ok(self.by_name(tenant, name)?.and_then(|found| found.field(field).cloned()))
    }

    fn credential(
        &self,
        tenant: &TenantId,
        selector: CredentialSelector<'_>,
    ) -> Result<Option<Secret>, SecretError> {
        let (category, key, variant) = match selector {
            CredentialSelector::Name(name) => {
                return Ok(self.by_name(tenant, name)?.map(|found| found.text.clone()));
            }
            CredentialSelector::Provider { category, key, variant } => (category, key, variant),
        };
        let matching = self
            .values
            .iter()
            .filter(|((owner, _), found)| owner == tenant && found.purpose.is_for(category, key, variant));
        let newest = matching.max_by(|(a, x), (b, y)| (x.modified_at, &a.1).cmp(&(y.modified_at, &b.1)));
        Ok(newest.map(|(_, found)| found.text.clone()))
    }

    fn by_name(&self, tenant: &TenantId, name: &str) -> Result<Option<&OpenCredential>, SecretError> {
        let key = (tenant.clone(), name.to_owned());
        if let Some(reason) = self.failed.get(&key) {
            return Err(SecretError { name: name.to_owned(), source: reason.clone().into() });
        }
        Ok(self.values.get(&key))
    }
}

fn purpose(row: &AnyRow) -> Result<CredentialPurpose, sqlx::Error> {
    Ok(CredentialPurpose {
        category: row.try_get("category")?,
        provider_key: row.try_get("provider_key")?,
        provider_variant: row.try_get("provider_variant")?,
        description: row.try_get("description")?,
    })
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
        let sql = "SELECT tenant, name, sealed, category, provider_key, provider_variant, description, fields, \
                   modified_at FROM credentials";
        let found = sqlx::query(sql).fetch_all(&self.engine.pool).await.map_err(failed_to(action))?;
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
                Ok(text) => {
                    let is_structured =
                        row.try_get::<Option<&str>, _>("fields").map_err(failed_to(action))?;
                    let purpose = purpose(row).map_err(failed_to(action))?;
                    let modified_at = rows::timestamp(row, "modified_at").map_err(failed_to(action))?;
                    let open = OpenCredential::new(text, is_structured.is_some(), purpose, modified_at);
                    opened.values.insert((tenant, name), open);
                }
                Err(reason) => drop(opened.failed.insert((tenant, name), reason)),
            }
        }
        Ok(opened)
    }

    fn opened(&self) -> RwLockReadGuard<'_, OpenCredentials> {
        self.vault.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn credential_error(&self, tenant: &TenantId, name: &str) -> Option<String> {
        self.opened().failed.get(&(tenant.clone(), name.to_owned())).cloned()
    }

    fn is_stored(&self, tenant: &TenantId, name: &str, value: &Secret) -> bool {
        let opened = self.opened();
        opened.values.get(&(tenant.clone(), name.to_owned())).is_some_and(|stored| stored.text == *value)
    }

    async fn put_credential(
        self: Arc<Self>,
        tenant: TenantId,
        name: String,
        credential: Credential,
    ) -> Result<(), StoreError> {
        let action = format!("store the credential `{name}`");
        let value = credential.text();
        let mut state = self.state.lock().await;
        let now = self.now();
        let mut tx = self.engine.begin_change().await.map_err(failed_to(&action))?;
        let cipher =
            self.cipher_in(&mut tx).await.map_err(|error| StoreError::unavailable(action.clone(), error))?;
        let sealed = cipher
            .seal(tenant.as_str(), &name, &value)
            .map_err(|error| StoreError::unavailable(action.clone(), error))?;
        let fields = credential.field_names().map(|names| serde_json::to_string(&names));
        let fields = fields.transpose().map_err(|error| StoreError::unavailable(action.clone(), error))?;
        let purpose = credential.purpose.clone();
        sqlx::query(
            "INSERT INTO credentials (tenant, name, sealed, created_at, modified_at, category, provider_key, \
             provider_variant, description, fields) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (tenant, name) DO UPDATE SET sealed = excluded.sealed, modified_at = excluded.modified_at, \
             category = excluded.category, provider_key = excluded.provider_key, \
             provider_variant = excluded.provider_variant, description = excluded.description, \
             fields = excluded.fields",
        )
        .bind(tenant.as_str())
        .bind(&name)
        .bind(sealed)
        .bind(now.as_microsecond())
        .bind(now.as_microsecond())
        .bind(&purpose.category)
        .bind(purpose.provider_key.as_deref())
        .bind(purpose.provider_variant.as_deref())
        .bind(&purpose.description)
        .bind(fields)
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
        let open = OpenCredential::new(value, credential.field_names().is_some(), purpose, now);
        opened.values.insert((tenant, name), open);
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
