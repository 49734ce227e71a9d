//! Hears from PostgreSQL what other nodes changed.

use std::sync::Arc;
use std::time::Duration;

use haft_core::catalog::{Change, StoreError};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgListener;
use tokio_util::sync::CancellationToken;

use crate::engine::{CHANNEL, fault};
use crate::rows;
use crate::store::Inner;

/// How long to wait before a lost connection is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Follows the other nodes until it is stopped.
pub(super) async fn follow(inner: Arc<Inner>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            error = listen(&inner) => {
                tracing::warn!(%error, "lost the connection that tells of changes; trying again");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

/// Listens for as long as the connection holds.
async fn listen(inner: &Inner) -> StoreError {
    let Some(url) = &inner.database_url else { return StoreError::not_found("database", "database_url") };
    let doing = "listen to the database";
    let mut listener = match PgListener::connect(url.expose()).await {
        Ok(listener) => listener,
        Err(error) => return fault(doing)(error),
    };
    if let Err(error) = listener.listen(CHANNEL).await {
        return fault(doing)(error);
    }
    // What changed before the connection stood was not heard.
    if let Err(error) = inner.reload().await {
        return error;
    }
    loop {
        let heard = match listener.try_recv().await {
            Ok(Some(notification)) => inner.hear(notification.payload()).await,
            // The connection broke and stands again: something may have been missed.
            Ok(None) => inner.reload().await,
            Err(error) => return fault(doing)(error),
        };
        if let Err(error) = heard {
            return error;
        }
    }
}

impl Inner {
    async fn hear(&self, payload: &str) -> Result<(), StoreError> {
        let mut parts = payload.split(' ');
        let (Some(node), Some(kind), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
            return Ok(());
        };
        if node == self.node {
            return Ok(());
        }
        let doing = "load what another node changed";
        // In turn with our own changes, so that what is announced last is what is newest.
        let _turn = self.state.lock().await;
        let one = |columns: &str, condition: &str| AssertSqlSafe(format!("{columns} WHERE {condition} = $1"));
        let change = match kind {
            "t" => {
                let row =
                    sqlx::query(one(rows::TOOL, "t.id")).bind(id).fetch_optional(&self.engine.pool).await;
                match row.and_then(|row| row.as_ref().map(rows::tool).transpose()).map_err(fault(doing))? {
                    Some(tool) => Some(Change::Tool(Box::new(tool))),
                    None => id.parse().ok().map(Change::ToolGone),
                }
            }
            "b" => {
                let row =
                    sqlx::query(one(rows::BUNDLE, "id")).bind(id).fetch_optional(&self.engine.pool).await;
                match row.and_then(|row| row.as_ref().map(rows::bundle).transpose()).map_err(fault(doing))? {
                    Some(bundle) => Some(Change::Bundle(bundle)),
                    None => id.parse().ok().map(Change::BundleGone),
                }
            }
            "k" => {
                self.tokens_moved();
                return Ok(());
            }
            _ => return self.open_vault().await,
        };
        self.announce(&self.mark(change.into_iter().collect()));
        Ok(())
    }
}
