use std::sync::Arc;
use std::time::Duration;

use haft_core::catalog::{Change, ChangeSink};
use haft_core::run::Run;
use haft_core::{Clock, Timestamp};
use serde_json::json;

use super::*;
use crate::settings::StoreSettings;
use crate::store::Store;

struct TestClock;

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * 365 * 50)
    }
}

struct NullSink;

impl ChangeSink for NullSink {
    fn apply(&self, _: Vec<Change>) {}
    fn replace(&self, _: Vec<Change>) {}
}

fn run() -> Run {
    serde_json::from_value(json!({
        "id": "018faf50-b7b6-7a01-9a05-a22a6e0af101", "agent_id": "018faf50-b7b6-7a01-9a05-a22a6e0af102",
        "agent_revision": 1, "definition": {"slug": "assistant", "name": "x", "model": {"name": "scripted"}},
        "principal": {"tenant": "default", "name": "ann", "role": "caller"}, "surface": "rest", "mode": "debug",
        "input": [], "status": "pending", "created_at": "2026-01-31T12:00:00Z",
    }))
    .unwrap()
}

/// A node that cannot store a step gives the run up, and lives on: the run must not stay with it.
#[tokio::test]
async fn a_run_whose_write_failed_can_be_claimed_again() {
    let home = tempfile::tempdir().unwrap();
    let settings = StoreSettings { lease: Duration::from_secs(1), ..StoreSettings::embedded(home.path()) };
    let store = Store::open(settings, Arc::new(TestClock), Arc::new(NullSink)).await.unwrap();
    let (run, lease) = store.runs().create_claimed(run()).await.unwrap();
    let rename = async |from: &str, to: &str| {
        let sql = AssertSqlSafe(format!("ALTER TABLE {from} RENAME TO {to}"));
        sqlx::query(sql).execute(&store.db.engine.pool).await.unwrap();
    };
    rename("run_steps", "away").await;
    let step: RunStep = serde_json::from_value(json!({
        "number": 1, "body": {"type": "correction", "text": "x"}, "started_at": "2026-01-31T12:00:00Z", "duration_ms": 1.0,
    }))
    .unwrap();
    let failed = store.runs().append_steps(&lease, vec![step.clone()], &RunUsage::default()).await;
    assert!(matches!(failed, Err(RunStoreError::Store(StoreError::Unavailable { .. }))), "{failed:?}");
    rename("away", "run_steps").await;
    assert!(store.runs().claim(run.id).await.unwrap().is_none());
    store.runs.recover().await.unwrap();
    let (_, steps, newer) = store.runs().claim(run.id).await.unwrap().unwrap();
    assert!(steps.is_empty() && newer.fence > lease.fence);
    let late = store.runs().append_steps(&lease, vec![step.clone()], &RunUsage::default()).await;
    assert!(matches!(late, Err(RunStoreError::LeaseLost)));
    store.runs().append_steps(&newer, vec![step], &RunUsage::default()).await.unwrap();
    // The same for a caller that failed in another way.
    store.runs().abandon(newer);
    store.runs.recover().await.unwrap();
    assert_eq!(store.runs().claim_next(1).await.unwrap().len(), 1);
    store.close().await;
}
