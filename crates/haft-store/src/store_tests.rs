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
    let inner = &store.inner;
    // Until the file is old enough to trust its stamp.
    while inner.sync().await.unwrap().repeat {}
    let stamp = async || inner.state.lock().await.files["skills/web/a.skill"].stamp.clone();
    let (before, generation) = (stamp().await, inner.generation().await.unwrap());
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000))
        .unwrap();
    loop {
        let synced = inner.sync().await.unwrap();
        assert_eq!(synced.changed, 0);
        if !synced.repeat && stamp().await != before {
            break;
        }
    }
    assert_eq!(inner.generation().await.unwrap(), generation);
    store.close().await;
}

/// A call may finish between the search for calls of dead nodes and their update.
#[tokio::test]
async fn a_finished_call_is_not_marked_as_interrupted() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path()).await;
    let engine = &store.inner.engine;
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
        store.inner.recover_call("n", record("running")).await.unwrap();
        assert_eq!(status().await, expected);
        sqlx::query("DELETE FROM calls").execute(&engine.pool).await.unwrap();
    }
    store.close().await;
}
