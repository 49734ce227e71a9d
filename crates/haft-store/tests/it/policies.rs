//! Policy rules.

use std::time::{Duration, Instant};

use haft_core::Timestamp;
use haft_core::audit::{AuditQuery, AuditRecord};
use haft_core::name::TenantId;
use haft_core::policy::{PolicyRules, PolicyScope};
use haft_store::{AuditLog, StoredPolicies};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Harness, on_both};

on_both![
    rules_are_stored_per_scope,
    other_processes_receive_changes_within_a_second,
    a_change_is_stored_with_its_audit_record,
];

pub(crate) fn rules(name: &str) -> PolicyRules {
    PolicyRules::read(&json!({"rules": [{
        "name": name, "match": {"tools": ["bank:*"]}, "when": "has(args.amount) && args.amount > 100",
        "effect": "approve", "reason": "„Größe“", "approvers": {"roles": ["admin"]},
        "examples": [{"tool": "bank:pay", "args": {"amount": 250}, "expect": "match"}],
    }]}))
    .unwrap()
}

pub(crate) fn of_tenant(name: &str) -> PolicyScope {
    PolicyScope::Tenant(TenantId::new(name).unwrap())
}

async fn rules_are_stored_per_scope(mut harness: Harness) {
    assert_eq!(harness.store.policies().all().await.unwrap(), StoredPolicies::default());
    let mut changes = harness.store.policies().changes();
    let scopes = [of_tenant("zeta"), PolicyScope::Platform, of_tenant("acme")];
    for scope in &scopes {
        harness.store.policies().set(scope, &rules("old")).await.unwrap();
        harness.store.policies().set(scope, &rules(scope.as_str())).await.unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
    }
    harness.restart().await;
    let stored = harness.store.policies().all().await.unwrap();
    let tenants = ["acme", "zeta"].map(|name| (TenantId::new(name).unwrap(), rules(name)));
    assert_eq!(stored, StoredPolicies { platform: rules("platform"), tenants: tenants.into() });
    assert_eq!(stored.of(&of_tenant("zeta")), rules("zeta"));
    assert_eq!(stored.of(&of_tenant("other")), PolicyRules::default());
    for scope in &scopes {
        harness.store.policies().set(scope, &PolicyRules::default()).await.unwrap();
    }
    assert_eq!(harness.store.policies().all().await.unwrap(), StoredPolicies::default());
}

async fn other_processes_receive_changes_within_a_second(harness: Harness) {
    let (other, _) = harness.another().await;
    let watching = other.watch();
    let mut changes = other.policies().changes();
    // The first change is the start of the watch itself, at the latest with the first interval.
    let limit = Duration::from_secs(10);
    for round in 0..3 {
        let name = format!("round-{round}");
        harness.store.policies().set(&of_tenant("acme"), &rules(&name)).await.unwrap();
        let stored = Instant::now();
        loop {
            tokio::time::timeout(limit, changes.changed()).await.unwrap().unwrap();
            if other.policies().all().await.unwrap().of(&of_tenant("acme")) == rules(&name) {
                break;
            }
        }
        assert!(round == 0 || stored.elapsed() < Duration::from_secs(3), "{:?}", stored.elapsed());
    }
    watching.stop().await;
    other.close().await;
}

async fn a_change_is_stored_with_its_audit_record(harness: Harness) {
    let tenant = TenantId::default_tenant();
    let record = harness.store.audit().new_record(AuditRecord {
        id: Uuid::nil(),
        at: Timestamp::UNIX_EPOCH,
        tenant: tenant.clone(),
        actor: "local".to_owned(),
        actor_id: None,
        token_id: None,
        action: "policy.put".to_owned(),
        target: String::new(),
        outcome: "success".to_owned(),
        request_id: "r".to_owned(),
    });
    let rules = rules("a");
    let change = harness.store.policies().set(&PolicyScope::Platform, &rules);
    AuditLog::recorded(record, change).await.unwrap();
    let query = AuditQuery {
        tenant,
        action: None,
        target: None,
        actor: None,
        since: None,
        until: None,
        outcome: None,
        before: None,
        skip: 0,
        limit: 10,
    };
    let found = harness.store.audit().page(&query).await.unwrap().records;
    let found: Vec<_> = found.iter().map(|record| (record.action.as_str(), record.target.as_str())).collect();
    assert_eq!(found, [("policy.put", "platform")]);
}
