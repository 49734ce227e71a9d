use std::collections::HashSet;
use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::catalog::Change;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::secret::Secret;
use sqlx::Row as _;

use super::*;
use crate::ledger::insert::insert;
use crate::ledger::record::{self, CallRow};

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        "2026-08-01T10:00:00Z".parse().unwrap()
    }
}

struct NullSink;

impl ChangeSink for NullSink {
    fn apply(&self, _: Vec<Change>) {}
    fn replace(&self, _: Vec<Change>) {}
}

pub(crate) async fn open(home: &std::path::Path) -> Arc<Store> {
    Store::open(StoreSettings::embedded(home), Arc::new(FixedClock), Arc::new(NullSink)).await.unwrap()
}

/// A new timestamp of a file is no change: other processes must not reload for it.
#[tokio::test]
async fn a_touched_file_does_not_advance_the_generation() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("skills/web/a.skill");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "---\nname: a\nversion: 1.0.0\ndescription: x\nruntime: python\n---\nprint(1)\n")
        .unwrap();
    let store = open(home.path()).await;
    let catalog = &store.catalog.state;
    // Until the file is old enough to trust its stamp.
    while catalog.sync().await.unwrap().repeat {}
    let stamp = async || catalog.index.lock().await.files["skills/web/a.skill"].stamp.clone();
    let (before, generation) = (stamp().await, store.db.stored_generation().await.unwrap());
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000))
        .unwrap();
    loop {
        let synced = catalog.sync().await.unwrap();
        assert_eq!(synced.changed, 0);
        if !synced.repeat && stamp().await != before {
            break;
        }
    }
    assert_eq!(store.db.stored_generation().await.unwrap(), generation);
    store.close().await;
}

/// A call may finish between the search for calls of dead nodes and their update.
#[tokio::test]
async fn a_finished_call_is_not_marked_as_interrupted() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path()).await;
    let engine = &store.db.engine;
    let record = |status: &str| {
        let call = serde_json::json!({
            "id": "018faf50-b7b6-7a01-9a05-a22a6e0af102", "tool_id": "018faf50-b7b6-7a01-9a05-a22a6e0af101",
            "tool": "web:weather@1.0.0", "revision": 1, "mode": "debug", "status": status, "args": {},
            "tenant": "default", "caller": "test", "surface": "rest", "started_at": "2026-01-31T12:00:00Z",
        });
        record::parse(&call.to_string()).unwrap()
    };
    let status = async || {
        let row = sqlx::query("SELECT status FROM calls").fetch_one(&engine.pool).await.unwrap();
        row.try_get::<String, _>(0).unwrap()
    };
    for (stored, expected) in [("success", "success"), ("running", "interrupted")] {
        insert(engine, &Outbox::default(), "n", &[CallRow::new(&record(stored)).unwrap()]).await.unwrap();
        store.calls.recover_call("n", record("running")).await.unwrap();
        assert_eq!(status().await, expected);
        sqlx::query("DELETE FROM calls").execute(&engine.pool).await.unwrap();
    }
    store.close().await;
}

/// A change of a bundle and its tool is loaded as a whole, however often it happens while the catalog is loaded.
async fn check_snapshot(store: Arc<Store>) {
    let spec = serde_json::from_value(serde_json::json!({
        "name": "weather", "version": "1.0.0", "description": "x",
        "implementation": {"type": "http", "method": "GET", "url": "https://example.com/"},
    }));
    let tool = store.catalog().create_tool(haft_core::catalog::NewTool {
        tenant: TenantId::default_tenant(),
        bundle: BundleSlug::new("web").unwrap(),
        spec: spec.unwrap(),
        form: haft_core::catalog::FileForm::Skill,
        text: None,
        enabled: true,
        source: haft_core::tool::Source::User,
    });
    let tool = tool.await.unwrap();
    let (writer, stop) = (Arc::clone(&store), tokio_util::sync::CancellationToken::new());
    let stopped = stop.clone();
    let writing = tokio::spawn(async move {
        let mut enabled = 0_i64;
        while !stopped.is_cancelled() {
            let mut tx = writer.db.engine.begin().await.unwrap();
            for sql in [
                "UPDATE bundles SET enabled = $1 WHERE id = $2",
                "UPDATE tools SET enabled = $1 WHERE bundle_id = $2",
            ] {
                let update = sqlx::query(sql).bind(enabled).bind(tool.bundle_id.to_string());
                assert_eq!(update.execute(&mut *tx).await.unwrap().rows_affected(), 1);
            }
            tx.commit().await.unwrap();
            enabled = 1 - enabled;
        }
    });
    let mut seen = HashSet::new();
    for round in 0.. {
        let (_, _, everything) = store.catalog.state.load().await.unwrap();
        let bundle = everything.iter().find_map(|change| match change {
            Change::Bundle(bundle) if bundle.id == tool.bundle_id => Some(bundle.enabled),
            _ => None,
        });
        let loaded = everything.iter().find_map(|change| match change {
            Change::Tool(found) if found.id == tool.id => Some(found.enabled),
            _ => None,
        });
        assert_eq!(bundle.unwrap(), loaded.unwrap(), "a bundle and its tool of different times");
        seen.insert(bundle);
        if round >= 100 && seen.len() == 2 {
            break;
        }
    }
    stop.cancel();
    writing.await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_catalog_is_loaded_as_it_is_at_one_moment_in_sqlite() {
    let home = tempfile::tempdir().unwrap();
    check_snapshot(open(home.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_catalog_is_loaded_as_it_is_at_one_moment_in_postgres() {
    let database = tokio::task::spawn_blocking(haft_testkit::postgres::database).await.unwrap().unwrap();
    let settings = StoreSettings {
        key: Some(Secret::new("ab".repeat(32))),
        ..StoreSettings::postgres(Secret::new(database.url.clone()))
    };
    let store = Store::open(settings, Arc::new(FixedClock), Arc::new(NullSink)).await.unwrap();
    check_snapshot(store).await;
}
