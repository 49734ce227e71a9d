//! Several nodes on one PostgreSQL.

use std::sync::Arc;

use haft_core::catalog::{Backup, StoreError};
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretSource as _};

use crate::harness::{Harness, eventually, new_tool, spec};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_hear_of_each_others_changes() {
    let harness = Harness::postgres().await;
    let (other, heard) = harness.another().await;
    let watching = other.watch();
    let tool = harness.create(spec("weather", "one")).await.unwrap();
    eventually("the tool is heard of", || heard.mirror().named("weather") == Some(&tool)).await;
    let two = harness.store.update_tool(tool.id, spec("weather", "two").into()).await.unwrap();
    eventually("the revision is heard of", || heard.mirror().named("weather") == Some(&two)).await;
    harness.store.enable_bundle(tool.bundle_id, false).await.unwrap();
    eventually("the switch is heard of", || heard.mirror() == harness.mirror()).await;
    harness.store.delete_tool(tool.id, Backup::Keep).await.unwrap();
    eventually("the deletion is heard of", || heard.mirror() == harness.mirror()).await;
    let tenant = TenantId::default_tenant();
    harness.store.put_credential(tenant.clone(), "KEY".into(), Secret::new("v".into())).await.unwrap();
    for _ in 0..500 {
        if other.secret(&tenant, "KEY").await.unwrap().is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(other.secret(&tenant, "KEY").await.unwrap().is_some());
    watching.stop().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_create_the_same_pair_on_two_nodes_one_wins() {
    let harness = Harness::postgres().await;
    let (other, _) = harness.another().await;
    for round in 0..5 {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..20 {
            let store = Arc::clone(if number % 2 == 0 { &harness.store } else { &other });
            let spec = spec("weather", &format!("number {number}"));
            tasks.spawn(async move { store.create_tool(new_tool(&format!("web{round}"), spec)).await });
        }
        let (won, lost): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 19));
        for result in lost {
            let Err(StoreError::Conflict(text)) = result else { panic!("{result:?}") };
            assert!(text.contains("weather@1.0.0` exists already"), "{text}");
        }
    }
    other.close().await;
}
