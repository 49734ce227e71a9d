//! The keys by which the nodes of an installation recognise what they signed themselves. They are encrypted as soon as there
//! is a key to do so, so that the database alone is not enough to forge a token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::catalog::StoreError;
use haft_core::secret::Secret;
use sqlx::Row as _;

use super::key_check::KeyCheck;
use crate::engine::failed_to;
use crate::vault::Vault;

const READ: &str = "read a signing key";
const SEAL: &str = "encrypt the signing keys";
/// What an encrypted one starts with. It is not Base64, so a version that does not know it does not take it for a key.
const SEALED: &str = "sealed:";

/// Returns the name that a signing key is encrypted with; no credential has such a name.
pub(super) fn sealed_name(purpose: &str) -> String {
    format!("signing key {purpose}")
}

/// Whether a key file may be created to encrypt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewKey {
    /// Other nodes of the same database do not read it.
    OfOwnHome,
    Never,
}

impl Vault {
    /// Returns the signing key for a purpose, the same on all nodes; it is created when it is first needed.
    pub(crate) async fn signing_key(&self, purpose: &str) -> Result<Vec<u8>, StoreError> {
        let mut random = [0_u8; 32];
        getrandom::fill(&mut random).map_err(|error| StoreError::unavailable(READ, error.to_string()))?;
        let pool = &self.db.engine.pool;
        let sql =
            "INSERT INTO signing_keys (purpose, value) VALUES ($1, $2) ON CONFLICT (purpose) DO NOTHING";
        let created = sqlx::query(sql).bind(purpose).bind(STANDARD.encode(random)).execute(pool).await;
        created.map_err(failed_to(READ))?;
        let query = sqlx::query("SELECT value FROM signing_keys WHERE purpose = $1").bind(purpose);
        let row = query.fetch_one(pool).await.map_err(failed_to(READ))?;
        let value: String = row.try_get(0).map_err(failed_to(READ))?;
        let value = match value.strip_prefix(SEALED) {
            None => Secret::new(value),
            Some(sealed) => {
                let candidates = self.candidates().await;
                let candidates = candidates.map_err(|reason| StoreError::unavailable(READ, reason))?;
                let name = sealed_name(purpose);
                let opened = candidates.iter().find_map(|cipher| cipher.open("", &name, sealed).ok());
                opened.ok_or_else(|| StoreError::unavailable(READ, self.wrong_key()))?
            }
        };
        STANDARD.decode(value.expose()).map_err(|error| StoreError::unavailable(READ, error.to_string()))
    }

    /// Encrypts the signing keys that are in clear, unless there is no key to do so.
    pub(crate) async fn seal_signing_keys(&self, new_key: NewKey) -> Result<(), StoreError> {
        let sql = "SELECT purpose, value FROM signing_keys WHERE value NOT LIKE 'sealed:%'";
        let rows = sqlx::query(sql).fetch_all(&self.db.engine.pool).await.map_err(failed_to(SEAL))?;
        if rows.is_empty() {
            return Ok(());
        }
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin_change().await.map_err(failed_to(SEAL))?;
            let may_create = new_key == NewKey::OfOwnHome && this.db.files.is_some();
            let has_key = this.key.file().is_none()
                || KeyCheck::load(&mut tx).await.map_err(failed_to(SEAL))?.is_some();
            if !(has_key || may_create) || this.key.is_missing() {
                return Ok(());
            }
            let failed = |error: BoxError| StoreError::unavailable(SEAL, error);
            let cipher = this.cipher_in(&mut tx).await.map_err(failed)?;
            for row in &rows {
                let purpose: &str = row.try_get(0).map_err(failed_to(SEAL))?;
                let value: String = row.try_get(1).map_err(failed_to(SEAL))?;
                let sealed = cipher.seal("", &sealed_name(purpose), &Secret::new(value.clone()));
                let sealed = sealed.map_err(|error| failed(error.into()))?;
                sqlx::query("UPDATE signing_keys SET value = $1 WHERE purpose = $2 AND value = $3")
                    .bind(format!("{SEALED}{sealed}"))
                    .bind(purpose)
                    .bind(value)
                    .execute(&mut *tx)
                    .await
                    .map_err(failed_to(SEAL))?;
            }
            tx.commit().await.map_err(failed_to(SEAL))
        };
        self.db.complete(work).await
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
