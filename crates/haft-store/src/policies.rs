//! Policy rules: one row for the platform and one for each tenant that has rules.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::policy::{PolicyRules, PolicyScope};
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};
use tokio::sync::watch;

use crate::database::{ChangeSignal, Database};
use crate::engine::failed_to;
use crate::notification::ChangeSet;
use crate::rows;

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

/// The policy rules.
#[derive(Clone)]
pub struct Policies {
    db: Arc<Database>,
    /// Changes whenever they may have changed.
    signal: Arc<ChangeSignal>,
}

impl Policies {
    pub(crate) fn new(db: &Arc<Database>) -> Self {
        Self { db: Arc::clone(db), signal: Arc::default() }
    }
}

impl Policies {
    /// Returns all policy rules.
    pub async fn all(&self) -> Result<StoredPolicies, StoreError> {
        let action = "load the policy rules";
        let sql = "SELECT tenant, rules FROM policies ORDER BY tenant";
        let found = sqlx::query(sql).fetch_all(&self.db.engine.pool).await.map_err(failed_to(action))?;
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
    pub async fn set(&self, scope: &PolicyScope, rules: &PolicyRules) -> Result<(), StoreError> {
        let (scope, rules) = (scope.clone(), rules.clone());
        let this = self.clone();
        let work = async move {
            let scope = &scope;
            let rules = &rules;
            let action = "store the policy rules";
            let tenant = match scope {
                PolicyScope::Platform => PLATFORM,
                PolicyScope::Tenant(tenant) => tenant.as_str(),
            };
            let mut change = this.db.begin_shared().await.map_err(failed_to(action))?;
            save(&mut change.tx, tenant, rules, this.db.now()).await.map_err(failed_to(action))?;
            let _lock =
                change.commit(&ChangeSet::policies(), scope.as_str()).await.map_err(failed_to(action))?;
            this.signal_change();
            Ok(())
        };
        self.db.complete(work).await
    }

    /// Returns a number that changes whenever policy rules may have changed. Changes by other processes and nodes are
    /// detected only while the tasks of [`crate::Store::watch`] run.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.signal.subscribe()
    }
}

impl Policies {
    /// Signals that policy rules may have changed.
    pub(crate) fn signal_change(&self) {
        self.signal.send();
    }
}

/// Replaces the rules of a tenant. The caller has compiled them, and signals the change when it is committed.
pub(crate) async fn set_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    rules: &PolicyRules,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    save(tx, tenant.as_str(), rules, now).await
}

/// Returns the rules of a tenant.
pub(crate) async fn rules_in(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<PolicyRules, sqlx::Error> {
    let query = sqlx::query("SELECT tenant, rules FROM policies WHERE tenant = $1").bind(tenant.as_str());
    let found = query.fetch_optional(&mut **tx).await?;
    Ok(found.as_ref().map(policy).transpose()?.map(|(_, rules)| rules).unwrap_or_default())
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
