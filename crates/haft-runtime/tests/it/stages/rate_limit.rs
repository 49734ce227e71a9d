//! `RateLimit`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use haft_runtime::rate::Rate;
use haft_runtime::stages::{RateLimit, Retry};
use serde_json::json;

use super::rig::{Rig, code, secs};

async fn codes(rig: &Rig, calls: &[(&str, &str)]) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for (caller, tool) in calls {
        codes.push(code(&rig.call_as(caller, tool, json!({})).await));
    }
    codes
}

fn rig(stage: RateLimit) -> Rig {
    let rig = Rig::new(vec![Arc::new(stage)]);
    rig.tool("quick", json!({})).tool("run", json!({}));
    rig
}

#[tokio::test(start_paused = true)]
async fn scopes_of_rate_limits() {
    let calls = [("a", "quick"), ("a", "quick"), ("b", "run"), ("b", "run"), ("c", "quick")];
    let (ok, no) = ("ok", "rate_limited");
    let rate = Rate::per_minute(1);
    for (stage, expected) in [
        (RateLimit::global(rate), [ok, no, no, no, no]),
        (RateLimit::each_tool(rate), [ok, no, ok, no, no]),
        (RateLimit::per_tool([("run", rate)]), [ok, ok, ok, no, ok]),
        (RateLimit::per_tool([("user-created:run", rate)]), [ok, ok, ok, no, ok]),
        (RateLimit::keyed(rate, |call| call.caller().to_owned()), [ok, no, ok, no, ok]),
    ] {
        let rig = rig(stage.unwrap());
        assert_eq!(codes(&rig, &calls).await, expected);
        tokio::time::advance(secs(60)).await;
        assert_eq!(codes(&rig, &calls[..1]).await, [ok], "a minute later");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_names_the_limit_and_the_wait() {
    let each = rig(RateLimit::each_tool(Rate::per_minute(6).burst(2)).unwrap());
    let keyed = rig(RateLimit::keyed(Rate::every(secs(5)), |_| "hunter2".to_owned()).unwrap());
    codes(&each, &[("a", "quick"); 2]).await;
    codes(&keyed, &[("a", "quick")]).await;
    tokio::time::advance(Duration::from_millis(1500)).await;
    let mut said = Vec::new();
    for rig in [&each, &keyed] {
        let error = rig.call("quick", json!({})).await.unwrap_err();
        said.push(format!("{error} {:?} {}", error.retry_after, error.retryable));
    }
    insta::assert_snapshot!(said.join("\n"), @r"
rate_limited: rate limit exceeded for `user-created:quick@1.0.0`: 2 calls per 20s; retry in 19s Some(18.5s) true
rate_limited: rate limit exceeded for this caller: 1 call per 5s; retry in 3500ms Some(3.5s) true
");
}

#[test]
fn rates_of_zero_are_rejected_at_once() {
    let said = [
        RateLimit::global(Rate::per_second(0)),
        RateLimit::keyed(Rate::every(Duration::ZERO), |_| String::new()),
        RateLimit::per_tool([("a", Rate::per_second(1)), ("web_search", Rate::per_minute(0))]),
    ]
    .map(|stage| stage.err().map(|error| error.to_string()).unwrap_or_default());
    insta::assert_snapshot!(said.join("\n"), @r"
`RateLimit`: a rate of 0 calls rejects every call; use 1 or more, or leave the tool out of the set
`RateLimit`: the period of a rate is 0; use a duration such as `Duration::from_secs(1)`
`RateLimit` for `web_search`: a rate of 0 calls rejects every call; use 1 or more, or leave the tool out of the set
");
}

#[tokio::test(start_paused = true)]
async fn queued_calls_run_in_order_within_the_rate() {
    let stage = RateLimit::global(Rate::new(3, secs(1))).unwrap().waiting(100);
    let rig = rig(stage);
    let start = tokio::time::Instant::now();
    let calls = join_all((0..20).map(|_| async {
        let run = rig.call("run", json!({})).await.unwrap();
        (run.as_u64().unwrap(), start.elapsed().as_secs())
    }));
    // In the order of their arrival, three per second.
    let expected: Vec<(u64, u64)> = (0..20).map(|index| (index + 1, index / 3)).collect();
    assert_eq!(calls.await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_limited_and_respects_deadlines() {
    let long = rig(RateLimit::global(Rate::per_hour(1)).unwrap().waiting(100));
    assert_eq!(codes(&long, &[("a", "quick"); 2]).await, ["ok", "rate_limited"]);
    let start = tokio::time::Instant::now();
    let short = rig(RateLimit::global(Rate::every(secs(1))).unwrap().waiting(2));
    let outcomes = join_all((0..5).map(|_| short.call("quick", json!({})))).await;
    let codes: Vec<_> = outcomes.iter().map(code).collect();
    assert_eq!(codes, ["ok", "ok", "ok", "rate_limited", "rate_limited"]);
    assert_eq!(start.elapsed(), secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_leaves_the_queue() {
    let rig = rig(RateLimit::global(Rate::every(secs(10))).unwrap().waiting(1));
    rig.call("quick", json!({})).await.unwrap();
    let gone = tokio::time::timeout(secs(1), rig.call("quick", json!({}))).await;
    assert!(gone.is_err(), "it was waiting");
    assert_eq!(rig.code("quick", json!({})).await, "ok");
    assert_eq!(rig.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_keys_is_limited_and_unused_ones_are_removed() {
    let by_caller = RateLimit::keyed(Rate::every(secs(1)), |call| call.caller().to_owned()).unwrap();
    let rig = rig(by_caller.max_keys(2));
    let calls = [("a", "quick"), ("b", "quick"), ("c", "quick"), ("a", "quick")];
    assert_eq!(codes(&rig, &calls).await, ["ok", "ok", "overloaded", "rate_limited"]);
    tokio::time::advance(secs(1)).await;
    assert_eq!(codes(&rig, &calls[2..]).await, ["ok", "ok"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_the_rate_limit() {
    let rate = RateLimit::global(Rate::every(secs(7))).unwrap();
    let around = Rig::new(vec![Arc::new(Retry::new(1)), Arc::new(rate)]);
    around.tool("quick", json!({}));
    let start = tokio::time::Instant::now();
    for _ in 0..3 {
        around.call("quick", json!({})).await.unwrap();
    }
    assert_eq!(start.elapsed(), secs(14));
    // Inside of it, attempts are not counted.
    let rate = RateLimit::global(Rate::every(secs(7))).unwrap();
    let inside = Rig::new(vec![Arc::new(rate), Arc::new(Retry::new(3).only_if(|_, _| true))]);
    inside.tool("flaky", json!({"retry": {"attempts": 0}}));
    assert_eq!(inside.call("flaky", json!({})).await.unwrap(), 3);
}

/// Real threads and real time; only the count is asserted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_do_not_exceed_the_rate() {
    let rig = Arc::new(rig(RateLimit::keyed(Rate::per_hour(50), |call| call.caller().to_owned()).unwrap()));
    let calls = (0..8).map(|task| {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            let caller = if task % 2 == 0 { "even" } else { "odd" };
            let mut through = 0;
            for _ in 0..100 {
                through += usize::from(rig.call_as(caller, "quick", json!({})).await.is_ok());
            }
            through
        })
    });
    let through: usize = join_all(calls).await.into_iter().map(Result::unwrap).sum();
    assert_eq!((through, rig.runs()), (100, 100));
}
