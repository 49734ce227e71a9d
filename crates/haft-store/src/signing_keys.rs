//! Keys by which the nodes of an installation recognise what they signed themselves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::catalog::StoreError;
use sqlx::Row as _;

use crate::engine::failed_to;
use crate::store::Store;

const READ: &str = "read a signing key";

impl Store {
    /// Returns the key for a purpose, the same on all nodes; it is created when it is first needed.
    pub async fn signing_key(&self, purpose: &str) -> Result<Vec<u8>, StoreError> {
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
        STANDARD.decode(value).map_err(|error| StoreError::unavailable(READ, error.to_string()))
    }
}
