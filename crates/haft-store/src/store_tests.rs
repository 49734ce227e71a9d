//! What can be seen only from within.

use super::*;
use crate::ledger::insert::insert;
use crate::ledger::record::{self, Row};
use haft_core::call::CallStatus;
use haft_core::id::CallId;

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        "2026-08-01T10:00:00Z".parse().unwrap()
    }
}

struct Deaf;

impl ChangeSink for Deaf {
    fn apply(&self, _: Vec<Change>) {}
    fn replace(&self, _: Vec<Change>) {}
}

async fn open(home: &std::path::Path) -> Arc<Store> {
    Store::open(StoreSettings::embedded(home), Arc::new(Still), Arc::new(Deaf)).await.unwrap()
}

/// A file that was only touched is no change: other processes must not load everything for it.
#[tokio::test]
async fn a_touched_file_moves_no_generation() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("skills/web/a.skill");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "---\nname: a\nversion: 1.0.0\ndescription: x\nruntime: python\n---\nprint(1)\n")
        .unwrap();
    let store = open(home.path()).await;
    let inner = &store.inner;
    // Until the file is old enough for its stamp to be trusted.
    while inner.sync().await.unwrap().again {}
    let stamp = async || inner.state.lock().await.files["skills/web/a.skill"].stamp.clone();
    let (before, generation) = (stamp().await, inner.generation().await.unwrap());
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000))
        .unwrap();
    loop {
        let synced = inner.sync().await.unwrap();
        assert_eq!(synced.changed, 0);
        if !synced.again && stamp().await != before {
            break;
        }
    }
    assert_eq!(inner.generation().await.unwrap(), generation);
    store.close().await;
}

/// Between looking for interrupted calls and ending them, one may have come to its end by itself.
#[tokio::test]
async fn a_finished_call_is_not_ended_again() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path()).await;
    let engine = &store.inner.engine;
    let row = |status: CallStatus, record: &str| Row {
        id: CallId(uuid::Uuid::nil()),
        tenant: haft_core::name::TenantId::default_tenant(),
        tool_id: haft_core::id::ToolId(uuid::Uuid::nil()),
        status,
        record: record.into(),
    };
    let stored = async || {
        let row = sqlx::query("SELECT record FROM calls").fetch_one(&engine.pool).await.unwrap();
        row.try_get::<String, _>(0).unwrap()
    };
    let interrupted = [row(CallStatus::Error, "interrupted")];
    insert(engine, "n", &[row(CallStatus::Success, "done")]).await.unwrap();
    record::end(engine, &interrupted).await.unwrap();
    assert_eq!(stored().await, "done");
    sqlx::query("DELETE FROM calls").execute(&engine.pool).await.unwrap();
    insert(engine, "n", &[row(CallStatus::Running, "runs")]).await.unwrap();
    record::end(engine, &interrupted).await.unwrap();
    assert_eq!(stored().await, "interrupted");
    store.close().await;
}
