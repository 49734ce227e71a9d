//! Tenants: their records, and what remains of a deleted one.

use haft_core::catalog::{NewTool, StoreError};
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretSource as _};
use haft_core::tenant::{FileRoot, TenantLimits};
use haft_store::TenantChange;

use crate::harness::{Harness, eventually, new_tool, on_both, spec, text};
use crate::tokens::token_of;

on_both![
    the_default_tenant_always_exists,
    a_tenant_is_created_changed_and_listed,
    invalid_settings_are_rejected,
    a_deleted_tenant_leaves_nothing_to_its_successor,
    other_processes_receive_tenant_changes,
];

fn acme() -> TenantId {
    TenantId::new("acme").unwrap()
}

fn tool_of(tenant: &TenantId) -> NewTool {
    NewTool { tenant: tenant.clone(), ..new_tool("web", spec("weather", "Weather")) }
}

async fn the_default_tenant_always_exists(mut harness: Harness) {
    let id = TenantId::default_tenant();
    let before = harness.store.tenants().all().await.unwrap();
    assert_eq!((before.len(), &before[0].id, before[0].enabled), (1, &id, true));
    assert!(before[0].may_read_variable("ANY"));
    let disable = TenantChange { enabled: Some(false), ..TenantChange::default() };
    let disabled = harness.store.tenants().update(id.clone(), disable).await;
    assert!(matches!(disabled, Err(StoreError::ReadOnly(_))));
    assert!(matches!(harness.store.tenants().delete(id).await, Err(StoreError::ReadOnly(_))));
    harness.restart().await;
    assert_eq!(harness.store.tenants().all().await.unwrap(), before);
}

async fn a_tenant_is_created_changed_and_listed(mut harness: Harness) {
    let created = harness.store.tenants().create(acme(), "Acme".into()).await.unwrap();
    assert!(created.enabled && !created.may_read_variable("KEY"));
    let again = harness.store.tenants().create(acme(), "Acme".into()).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))));
    let root = FileRoot { name: "data".into(), path: "/srv/acme".into(), read_only: true };
    let change = TenantChange {
        name: Some("Acme Inc.".into()),
        enabled: Some(false),
        file_roots: Some(vec![root]),
        environment: Some(vec!["KEY".into()]),
        limits: Some(TenantLimits { max_tools: Some(5), ..TenantLimits::default() }),
    };
    let changed = harness.store.tenants().update(acme(), change).await.unwrap();
    assert!(!changed.enabled && changed.may_read_variable("KEY"));
    assert_eq!((changed.settings.limits.max_tools, changed.created_at), (Some(5), created.created_at));
    assert!(changed.modified_at > created.modified_at);
    let same = harness.store.tenants().update(acme(), TenantChange::default()).await.unwrap();
    assert_eq!(same, changed, "nothing changed, not even the time");
    harness.restart().await;
    assert_eq!(harness.store.tenants().all().await.unwrap()[0], changed);
    let missing = TenantId::new("missing").unwrap();
    let unknown = harness.store.tenants().update(missing.clone(), TenantChange::default()).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
    assert!(matches!(harness.store.tenants().delete(missing).await, Err(StoreError::NotFound { .. })));
}

async fn invalid_settings_are_rejected(harness: Harness) {
    let created = harness.store.tenants().create(acme(), "Acme".into()).await.unwrap();
    for change in [
        TenantChange { name: Some(String::new()), ..TenantChange::default() },
        TenantChange { environment: Some(vec!["A B".into()]), ..TenantChange::default() },
        TenantChange {
            limits: Some(TenantLimits { max_parallel: Some(0), ..TenantLimits::default() }),
            ..TenantChange::default()
        },
    ] {
        let result = harness.store.tenants().update(acme(), change.clone()).await;
        assert!(matches!(result, Err(StoreError::Invalid(_))), "{change:?}");
    }
    assert_eq!(harness.store.tenants().all().await.unwrap()[0], created);
}

async fn a_deleted_tenant_leaves_nothing_to_its_successor(mut harness: Harness) {
    let default = TenantId::default_tenant();
    for tenant in [&acme(), &default] {
        if *tenant != default {
            harness.store.tenants().create(tenant.clone(), "Acme".into()).await.unwrap();
        }
        harness.store.catalog().create_tool(tool_of(tenant)).await.unwrap();
        harness.store.access().insert_token(&token_of(tenant)).await.unwrap();
        let value = Secret::new("hunter2".into());
        harness.store.vault().put(tenant.clone(), "KEY".into(), value).await.unwrap();
    }
    if harness.is_embedded() {
        assert!(harness.path("skills/@acme/web/weather.skill").exists());
    }
    harness.store.tenants().delete(acme()).await.unwrap();
    assert!(matches!(harness.store.tenants().delete(acme()).await, Err(StoreError::NotFound { .. })));
    let check = async |harness: &Harness| {
        let mirror = harness.mirror();
        assert!(mirror.tools.values().all(|tool| tool.tenant == default), "{mirror:?}");
        assert!(mirror.bundles.values().all(|bundle| bundle.tenant == default), "{mirror:?}");
        assert_eq!((mirror.tools.len(), mirror.bundles.len()), (1, 1));
        assert_eq!(harness.store.access().tokens().await.unwrap(), [token_of(&default)]);
        assert_eq!(harness.store.vault().secret(&acme(), "KEY").await.unwrap(), None);
        assert!(harness.store.vault().secret(&default, "KEY").await.unwrap().is_some());
        if harness.is_embedded() {
            let left: Vec<_> = std::fs::read_dir(harness.path("skills")).unwrap().collect();
            let left: Vec<_> = left.into_iter().map(|entry| entry.unwrap().file_name()).collect();
            assert!(left.iter().all(|name| name == "web" || name == ".lock"), "{left:?}");
        }
    };
    check(&harness).await;
    harness.assert_consistent().await;
    // A request that was authenticated before the deletion, and a file that was copied meanwhile.
    harness.store.catalog().create_tool(tool_of(&acme())).await.unwrap();
    let late = harness.store.access().insert_token(&token_of(&acme())).await;
    assert!(matches!(late, Err(StoreError::NotFound { .. })), "no token for a tenant that does not exist");
    harness.store.tenants().create(acme(), "Acme again".into()).await.unwrap();
    check(&harness).await;
    harness.restart().await;
    check(&harness).await;
}

async fn other_processes_receive_tenant_changes(harness: Harness) {
    let (other, sink) = harness.another().await;
    let watching = other.watch();
    harness.store.tenants().create(acme(), "Acme".into()).await.unwrap();
    harness.store.catalog().create_tool(tool_of(&acme())).await.unwrap();
    eventually("the tool arrives", || sink.mirror().named("weather").is_some()).await;
    let mut changes = other.access().token_changes();
    changes.mark_unchanged();
    let disable = TenantChange { enabled: Some(false), ..TenantChange::default() };
    harness.store.tenants().update(acme(), disable).await.unwrap();
    let limit = std::time::Duration::from_mins(1);
    tokio::time::timeout(limit, changes.changed()).await.unwrap().unwrap();
    harness.store.tenants().delete(acme()).await.unwrap();
    eventually("the tool is gone", || sink.mirror().named("weather").is_none()).await;
    assert_eq!(other.tenants().all().await.unwrap().len(), 1);
    watching.stop().await;
    other.close().await;
}

#[tokio::test]
async fn definition_files_wait_for_their_tenant() {
    let mut harness = Harness::sqlite().await;
    harness.write("skills/@acme/web/weather.json", &text("weather", "Weather"));
    harness.restart().await;
    harness.store.tenants().create(acme(), "Acme".into()).await.unwrap();
    let mirror = harness.mirror();
    let tool = mirror.named("weather").unwrap();
    assert_eq!((&tool.tenant, tool.path.as_deref()), (&acme(), Some("skills/@acme/web/weather.json")));
}
