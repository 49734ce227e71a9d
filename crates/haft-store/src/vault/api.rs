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
use super::refresh;
use crate::database::Database;
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::rows;
use crate::vault::KeySource;

/// The stored credentials: encrypted in the table, decrypted in memory.
#[derive(Clone)]
pub struct Vault {
    pub(super) db: Arc<Database>,
    pub(super) key: KeySource,
    open: Arc<RwLock<OpenCredentials>>,
}

#[derive(Default)]
struct OpenCredentials {
    values: HashMap<(TenantId, String), OpenCredential>,
    /// The credentials that could not be decrypted, and why.
    failed: HashMap<(TenantId, String), String>,
}

impl Vault {
    pub(crate) fn new(db: &Arc<Database>, key: KeySource) -> Self {
        Self { db: Arc::clone(db), key, open: Arc::default() }
    }
}

impl Vault {
    /// Stores a plain value for `${NAME}`, or replaces it.
    pub async fn put(&self, tenant: TenantId, name: String, value: Secret) -> Result<(), StoreError> {
        self.store(tenant, name, Credential::plain(value)).await
    }

    /// Stores a credential, or replaces it.
    pub async fn store(
        &self,
        tenant: TenantId,
        name: String,
        credential: Credential,
    ) -> Result<(), StoreError> {
        credential.check(&name)?;
        let this = self.clone();
        let work = async move {
            let action = format!("store the credential `{name}`");
            let value = credential.text();
            let now = this.db.now();
            let mut change = this.db.begin_shared().await.map_err(failed_to(&action))?;
            let cipher = this
                .cipher_in(&mut change.tx)
                .await
                .map_err(|error| StoreError::unavailable(action.clone(), error))?;
            let sealed = cipher
                .seal(tenant.as_str(), &name, &value)
                .map_err(|error| StoreError::unavailable(action.clone(), error))?;
            let fields = credential.field_names().map(|names| serde_json::to_string(&names));
            let fields =
                fields.transpose().map_err(|error| StoreError::unavailable(action.clone(), error))?;
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
            .execute(&mut *change.tx)
            .await
            .map_err(failed_to(&action))?;
            // Storing the same value again keeps its refresh tokens.
            if !this.is_stored(&tenant, &name, &value) {
                refresh::forget(&mut change.tx, &tenant, &name).await.map_err(failed_to(&action))?;
            }
            let _lock = change.commit(&ChangeSet::credentials(), &name).await.map_err(failed_to(&action))?;
            let mut opened = this.open.write().unwrap_or_else(PoisonError::into_inner);
            opened.failed.remove(&(tenant.clone(), name.clone()));
            let open = OpenCredential::new(value, credential.field_names().is_some(), purpose, now);
            opened.values.insert((tenant, name), open);
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Lists the credentials of a tenant by name; never their values.
    pub async fn list(&self, tenant: &TenantId) -> Result<Vec<CredentialInfo>, StoreError> {
        let action = "list the credentials";
        let sql = "SELECT name, category, provider_key, provider_variant, description, fields, created_at, \
                   modified_at FROM credentials WHERE tenant = $1 ORDER BY name";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(action))?;
        let info = |row| {
            let name: String = sqlx::Row::try_get(row, "name")?;
            Ok(CredentialInfo {
                error: self.credential_error(tenant, &name),
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
    pub async fn delete(&self, tenant: TenantId, name: String) -> Result<(), StoreError> {
        let this = self.clone();
        let work = async move {
            let action = format!("delete the credential `{name}`");
            let mut change = this.db.begin_shared().await.map_err(failed_to(&action))?;
            let done = sqlx::query("DELETE FROM credentials WHERE tenant = $1 AND name = $2")
                .bind(tenant.as_str())
                .bind(&name)
                .execute(&mut *change.tx)
                .await
                .map_err(failed_to(&action))?;
            if done.rows_affected() == 0 {
                return Err(StoreError::not_found("credential", name));
            }
            refresh::forget(&mut change.tx, &tenant, &name).await.map_err(failed_to(&action))?;
            let _lock = change.commit(&ChangeSet::credentials(), &name).await.map_err(failed_to(&action))?;
            let mut opened = this.open.write().unwrap_or_else(PoisonError::into_inner);
            opened.failed.remove(&(tenant.clone(), name.clone()));
            opened.values.remove(&(tenant, name));
            Ok(())
        };
        self.db.complete(work).await
    }
}

impl SecretSource for Vault {
    fn secret<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { self.opened().secret(tenant, name) })
    }

    fn credential<'a>(
        &'a self,
        tenant: &'a TenantId,
        selector: CredentialSelector<'a>,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async move { self.opened().credential(tenant, selector) })
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

impl Vault {
    /// Decrypts all stored credentials. A failure is an error only when the credential is used.
    pub(crate) async fn load(&self) -> Result<(), StoreError> {
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
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(())
    }

    async fn load_credentials(&self) -> Result<OpenCredentials, StoreError> {
        let action = "load the credentials";
        let sql = "SELECT tenant, name, sealed, category, provider_key, provider_variant, description, fields, \
                   modified_at FROM credentials";
        let found = sqlx::query(sql).fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
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
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn credential_error(&self, tenant: &TenantId, name: &str) -> Option<String> {
        self.opened().failed.get(&(tenant.clone(), name.to_owned())).cloned()
    }

    fn is_stored(&self, tenant: &TenantId, name: &str, value: &Secret) -> bool {
        let opened = self.opened();
        opened.values.get(&(tenant.clone(), name.to_owned())).is_some_and(|stored| stored.text == *value)
    }
}
