//! Limits that the nodes of one database share.

use std::sync::Arc;
use std::time::Duration;

use haft_core::limit::{CallRate, DrawRequest, SharedLimits as _, UnusedCalls};

use crate::harness::Harness;

const RATE: CallRate = CallRate { calls: 10, period: Duration::from_mins(1) };

fn draw(calls: u32) -> DrawRequest {
    DrawRequest { rate: RATE, calls, lifetime: Duration::from_secs(1), unused: None }
}

#[tokio::test]
async fn only_nodes_of_one_database_share_limits() {
    assert!(!Harness::sqlite().await.store.limits().is_shared());
    assert!(Harness::postgres().await.store.limits().is_shared());
}

#[tokio::test]
async fn nodes_draw_from_one_rate() {
    let harness = Harness::postgres().await;
    let (one, (other, _)) = (Arc::clone(&harness.store), harness.another().await);
    let first = one.limits().draw("key", draw(4)).await.unwrap();
    assert_eq!((first.granted, first.status.remaining), (4, 6));
    assert_eq!(other.limits().draw("key", draw(4)).await.unwrap().granted, 4);
    assert_eq!(one.limits().draw("other", draw(4)).await.unwrap().granted, 4, "another key");
    // What is left, and what was not used.
    assert_eq!(other.limits().draw("key", draw(4)).await.unwrap().granted, 2);
    let refused = one.limits().draw("key", draw(4)).await.unwrap();
    assert_eq!((refused.granted, refused.status.remaining), (0, 0));
    assert!(refused.status.reset > Duration::from_secs(50), "{refused:?}");
    let unused = Some(UnusedCalls { batch: first.batch, calls: 3 });
    let returned = one.limits().draw("key", DrawRequest { unused, ..draw(2) }).await.unwrap();
    assert_eq!((returned.granted, returned.status.remaining), (2, 1));
    assert_eq!(other.limits().status("key", RATE).await.unwrap().remaining, 1);
    assert_eq!(other.limits().status("unknown", RATE).await.unwrap().remaining, 10);
    harness.store.reap().await.unwrap();
    assert_eq!(
        other.limits().status("key", RATE).await.unwrap().remaining,
        1,
        "the reaper keeps what counts"
    );
    other.close().await;
}

#[tokio::test]
async fn drawn_calls_stop_counting_after_the_period() {
    let harness = Harness::postgres().await;
    // Long enough for the second draw on a busy machine.
    let rate = CallRate { calls: 2, period: Duration::from_secs(3) };
    let request = DrawRequest { rate, calls: 2, lifetime: Duration::from_millis(50), unused: None };
    assert_eq!(harness.store.limits().draw("key", request).await.unwrap().granted, 2);
    let refused = harness.store.limits().draw("key", request).await.unwrap();
    assert_eq!(refused.granted, 0);
    tokio::time::sleep(refused.status.reset + Duration::from_millis(20)).await;
    assert_eq!(harness.store.limits().draw("key", request).await.unwrap().granted, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_draws_never_exceed_the_rate() {
    let harness = Harness::postgres().await;
    let (other, _) = harness.another().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40 {
        let store = if number % 2 == 0 { Arc::clone(&harness.store) } else { Arc::clone(&other) };
        tasks.spawn(async move { store.limits().draw("key", draw(1)).await.unwrap().granted });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u32>(), 10);
    other.close().await;
}

#[tokio::test]
async fn nodes_share_the_calls_at_the_same_time() {
    let harness = Harness::postgres().await;
    let (one, (other, _)) = (Arc::clone(&harness.store), harness.another().await);
    assert!(one.limits().acquire("key", 2).await.unwrap() && other.limits().acquire("key", 2).await.unwrap());
    assert!(
        !one.limits().acquire("key", 2).await.unwrap() && !other.limits().acquire("key", 2).await.unwrap()
    );
    assert!(other.limits().acquire("key", 3).await.unwrap(), "a raised limit");
    one.limits().release("key").await.unwrap();
    assert_eq!(one.limits().running("key").await.unwrap(), 2);
    one.limits().release("key").await.unwrap();
    assert_eq!(one.limits().running("key").await.unwrap(), 2, "a node releases only its own");
    // A node that is gone holds nothing.
    other.close().await;
    assert_eq!(one.limits().running("key").await.unwrap(), 0);
    assert!(one.limits().acquire("key", 1).await.unwrap());
    one.reap().await.unwrap();
    assert_eq!(one.limits().running("key").await.unwrap(), 1);
}
