//! Audit records: storing, filtering and retention.

use haft_core::Timestamp;
use haft_core::audit::{AuditQuery, AuditRecord};
use haft_core::name::TenantId;
use haft_core::secret::Secret;
use haft_store::{AuditLog, Retention, Store, StoreSettings};
use uuid::Uuid;

use crate::harness::{Harness, Recorder, new_tool, on_both, spec};

on_both![
    a_change_and_its_record_are_stored_together,
    records_can_be_filtered,
    records_are_paged,
    records_are_limited_by_age_and_number,
];

pub(crate) fn record(actor: &str, action: &str, target: &str) -> AuditRecord {
    AuditRecord {
        id: Uuid::nil(),
        tenant: TenantId::default_tenant(),
        at: Timestamp::UNIX_EPOCH,
        actor: actor.into(),
        actor_id: (actor != "local").then(Uuid::now_v7),
        token_id: None,
        action: action.into(),
        target: target.into(),
        outcome: "success".into(),
        request_id: "r-1".into(),
    }
}

pub(crate) fn all() -> AuditQuery {
    AuditQuery {
        tenant: TenantId::default_tenant(),
        action: None,
        target: None,
        actor: None,
        since: None,
        until: None,
        outcome: None,
        before: None,
        skip: 0,
        limit: 100,
    }
}

async fn targets(store: &Store, query: AuditQuery) -> (Vec<String>, u64) {
    let page = store.audit().page(&query).await.unwrap();
    (page.records.into_iter().map(|record| record.target).collect(), page.total)
}

/// A stored change has its record even after a crash; a failed change has none.
async fn a_change_and_its_record_are_stored_together(mut harness: Harness) {
    let store = &harness.store;
    let begun = |action: &str| store.audit().new_record(record("local", action, ""));
    let tenant = TenantId::default_tenant;
    let put = store.vault().put(tenant(), "KEY".into(), Secret::new("hunter2-hunter2".into()));
    AuditLog::recorded(begun("credential.put"), put).await.unwrap();
    let delete = store.vault().delete(tenant(), "MISSING".into());
    AuditLog::recorded(begun("credential.delete"), delete).await.unwrap_err();
    let create = store.catalog().create_tool(new_tool("web", spec("weather", "Tells the weather")));
    AuditLog::recorded(begun("tool.create"), create).await.unwrap();
    let named = begun("credential.delete");
    let delete = store.vault().delete(tenant(), "KEY".into());
    AuditLog::recorded(named.clone(), delete).await.unwrap();
    // Like a server when the request completes; the other requests never completed.
    store.audit().record(AuditRecord { target: "the key".into(), ..named }).await.unwrap();
    harness.restart().await;
    let found = harness.store.audit().page(&all()).await.unwrap().records;
    let lines: Vec<_> =
        found.iter().rev().map(|r| format!("{} {} {}", r.action, r.target, r.outcome)).collect();
    assert_eq!(
        lines,
        [
            "credential.put KEY success",
            "tool.create web:weather@1.0.0 success",
            "credential.delete the key success"
        ]
    );
}

async fn records_can_be_filtered(mut harness: Harness) {
    let kim = record("kim", "tool.update", "web:a_b@1.0.0");
    for record in [
        record("local", "tool.create", "web:a_b@1.0.0"),
        kim.clone(),
        record("kim", "tool.delete", "web:axb@1.0.0"),
        record("kim", "credential.put", "100%!"),
        AuditRecord { tenant: TenantId::new("acme").unwrap(), ..record("eve", "tool.create", "theirs") },
    ] {
        harness.store.audit().record(harness.store.audit().new_record(record)).await.unwrap();
    }
    harness.restart().await;
    let found = harness.store.audit().page(&all()).await.unwrap();
    assert_eq!(found.total, 4);
    let second = &found.records[2];
    assert_eq!(*second, AuditRecord { id: second.id, at: second.at, ..kim.clone() });
    assert!(second.at < found.records[1].at, "the newest comes first");
    let late = found.records[1].at;
    let id = kim.actor_id.map(|id| id.to_string());
    for (query, expected) in [
        (AuditQuery { action: Some("tool.update".into()), ..all() }, vec!["web:a_b@1.0.0"]),
        (AuditQuery { action: Some("tool.".into()), ..all() }, vec![]),
        (AuditQuery { target: Some("a_b".into()), ..all() }, vec!["web:a_b@1.0.0", "web:a_b@1.0.0"]),
        (AuditQuery { target: Some("%!".into()), ..all() }, vec!["100%!"]),
        (AuditQuery { actor: Some("local".into()), ..all() }, vec!["web:a_b@1.0.0"]),
        (AuditQuery { actor: id, ..all() }, vec!["web:a_b@1.0.0"]),
        (AuditQuery { since: Some(late), ..all() }, vec!["100%!", "web:axb@1.0.0"]),
        (AuditQuery { actor: Some("' OR 1=1 --".into()), ..all() }, vec![]),
        (AuditQuery { tenant: TenantId::new("acme").unwrap(), ..all() }, vec!["theirs"]),
    ] {
        let count = expected.len() as u64;
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(targets(&harness.store, query.clone()).await, (expected, count), "{query:?}");
    }
}

async fn records_are_paged(harness: Harness) {
    for number in 0..5 {
        let record = harness.store.audit().new_record(record("kim", "tool.update", &number.to_string()));
        harness.store.audit().record(record).await.unwrap();
    }
    let page = harness.store.audit().page(&AuditQuery { limit: 2, ..all() }).await.unwrap();
    assert_eq!((page.records[1].target.as_str(), page.total), ("3", 5));
    let next = AuditQuery { limit: 2, before: Some(page.records[1].id), ..all() };
    assert_eq!(targets(&harness.store, next).await, (vec!["2".to_owned(), "1".to_owned()], 5));
    let skipped = AuditQuery { limit: 1, skip: 4, ..all() };
    assert_eq!(targets(&harness.store, skipped).await.0, ["0"]);
}

async fn records_are_limited_by_age_and_number(harness: Harness) {
    harness.store.close().await;
    let retention = Retention { audit_days: 10, audit_records: 3, ..Retention::default() };
    let settings = StoreSettings { retention, ..harness.settings() };
    let sink = std::sync::Arc::new(Recorder::default());
    let store = Store::open(settings, harness.clock.clone(), sink).await.unwrap();
    let put = async |target: &str| {
        store.audit().record(store.audit().new_record(record("kim", "tool.update", target))).await.unwrap();
    };
    put("old").await;
    harness.clock.advance(11 * 24);
    for target in ["a", "b"] {
        put(target).await;
    }
    store.reap().await.unwrap();
    assert_eq!(targets(&store, all()).await.0, ["b", "a"]);
    for target in ["c", "d"] {
        put(target).await;
    }
    store.reap().await.unwrap();
    assert_eq!(targets(&store, all()).await.0, ["d", "c", "b"]);
    store.close().await;
}

#[tokio::test]
async fn edits_of_definition_files_are_recorded() {
    let mut harness = Harness::sqlite().await;
    let api = harness.store.catalog().create_tool(new_tool("web", spec("by-api", "a"))).await.unwrap();
    harness.restart().await;
    assert_eq!(targets(&harness.store, all()).await.1, 0, "haft's own files are no edits");
    let path = "skills/web/weather@1.0.0.json";
    harness.write(path, &crate::harness::text("weather", "a"));
    harness.restart().await;
    harness.write(path, &crate::harness::text("weather", "another text"));
    harness.restart().await;
    harness.restart().await;
    harness.write(path, "{ nonsense");
    harness.restart().await;
    std::fs::remove_file(harness.path(path)).unwrap();
    std::fs::remove_file(harness.path(api.path.as_deref().unwrap())).unwrap();
    harness.restart().await;
    let found = harness.store.audit().page(&all()).await.unwrap();
    let lines =
        found.records.iter().rev().map(|r| format!("{} {} {} {}", r.actor, r.action, r.target, r.outcome));
    let mut lines: Vec<String> = lines.collect();
    lines[3..].sort();
    assert_eq!(
        lines,
        [
            "file tool.create web:weather@1.0.0 success",
            "file tool.update web:weather@1.0.0 success",
            "file tool.update web:weather@1.0.0 invalid_definition",
            "file tool.delete web:by-api@1.0.0 success",
            "file tool.delete web:weather@1.0.0 success",
        ]
    );
    // Very many edits at once do not fill the log.
    for number in 0..510 {
        harness.write(
            &format!("skills/many/t{number}@1.0.0.json"),
            &crate::harness::text(&format!("t{number}"), "a"),
        );
    }
    harness.restart().await;
    let (newest, total) = targets(&harness.store, all()).await;
    assert_eq!((newest[0].as_str(), total), ("10 more tools", 5 + 501));
}
