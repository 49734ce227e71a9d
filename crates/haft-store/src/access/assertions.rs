//! Assertions of issuers that applications exchange for access: each works once, on all nodes.

use haft_core::Timestamp;
use haft_core::application::GrantRecord;
use haft_core::catalog::StoreError;
use haft_core::token::TokenRecord;

use super::applications::insert_grant;
use crate::access::{Access, tokens};
use crate::engine::failed_to;
use crate::notification::ChangeSet;

const STORE: &str = "store the connected application";

/// An assertion that is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedAssertion {
    /// The hash of its issuer and its id.
    pub hash: String,
    /// When it expires anyway.
    pub expires_at: Timestamp,
}

impl Access {
    /// Stores the grant of an assertion and uses the assertion up; returns whether this was its first use. Both happen or
    /// neither.
    pub async fn exchange_assertion(
        &self,
        assertion: UsedAssertion,
        token: TokenRecord,
        grant: GrantRecord,
    ) -> Result<bool, StoreError> {
        let this = self.clone();
        let work = async move {
            let mut change = this.db.begin_shared().await.map_err(failed_to(STORE))?;
            let sql = "INSERT INTO used_assertions (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
            let query = sqlx::query(sql).bind(&assertion.hash).bind(assertion.expires_at.as_microsecond());
            let done = query.execute(&mut *change.tx).await.map_err(failed_to(STORE))?;
            if done.rows_affected() == 0 {
                return Ok(false);
            }
            tokens::insert(&mut change.tx, &token).await?;
            insert_grant(&mut change.tx, &grant).await.map_err(failed_to(STORE))?;
            let used = sqlx::query("UPDATE oauth_clients SET used_at = $1 WHERE id = $2")
                .bind(this.db.now().as_microsecond())
                .bind(&grant.client_id);
            used.execute(&mut *change.tx).await.map_err(failed_to(STORE))?;
            let _lock = change.commit(&ChangeSet::tokens(), &token.name).await.map_err(failed_to(STORE))?;
            this.signal_change();
            Ok(true)
        };
        self.db.complete(work).await
    }
}
