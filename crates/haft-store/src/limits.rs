//! Limits: rates and calls at the same time that nodes share, and what a tenant stores.

mod parallel;
mod quota;
mod rates;

pub(crate) use quota::DEFINITION_BYTES;
pub use quota::TenantUsage;

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::limit::{CallRate, Draw, DrawRequest, RateStatus, SharedLimits};

use crate::engine::{Kind, failed_to};
use crate::store::{Inner, Store};

const RATE: &str = "count the calls of a rate";
const PARALLEL: &str = "count the calls at the same time";

impl Store {
    /// Returns whether other nodes may share the limits: with PostgreSQL.
    pub fn shares_limits(&self) -> bool {
        self.inner.engine.kind == Kind::Postgres
    }
}

impl SharedLimits for Store {
    fn draw<'a>(&'a self, key: &'a str, request: DrawRequest) -> BoxFuture<'a, Result<Draw, StoreError>> {
        Box::pin(async move { self.inner.draw(key, request).await.map_err(failed_to(RATE)) })
    }

    fn status<'a>(&'a self, key: &'a str, rate: CallRate) -> BoxFuture<'a, Result<RateStatus, StoreError>> {
        Box::pin(async move { self.inner.rate_status(key, rate).await.map_err(failed_to(RATE)) })
    }

    fn acquire<'a>(&'a self, key: &'a str, max: u64) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { self.inner.acquire_parallel(key, max).await.map_err(failed_to(PARALLEL)) })
    }

    fn release<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.inner.release_parallel(key).await.map_err(failed_to(PARALLEL)) })
    }

    fn running<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { self.inner.running_parallel(key).await.map_err(failed_to(PARALLEL)) })
    }
}

impl Inner {
    /// Removes counters that count nothing any more.
    pub(crate) async fn reap_limits(&self) -> Result<(), sqlx::Error> {
        if self.engine.kind == Kind::Postgres {
            self.reap_rates().await?;
            self.reap_parallel().await?;
        }
        Ok(())
    }
}
