//! `Concurrency`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use haft_runtime::stages::{Concurrency, Timeout};
use serde_json::json;

use super::rig::{Rig, code, secs};

/// Calls each of three tools, the first two of one group, four times at once.
async fn most_at_once(stage: Concurrency) -> (usize, u64) {
    let rig = Rig::new(vec![Arc::new(stage)]);
    for (name, group) in [("a", "x"), ("b", "x"), ("c", "y")] {
        rig.tool_of(name, "slow", json!({"concurrency_group": group}));
    }
    let start = tokio::time::Instant::now();
    let calls = (0..12).map(|number| rig.call(["a", "b", "c"][number % 3], json!({})));
    let outcomes = join_all(calls).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    (rig.seen.most.load(Ordering::SeqCst), start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn scopes_of_concurrency_limits() {
    assert_eq!(most_at_once(Concurrency::global(3).unwrap()).await, (3, 4));
    assert_eq!(most_at_once(Concurrency::each_tool(2).unwrap()).await, (6, 2));
    // The group of two tools has eight calls, the other one four.
    assert_eq!(most_at_once(Concurrency::each_group(2).unwrap()).await, (4, 4));
    assert_eq!(most_at_once(Concurrency::global(usize::MAX).unwrap()).await, (12, 1));
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_limited_and_a_cancelled_call_leaves_it() {
    assert_eq!(
        Concurrency::each_group(0).err().unwrap().to_string(),
        "`Concurrency`: a limit of 0 rejects every call; use 1 or more, or remove the stage"
    );
    let rig = Rig::new(vec![Arc::new(Concurrency::each_tool(1).unwrap().max_waiting(1))]);
    rig.tool("slow", json!({}));
    let outcomes = join_all((0..4).map(|_| rig.call("slow", json!({})))).await;
    let codes: Vec<_> = outcomes.iter().map(code).collect();
    assert_eq!(codes, ["ok", "ok", "overloaded", "overloaded"]);
    insta::assert_snapshot!(outcomes[3].as_ref().unwrap_err(), @r"overloaded: too many calls are waiting for `user-created:slow@1.0.0`; retry later");

    let waiting = async {
        let gone = tokio::time::timeout(secs(1), rig.call("slow", json!({}))).await;
        assert!(gone.is_err(), "it was waiting");
        rig.code("slow", json!({})).await
    };
    let (first, last) = tokio::join!(rig.call("slow", json!({"seconds": 3})), waiting);
    assert_eq!((code(&first), last, rig.runs()), ("ok", "ok", 4));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_includes_the_wait_in_the_queue() {
    let stages: Vec<Arc<dyn haft_runtime::stages::Stage>> =
        vec![Arc::new(Timeout::new(secs(3)).unwrap()), Arc::new(Concurrency::global(1).unwrap())];
    let rig = Rig::new(stages);
    rig.tool("slow", json!({}));
    let outcomes = join_all((0..2).map(|_| rig.call("slow", json!({"seconds": 2})))).await;
    let codes: Vec<_> = outcomes.iter().map(code).collect();
    assert_eq!((codes, rig.runs()), (vec!["ok", "timeout"], 2));
}
