//! Several nodes on one PostgreSQL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::catalog::{Backup, StoreError};
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretSource as _};

use crate::harness::{Harness, eventually, new_tool, spec};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_receive_each_others_changes() {
    let harness = Harness::postgres().await;
    let (other, received) = harness.another().await;
    let watching = other.watch();
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    eventually("the tool is received", || received.mirror().named("weather") == Some(&tool)).await;
    let two = harness.store.catalog().update_tool(tool.id, spec("weather", "two").into()).await.unwrap();
    eventually("the revision is received", || received.mirror().named("weather") == Some(&two)).await;
    harness.store.catalog().enable_bundle(tool.bundle_id, false).await.unwrap();
    eventually("the switch is received", || received.mirror() == harness.mirror()).await;
    harness.store.catalog().delete_tool(tool.id, Backup::Keep).await.unwrap();
    eventually("the deletion is received", || received.mirror() == harness.mirror()).await;
    let tenant = TenantId::default_tenant();
    harness.store.vault().put(tenant.clone(), "KEY".into(), Secret::new("v".into())).await.unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while other.vault().secret(&tenant, "KEY").await.unwrap().is_none() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(other.vault().secret(&tenant, "KEY").await.unwrap().is_some());
    watching.stop().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_creations_on_two_nodes_one_succeeds() {
    let harness = Harness::postgres().await;
    let (other, _) = harness.another().await;
    for round in 0..5 {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..20 {
            let store = Arc::clone(if number % 2 == 0 { &harness.store } else { &other });
            let spec = spec("weather", &format!("number {number}"));
            tasks.spawn(
                async move { store.catalog().create_tool(new_tool(&format!("web{round}"), spec)).await },
            );
        }
        let (won, lost): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 19));
        for result in lost {
            let Err(StoreError::Conflict(text)) = result else { panic!("{result:?}") };
            assert!(text.contains("weather@1.0.0` already exists"), "{text}");
        }
    }
    other.close().await;
}

/// Many changes on one node cause few announcements on another, whether they come in one transaction or in many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_other_nodes_are_loaded_in_batches() {
    const TOOLS: usize = 300;
    let harness = Harness::postgres().await;
    let (other, received) = harness.another().await;
    let watching = other.watch();
    // The first load of the listener is done when it sees this tool.
    harness.create(spec("first", "x")).await.unwrap();
    eventually("the listener runs", || received.mirror().named("first").is_some()).await;
    let before = received.announced();
    harness
        .store
        .catalog()
        .set_built_ins((0..TOOLS).map(|n| spec(&format!("b{n}"), "x")).collect())
        .await
        .unwrap();
    eventually("the transaction is received", || received.mirror().tools.len() == TOOLS + 1).await;
    let transaction = received.announced() - before;
    assert!(transaction <= 3, "one transaction caused {transaction} announcements");
    for number in 0..TOOLS {
        harness.create(spec(&format!("t{number}"), "x")).await.unwrap();
    }
    eventually("all tools are received", || received.mirror().tools.len() == 2 * TOOLS + 1).await;
    let single = received.announced() - before - transaction;
    assert!(single < TOOLS / 2, "{TOOLS} transactions caused {single} announcements");
    watching.stop().await;
    other.close().await;
}
