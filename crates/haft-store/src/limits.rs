//! Limits: rates and calls at the same time that nodes share, and what a tenant stores.

mod parallel;
mod quota;
mod rates;

pub use quota::TenantUsage;
pub(crate) use quota::{check_resource_room, check_revision_room, check_tool_room};

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::limit::{CallRate, Draw, DrawRequest, RateStatus, SharedLimits};

use crate::database::Database;
use crate::engine::{Kind, failed_to};
use crate::ledger::usage::LedgerUsage;

const RATE: &str = "count the calls of a rate";
const PARALLEL: &str = "count the calls at the same time";

/// Rates and parallel calls that nodes share, and the quotas of tenants.
#[derive(Clone)]
pub struct Limits {
    db: Arc<Database>,
    usage: Arc<LedgerUsage>,
}

impl Limits {
    pub(crate) fn new(db: &Arc<Database>, usage: &Arc<LedgerUsage>) -> Self {
        Self { db: Arc::clone(db), usage: Arc::clone(usage) }
    }
}

impl Limits {
    /// Returns whether other nodes may share the limits: with PostgreSQL.
    pub fn is_shared(&self) -> bool {
        self.db.engine.kind == Kind::Postgres
    }
}

impl SharedLimits for Limits {
    fn draw<'a>(&'a self, key: &'a str, request: DrawRequest) -> BoxFuture<'a, Result<Draw, StoreError>> {
        Box::pin(async move { self.draw(key, request).await.map_err(failed_to(RATE)) })
    }

    fn status<'a>(&'a self, key: &'a str, rate: CallRate) -> BoxFuture<'a, Result<RateStatus, StoreError>> {
        Box::pin(async move { self.rate_status(key, rate).await.map_err(failed_to(RATE)) })
    }

    fn acquire<'a>(&'a self, key: &'a str, max: u64) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { self.acquire_parallel(key, max).await.map_err(failed_to(PARALLEL)) })
    }

    fn release<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.release_parallel(key).await.map_err(failed_to(PARALLEL)) })
    }

    fn running<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { self.running_parallel(key).await.map_err(failed_to(PARALLEL)) })
    }
}

impl Limits {
    /// Removes counters that count nothing any more.
    pub(crate) async fn reap(&self) -> Result<(), sqlx::Error> {
        if self.db.engine.kind == Kind::Postgres {
            self.reap_rates().await?;
            self.reap_parallel().await?;
        }
        Ok(())
    }
}
