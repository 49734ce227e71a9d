//! `Cache`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use haft_runtime::stages::{Cache, Stage};
use serde_json::{Value, json};

use super::rig::{Rig, code, secs};

fn rig(cache: Cache) -> (Rig, Arc<Cache>) {
    let cache = Arc::new(cache);
    let rig = Rig::new(vec![Arc::clone(&cache) as Arc<dyn Stage>]);
    let pure = json!({"is_pure": true, "retry": {"attempts": 0}});
    for function in ["run", "quick", "slow", "fails", "slowly_fails"] {
        rig.tool(function, pure.clone());
    }
    rig.tool_of("impure", "run", json!({}));
    (rig, cache)
}

async fn runs(rig: &Rig, tool: &str, args: Value) -> u64 {
    rig.call(tool, args).await.unwrap().as_u64().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_same_call_of_a_pure_tool_is_cached() {
    let (rig, cache) = rig(Cache::new(secs(60)));
    assert_eq!(runs(&rig, "run", json!({"a": 1, "b": {"c": 2, "d": 3}})).await, 1);
    assert_eq!(runs(&rig, "run", json!({"b": {"d": 3, "c": 2}, "a": 1})).await, 1, "in another order");
    assert_eq!(runs(&rig, "run", json!({"a": 2})).await, 2, "other arguments");
    for expected in [3, 4] {
        assert_eq!(runs(&rig, "impure", json!({"a": 1})).await, expected, "not a pure tool");
    }
    tokio::time::advance(secs(59)).await;
    assert_eq!(runs(&rig, "run", json!({"a": 2})).await, 2);
    tokio::time::advance(secs(1)).await;
    assert_eq!(runs(&rig, "run", json!({"a": 2})).await, 5, "it has expired");
    rig.tool("run", json!({"is_pure": true, "timeout_ms": 5000}));
    assert_eq!(runs(&rig, "run", json!({"a": 2})).await, 6, "another revision");
    cache.clear();
    assert_eq!(runs(&rig, "run", json!({"a": 2})).await, 7, "forgotten");
}

#[tokio::test(start_paused = true)]
async fn errors_are_not_cached() {
    let (rig, _) = rig(Cache::new(secs(60)));
    for expected in 1..=3 {
        assert_eq!(rig.code("fails", json!({})).await, "execution_failed");
        assert_eq!(rig.runs(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_concurrent_calls_one_runs() {
    let (rig, _) = rig(Cache::new(secs(60)));
    let calls = join_all((0..50).map(|number| runs(&rig, "slow", json!({"seconds": 1, "n": number % 2}))));
    let mut values = calls.await;
    values.sort_unstable();
    assert_eq!((values, rig.runs()), ([vec![1; 25], vec![2; 25]].concat(), 2));
}

#[tokio::test(start_paused = true)]
async fn one_of_many_runs_even_if_the_value_is_too_large_to_cache() {
    let (rig, _) = rig(Cache::new(secs(60)).max_bytes(10));
    let calls = join_all((0..10).map(|_| runs(&rig, "slow", json!({}))));
    assert_eq!(calls.await, [1; 10]);
    assert_eq!(runs(&rig, "slow", json!({})).await, 2);
}

#[tokio::test(start_paused = true)]
async fn calls_that_waited_for_a_failed_one_run_themselves() {
    let (rig, _) = rig(Cache::new(secs(60)));
    let start = tokio::time::Instant::now();
    let outcomes = join_all((0..4).map(|_| rig.call("slowly_fails", json!({})))).await;
    assert!(outcomes.iter().all(|outcome| code(outcome) == "execution_failed"));
    assert_eq!((rig.runs(), start.elapsed()), (4, secs(2)), "first one, then the others at once");
}

#[tokio::test(start_paused = true)]
async fn if_the_first_call_is_cancelled_the_next_one_runs() {
    let (rig, _) = rig(Cache::new(secs(60)));
    let args = json!({"seconds": 5});
    let first = tokio::time::timeout(secs(1), rig.call("slow", args.clone()));
    let others = join_all((0..4).map(|_| runs(&rig, "slow", args.clone())));
    let (first, others) = tokio::join!(first, others);
    assert!(first.is_err());
    assert_eq!((others, rig.runs()), (vec![2; 4], 2));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_entries_is_limited() {
    let (rig, _) = rig(Cache::new(secs(60)).max_entries(2));
    for (number, expected) in [(1, 1), (2, 2), (1, 1), (3, 3), (1, 1), (2, 4)] {
        assert_eq!(runs(&rig, "run", json!({"n": number})).await, expected, "{number}");
    }
}

/// Real threads: whatever the order, a value is made once for each key.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_share_cached_values() {
    let (rig, _) = rig(Cache::new(secs(3600)));
    let rig = Arc::new(rig);
    let tasks = (0..8).map(|_| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            for number in 0..200 {
                let value = rig.call("quick", json!({"n": number % 10})).await.unwrap();
                assert_eq!(value, json!({"n": number % 10}));
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(Result::unwrap);
    assert_eq!(rig.seen.runs.load(Ordering::SeqCst), 10);
}
