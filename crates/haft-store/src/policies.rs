//! Policy rules: one row for the platform and one for each tenant that has rules.

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::policy::{PolicyRules, PolicyScope};
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};
use tokio::sync::watch;

use crate::engine::failed_to;
use crate::rows;
use crate::session::{Session, advance_generation};
use crate::store::{Inner, Store};
use crate::watch::notification::ChangeSet;

/// The tenant column of the rules of the platform.
const PLATFORM: &str = "";

/// All stored policy rules.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredPolicies {
    /// The rules of the platform.
    pub platform: PolicyRules,
    /// The rules of each tenant that has any, sorted by tenant.
    pub tenants: Vec<(TenantId, PolicyRules)>,
}

impl StoredPolicies {
    /// Returns the rules of a scope.
    pub fn of(&self, scope: &PolicyScope) -> PolicyRules {
        match scope {
            PolicyScope::Platform => self.platform.clone(),
            PolicyScope::Tenant(tenant) => {
                let found = self.tenants.iter().find(|(known, _)| known == tenant);
                found.map(|(_, rules)| rules.clone()).unwrap_or_default()
            }
        }
    }
}

impl Store {
    /// Returns all policy rules.
    pub async fn policies(&self) -> Result<StoredPolicies, StoreError> {
        let action = "load the policy rules";
        let sql = "SELECT tenant, rules FROM policies ORDER BY tenant";
        let found = sqlx::query(sql).fetch_all(&self.inner.engine.pool).await.map_err(failed_to(action))?;
        let mut policies = StoredPolicies::default();
        for row in &found {
            match policy(row).map_err(failed_to(action))? {
                (None, rules) => policies.platform = rules,
                (Some(tenant), rules) => policies.tenants.push((tenant, rules)),
            }
        }
        Ok(policies)
    }

    /// Replaces the rules of a scope. The caller has compiled them.
    pub async fn set_policy(&self, scope: &PolicyScope, rules: &PolicyRules) -> Result<(), StoreError> {
        let (scope, rules) = (scope.clone(), rules.clone());
        self.run(|inner| async move { inner.set_policy(&scope, &rules).await }).await
    }

    /// Returns a number that changes whenever policy rules may have changed. Changes by other processes and nodes are
    /// detected only while the tasks of [`Store::watch`] run.
    pub fn policy_changes(&self) -> watch::Receiver<u64> {
        self.inner.policies.subscribe()
    }
}

impl Inner {
    /// Signals that policy rules may have changed.
    pub(crate) fn signal_policy_change(&self) {
        self.policies.send_modify(|number| *number = number.wrapping_add(1));
    }

    async fn set_policy(&self, scope: &PolicyScope, rules: &PolicyRules) -> Result<(), StoreError> {
        let action = "store the policy rules";
        let tenant = match scope {
            PolicyScope::Platform => PLATFORM,
            PolicyScope::Tenant(tenant) => tenant.as_str(),
        };
        let mut state = self.state.lock().await;
        let mut tx = self.engine.begin_change().await.map_err(failed_to(action))?;
        save(&mut tx, tenant, rules, self.now()).await.map_err(failed_to(action))?;
        let notified = self.engine.notify(&mut tx, &self.node, &ChangeSet::policies()).await;
        notified.map_err(failed_to(action))?;
        let generation = advance_generation(&mut tx, scope.as_str()).await.map_err(failed_to(action))?;
        tx.commit().await.map_err(failed_to(action))?;
        state.advance(generation);
        self.signal_policy_change();
        Ok(())
    }
}

impl Session<'_> {
    /// Replaces the rules of a tenant. The caller has compiled them.
    pub(crate) async fn set_policy(
        &mut self,
        tenant: &TenantId,
        rules: &PolicyRules,
    ) -> Result<(), sqlx::Error> {
        save(&mut self.tx, tenant.as_str(), rules, self.inner.now()).await?;
        self.touch_policies();
        Ok(())
    }

    /// Returns the rules of a tenant.
    pub(crate) async fn policy_of(&mut self, tenant: &TenantId) -> Result<PolicyRules, sqlx::Error> {
        let query = sqlx::query("SELECT tenant, rules FROM policies WHERE tenant = $1").bind(tenant.as_str());
        let found = query.fetch_optional(&mut *self.tx).await?;
        Ok(found.as_ref().map(policy).transpose()?.map(|(_, rules)| rules).unwrap_or_default())
    }
}

async fn save(
    tx: &mut Transaction<'static, Any>,
    tenant: &str,
    rules: &PolicyRules,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    let text = serde_json::to_string(rules).map_err(|error| sqlx::Error::Encode(error.into()))?;
    let change = if rules.rules.is_empty() {
        sqlx::query("DELETE FROM policies WHERE tenant = $1").bind(tenant)
    } else {
        sqlx::query(
            "INSERT INTO policies (tenant, rules, modified_at) VALUES ($1, $2, $3) \
             ON CONFLICT (tenant) DO UPDATE SET rules = excluded.rules, modified_at = excluded.modified_at",
        )
        .bind(tenant)
        .bind(text)
        .bind(now.as_microsecond())
    };
    change.execute(&mut **tx).await?;
    Ok(())
}

fn policy(row: &AnyRow) -> Result<(Option<TenantId>, PolicyRules), sqlx::Error> {
    let rules =
        serde_json::from_str(row.try_get("rules")?).map_err(|error| sqlx::Error::Decode(error.into()))?;
    let is_platform = row.try_get::<&str, _>("tenant")? == PLATFORM;
    let tenant = if is_platform { None } else { Some(rows::parse_column(row, "tenant")?) };
    Ok((tenant, rules))
}
