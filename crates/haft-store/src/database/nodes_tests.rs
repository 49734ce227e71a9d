use std::sync::Arc;

use haft_core::catalog::{Change, ChangeSink};
use haft_core::name::TenantId;
use haft_core::{Clock, Timestamp};
use haft_testkit::postgres::TestDatabase;

use super::*;
use crate::database::nodes::Leases;
use crate::engine::CHANGE_LOCK;
use crate::settings::StoreSettings;
use crate::store::Store;

struct TestClock;

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        "2026-08-01T10:00:00Z".parse().unwrap()
    }
}

struct NullSink;

impl ChangeSink for NullSink {
    fn apply(&self, _: Vec<Change>) {}
    fn replace(&self, _: Vec<Change>) {}
}

#[test]
fn only_a_node_without_a_heartbeat_loses_its_lease() {
    let leases = Leases::new(Duration::from_secs(10));
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let beats = |a, b| HashMap::from([("a".to_owned(), a), ("b".to_owned(), b)]);
    // However old a heartbeat is when it is first seen, the node has a whole lease from then on.
    assert!(leases.observe(&beats(7, 1), at(0)).is_empty());
    assert!(leases.observe(&beats(7, 2), at(6)).is_empty());
    assert_eq!(leases.observe(&beats(7, 3), at(10)), ["a"]);
    assert!(leases.observe(&beats(8, 4), at(11)).is_empty());
    assert!(leases.observe(&HashMap::new(), at(12)).is_empty());
    assert!(leases.observe(&beats(8, 4), at(30)).is_empty(), "a node that comes back starts anew");
}

async fn database() -> TestDatabase {
    tokio::task::spawn_blocking(haft_testkit::postgres::database).await.unwrap().unwrap()
}

async fn open(database: &TestDatabase, change_timeout: Duration) -> Arc<Store> {
    let settings = StoreSettings {
        key: Some(Secret::new("ab".repeat(32))),
        lease: Duration::from_secs(1),
        change_timeout,
        ..StoreSettings::postgres(Secret::new(database.url.clone()))
    };
    Store::open(settings, Arc::new(TestClock), Arc::new(NullSink)).await.unwrap()
}

/// Holds the lock of changes like a long `apply`, until it is dropped.
async fn hold_change_lock(database: &TestDatabase) -> AnyConnection {
    let mut connection = Engine::connect_alone(&Secret::new(database.url.clone())).await.unwrap();
    let lock = sqlx::query("SELECT pg_advisory_lock($1)").bind(CHANGE_LOCK);
    lock.execute(&mut connection).await.unwrap();
    connection
}

async fn change(store: &Store) -> Result<(), StoreError> {
    store.vault().put(TenantId::default_tenant(), "KEY".into(), Secret::new("v".into())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_a_free_connection_keeps_its_lease() {
    let database = database().await;
    let store = open(&database, Duration::from_mins(5)).await;
    let other = open(&database, Duration::from_mins(5)).await;
    let watching = (store.watch(), other.watch());
    let lock = hold_change_lock(&database).await;
    let pool = &store.db.engine.pool;
    let mut drained = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        drained.push(pool.acquire().await.unwrap());
    }
    let heartbeat = async || {
        let sql = "SELECT heartbeat FROM nodes WHERE id = $1";
        let row = sqlx::query(sql).bind(&store.db.node).fetch_optional(&other.db.engine.pool).await;
        row.unwrap().map(|row| row.get::<i64, _>(0)).expect("the node has lost its lease")
    };
    // Three leases long.
    let enough = heartbeat().await + i64::from(3 * HEARTBEATS_PER_LEASE);
    let deadline = Instant::now() + Duration::from_mins(1);
    while heartbeat().await < enough {
        assert!(Instant::now() < deadline, "no heartbeats arrive");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(pool.try_acquire().is_none(), "no connection was free");
    drop(drained);
    drop(lock);
    watching.0.stop().await;
    watching.1.stop().await;
    store.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_waits_too_long_for_another_is_busy() {
    let database = database().await;
    let store = open(&database, Duration::from_millis(200)).await;
    let lock = hold_change_lock(&database).await;
    let busy = change(&store).await;
    assert!(matches!(busy, Err(StoreError::Busy)), "{busy:?}");
    assert!(busy.unwrap_err().is_temporary());
    lock.close().await.unwrap();
    // The server releases the lock when it notices that the connection is closed.
    let deadline = Instant::now() + Duration::from_mins(1);
    while let Err(error) = change(&store).await {
        assert!(matches!(error, StoreError::Busy) && Instant::now() < deadline, "{error:?}");
    }
    store.close().await;
}
