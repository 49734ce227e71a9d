//! How much of the limits is used, for people who look.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, TokenId};
use haft_core::limit::{CallRate, RateStatus};
use haft_core::name::TenantId;

use super::Limits;
use super::rates::{member_key, tenant_key, token_key, tool_key, tool_slots};
use crate::clock;
use crate::rate::{Rate, RateWindow};
use crate::registry::Entry;

/// Reports how much of the limits is used: on this node or, where they are shared, on all nodes.
#[derive(Clone)]
pub struct LimitUsage(pub(crate) Arc<Limits>);

impl LimitUsage {
    /// Returns how much of the rate of a tool a tenant has used.
    pub async fn tool_rate(
        &self,
        entry: &Entry,
        tenant: &TenantId,
        rate: CallRate,
    ) -> Result<RateStatus, StoreError> {
        let window = entry.rate_windows.as_ref().and_then(|windows| windows.get(tenant));
        self.rate(window, rate, || tool_key(entry.tool.id, tenant)).await
    }

    /// Returns how much of the rate of a token is used.
    pub async fn token_rate(&self, id: TokenId, rate: CallRate) -> Result<RateStatus, StoreError> {
        self.rate(self.0.tokens.get(&id), rate, || token_key(id)).await
    }

    /// Returns how much of the rate of a person or a service account in a tenant is used.
    pub async fn member_rate(
        &self,
        tenant: &TenantId,
        id: ActorId,
        rate: CallRate,
    ) -> Result<RateStatus, StoreError> {
        let member = (tenant.clone(), id);
        self.rate(self.0.members.get(&member), rate, || member_key(&member)).await
    }

    /// Returns how much of the rate of a tenant is used.
    pub async fn tenant_rate(&self, tenant: &TenantId, rate: CallRate) -> Result<RateStatus, StoreError> {
        self.rate(self.0.tenants.get(tenant), rate, || tenant_key(tenant)).await
    }

    /// Returns how many calls of a tool run or, on this node, wait.
    pub async fn tool_parallel(&self, entry: &Entry) -> Result<u64, StoreError> {
        match self.0.store() {
            Some(store) => store.running(&tool_slots(entry.tool.id)).await,
            None => Ok(count(entry.concurrency.as_ref().map_or(0, |limit| limit.in_use()))),
        }
    }

    /// Returns how many calls of a tenant with a limit run or, on this node, wait.
    pub async fn tenant_parallel(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        match self.0.store() {
            Some(store) => store.running(&tenant_key(tenant)).await,
            None => Ok(count(self.0.tenant_slots.in_use(tenant))),
        }
    }

    async fn rate(
        &self,
        window: Option<Arc<RateWindow>>,
        rate: CallRate,
        key: impl FnOnce() -> String,
    ) -> Result<RateStatus, StoreError> {
        if let Some(store) = self.0.store() {
            return store.status(&key(), rate).await;
        }
        Ok(window.unwrap_or_default().status(Rate::from(rate), clock::now()))
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
