//! Publishing several tools, deprecation, authors, imports from a registry, recent callers.

use std::sync::Arc;

use haft_core::audit::AuditRecord;
use haft_core::call::CallStatus;
use haft_core::catalog::{ImportedTool, StoreError, ToolChange, Transition};
use haft_core::ledger::Ledger as _;
use haft_core::lifecycle::{Deprecation, LegacyFields};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::spec::ToolSpec;
use haft_core::tool::Status;
use haft_store::{AuditLog, Store};

use crate::harness::{Harness, on_both, spec};
use crate::ledger::{call_with, principal};

on_both![
    several_tools_are_published_together_or_not_at_all,
    a_deprecation_survives_a_restart_and_ends_with_a_publication,
    the_actor_of_a_request_is_recorded,
    status_and_enabled_agree,
    imported_tools_have_their_state_and_legacy_fields,
    an_import_with_a_conflict_changes_nothing,
    recent_callers_are_counted_per_tenant,
];

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

async fn several_tools_are_published_together_or_not_at_all(harness: Harness) {
    let one = harness.create(spec("one", "d")).await.unwrap();
    let two = harness.create(spec("two", "d")).await.unwrap();
    let missing = "018faf50-b7b6-7a01-9a05-a22a6e0af1ff".parse().unwrap();
    let failed = harness.store.catalog().publish_tools(vec![one.id, missing, two.id]).await;
    assert!(matches!(failed, Err(StoreError::NotFound { .. })), "{failed:?}");
    assert_eq!(harness.mirror().named("one").unwrap().status, Status::Draft);
    harness.assert_consistent().await;
    let published = harness.store.catalog().publish_tools(vec![one.id, two.id]).await.unwrap();
    let states: Vec<_> = published.iter().map(|tool| (tool.id, tool.status)).collect();
    assert_eq!(states, [(one.id, Status::Published), (two.id, Status::Published)]);
    harness.assert_consistent().await;
}

async fn a_deprecation_survives_a_restart_and_ends_with_a_publication(mut harness: Harness) {
    let tool = harness.create(spec("weather", "d")).await.unwrap();
    let deprecation = Deprecation {
        replaced_by: Some("web:forecast".to_owned()),
        removal_date: Some("2100-01-01T00:00:00Z".parse().unwrap()),
        message: Some("use the other".to_owned()),
        ..Deprecation::default()
    };
    let step = Transition::Deprecate(deprecation.clone());
    let deprecated = harness.store.catalog().transition(tool.id, step).await.unwrap();
    let stored = deprecated.deprecation().unwrap();
    assert_eq!(
        (&stored.replaced_by, stored.removal_date),
        (&deprecation.replaced_by, deprecation.removal_date)
    );
    assert!(stored.deprecated_at.is_some());
    harness.restart().await;
    assert_eq!(harness.mirror().named("weather"), Some(&deprecated));
    let published = harness.store.catalog().transition(tool.id, Transition::Publish).await.unwrap();
    assert_eq!((published.status, &published.lifecycle.deprecation), (Status::Published, &None));
    harness.assert_consistent().await;
}

async fn the_actor_of_a_request_is_recorded(harness: Harness) {
    let as_kim = |store: &Store| {
        store.audit().new_record(AuditRecord {
            id: uuid::Uuid::nil(),
            at: haft_core::Timestamp::UNIX_EPOCH,
            tenant: tenant(),
            actor: "kim".to_owned(),
            actor_id: None,
            token_id: None,
            action: "tool.update".to_owned(),
            target: String::new(),
            outcome: "success".to_owned(),
            request_id: String::new(),
        })
    };
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    let record = as_kim(&harness.store);
    AuditLog::recorded(record, async {
        harness.store.catalog().update_tool(tool.id, ToolChange::from(spec("weather", "two"))).await.unwrap();
        harness.store.catalog().transition(tool.id, Transition::Publish).await.unwrap();
    })
    .await;
    let mirror = harness.mirror();
    let lifecycle = &mirror.named("weather").unwrap().lifecycle;
    assert_eq!(
        (
            lifecycle.created_by.as_deref(),
            lifecycle.modified_by.as_deref(),
            lifecycle.published_by.as_deref()
        ),
        (None, Some("kim"), Some("kim"))
    );
    let revisions = harness.store.catalog().revisions(tool.id).await.unwrap();
    let authors: Vec<_> = revisions
        .iter()
        .map(|r| (r.number, r.created_by.as_deref(), r.published_by.as_deref(), r.published_at.is_some()))
        .collect();
    assert_eq!(authors, [(2, Some("kim"), Some("kim"), true), (1, None, None, false)]);
}

async fn status_and_enabled_agree(harness: Harness) {
    let tool = harness.create(spec("weather", "d")).await.unwrap();
    let state = |harness: &Harness| {
        let mirror = harness.mirror();
        let tool = mirror.named("weather").unwrap();
        (tool.status, tool.enabled)
    };
    harness.store.catalog().transition(tool.id, Transition::Publish).await.unwrap();
    harness.store.catalog().transition(tool.id, Transition::Set(Status::Disabled)).await.unwrap();
    assert_eq!(state(&harness), (Status::Disabled, false));
    harness.store.catalog().enable_tool(tool.id, true).await.unwrap();
    assert_eq!(state(&harness), (Status::Published, true));
    harness.store.catalog().transition(tool.id, Transition::Set(Status::Disabled)).await.unwrap();
    harness.store.catalog().transition(tool.id, Transition::Set(Status::Draft)).await.unwrap();
    assert_eq!(state(&harness), (Status::Draft, true));
    let both = ToolChange { status: Some(Status::Disabled), ..ToolChange::from(spec("weather", "d")) };
    harness.store.catalog().enable_tool(tool.id, false).await.unwrap();
    let conflicting = ToolChange { enabled: Some(true), ..both.clone() };
    let result = harness.store.catalog().update_tool(tool.id, conflicting).await;
    assert!(matches!(result, Err(StoreError::Invalid(_))), "{result:?}");
    assert_eq!(state(&harness), (Status::Draft, false));
    harness.store.catalog().update_tool(tool.id, both).await.unwrap();
    assert_eq!(state(&harness), (Status::Disabled, false));
    harness.assert_consistent().await;
}

fn imported(spec: ToolSpec, status: Status) -> ImportedTool {
    let legacy = LegacyFields { id: Some(spec.name.to_string()), ..LegacyFields::default() };
    ImportedTool {
        id: None,
        bundle: BundleSlug::new("legacy").unwrap(),
        spec,
        status,
        enabled: status != Status::Disabled,
        published_at: Some("2024-01-01T00:00:00Z".parse().unwrap()),
        legacy,
    }
}

async fn imported_tools_have_their_state_and_legacy_fields(mut harness: Harness) {
    let rows = vec![
        imported(spec("one", "d"), Status::Published),
        imported(spec("two", "d"), Status::Draft),
        imported(spec("three", "d"), Status::Disabled),
    ];
    let stored = harness.store.catalog().import_tools(tenant(), rows).await.unwrap();
    let states: Vec<_> =
        stored.iter().map(|tool| (tool.status, tool.enabled, tool.published.is_some())).collect();
    assert_eq!(
        states,
        [(Status::Published, true, true), (Status::Draft, true, false), (Status::Disabled, false, true)]
    );
    assert_eq!(stored[0].published_at, Some("2024-01-01T00:00:00Z".parse().unwrap()));
    harness.restart().await;
    for tool in &stored {
        assert_eq!(harness.mirror().named(tool.spec.name.as_str()), Some(tool));
    }
    let again = ImportedTool { id: Some(stored[1].id), ..imported(spec("two", "new"), Status::Published) };
    let updated = harness.store.catalog().import_tools(tenant(), vec![again]).await.unwrap();
    assert_eq!(
        (updated[0].id, updated[0].revision, updated[0].published.as_ref().map(|(number, _)| *number)),
        (stored[1].id, 2, Some(2))
    );
    harness.assert_consistent().await;
}

async fn an_import_with_a_conflict_changes_nothing(harness: Harness) {
    let rows = |names: &[&str]| names.iter().map(|name| imported(spec(name, "d"), Status::Draft)).collect();
    harness.store.catalog().import_tools(tenant(), rows(&["two"])).await.unwrap();
    let failed = harness.store.catalog().import_tools(tenant(), rows(&["one", "two", "three"])).await;
    assert!(matches!(failed, Err(StoreError::Conflict(_))), "{failed:?}");
    assert_eq!((harness.mirror().named("one"), harness.mirror().named("three")), (None, None));
    if harness.is_embedded() {
        assert!(!harness.path("skills/legacy/one.json").exists());
    }
    harness.assert_consistent().await;
}

async fn recent_callers_are_counted_per_tenant(harness: Harness) {
    let record = async |tenant: &str, name: &str| {
        let record =
            call_with(&harness.clock, CallStatus::Success, |call| call.principal = principal(tenant, name));
        let tool = record.invocation.tool_id;
        harness.store.calls().record(Arc::new(record)).await.unwrap();
        tool
    };
    record("default", "ada").await;
    record("default", "ada").await;
    record("acme", "other").await;
    let tool = record("default", "kim").await;
    let callers = harness.store.calls().tool_callers(&tenant(), tool).await.unwrap();
    let counts: Vec<_> = callers.iter().map(|caller| (caller.name.as_str(), caller.calls)).collect();
    assert_eq!(counts, [("ada", 2), ("kim", 1)]);
    assert!(callers[1].last_called_at > callers[0].last_called_at);
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(harness.store.calls().tool_callers(&acme, tool).await.unwrap()[0].name, "other");
}
