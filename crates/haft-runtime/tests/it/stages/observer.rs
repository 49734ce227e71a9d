//! The observer receives every call that ran, exactly once, however it ended.

use serde_json::json;

use super::rig::{Rig, secs};

#[tokio::test(start_paused = true)]
async fn completed_calls_are_observed_with_their_outcome() {
    let rig = Rig::new(Vec::new());
    rig.tool("quick", json!({})).tool("fails", json!({})).tool("panics", json!({}));
    for (tool, expected) in [("quick", "ok"), ("fails", "execution_failed"), ("panics", "panicked")] {
        assert_eq!(rig.code(tool, json!({})).await, expected);
        assert_eq!(rig.take_observed(), [(tool.to_owned(), expected)]);
    }
    // A call that was rejected did not run.
    assert_eq!(rig.code("missing", json!({})).await, "not_found");
    assert_eq!(rig.take_observed(), []);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_is_observed_once() {
    let rig = Rig::new(Vec::new());
    rig.tool("slow", json!({"timeout_ms": 2000}));
    assert_eq!(rig.code("slow", json!({"seconds": 10})).await, "timeout");
    assert_eq!(rig.take_observed(), [("slow".to_owned(), "timeout")]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_in_the_queue_of_its_tool_is_observed_once() {
    let rig = Rig::new(Vec::new());
    rig.tool("slow", json!({"timeout_ms": 60_000, "limits": {"max_parallel": 1}}));
    let second = async {
        tokio::time::sleep(secs(1)).await;
        rig.tool("slow", json!({"timeout_ms": 2000, "limits": {"max_parallel": 1}}));
        let code = rig.code("slow", json!({})).await;
        (code, rig.runs(), rig.take_observed())
    };
    let (first, second) = tokio::join!(rig.code("slow", json!({"seconds": 10})), second);
    assert_eq!(second, ("timeout", 1, vec![("slow".to_owned(), "timeout")]), "it never started");
    assert_eq!((first, rig.take_observed()), ("ok", vec![("slow".to_owned(), "ok")]));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_disconnects_is_observed_once() {
    let rig = Rig::new(Vec::new());
    rig.tool("slow", json!({}));
    let call = tokio::time::timeout(secs(1), rig.code("slow", json!({"seconds": 10})));
    assert!(call.await.is_err(), "the future is dropped");
    assert_eq!(rig.take_observed(), [("slow".to_owned(), "cancelled")]);
    assert_eq!(rig.pipeline.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_by_a_shutdown_is_observed_once() {
    let rig = Rig::new(Vec::new());
    rig.tool("slow", json!({}));
    let stop = async {
        tokio::time::sleep(secs(1)).await;
        rig.pipeline.stop();
    };
    let (code, ()) = tokio::join!(rig.code("slow", json!({"seconds": 10})), stop);
    assert_eq!(code, "cancelled");
    assert_eq!(rig.take_observed(), [("slow".to_owned(), "cancelled")]);
}
