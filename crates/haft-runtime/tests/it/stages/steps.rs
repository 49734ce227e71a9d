//! `steps` tools through the pipeline: every step is a call of its own.

use std::sync::atomic::Ordering;

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde_json::{Value, json};

use super::rig::{Rig, secs};

/// A rig with the functions of the tests as tools, and one tool with these steps.
fn rig(implementation: Value) -> Rig {
    let rig = Rig::new(Vec::new());
    for name in ["quick", "run", "slow", "fails", "slowly_fails", "panics"] {
        rig.tool(name, json!({}));
    }
    let mut implementation = implementation;
    implementation["type"] = json!("steps");
    rig.defined(json!({
        "name": "pipeline",
        "version": "1.0.0",
        "implementation": implementation,
        "input_schema": {"type": "object", "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "default": 3},
            "cities": {"type": "array"},
            "mode": {"type": "string"},
        }},
    }));
    rig
}

async fn run(implementation: Value, args: Value) -> Outcome {
    rig(implementation).call("pipeline", args).await
}

async fn failure(implementation: Value, args: Value) -> CallError {
    run(implementation, args).await.unwrap_err()
}

#[tokio::test]
async fn outputs_feed_inputs() {
    let steps = json!({"steps": [
        {"id": "a", "tool": "quick", "args": {"city": "$args.city", "days": "$args.days", "mode": "$args.mode"}},
        {"id": "b", "tool": "quick", "args": {"text": "$args.days days in $steps.a.value.city", "all": "$steps.a.value", "ok": "$steps.a.ok"}},
    ]});
    let expected = json!({"text": "3 days in Bern", "all": {"city": "Bern", "days": 3}, "ok": true});
    // The default of the schema is used, an argument that is missing is left out, an undeclared one is not visible.
    assert_eq!(run(steps.clone(), json!({"city": "Bern", "secret": 1})).await, Ok(expected));

    let mut mapped = steps;
    mapped["output"] = json!({"first": "$steps.a.value.city", "cost": "$$5", "status": "$steps.b.status"});
    let expected = json!({"first": "Bern", "cost": "$5", "status": "success"});
    assert_eq!(run(mapped, json!({"city": "Bern"})).await, Ok(expected));
}

#[tokio::test]
async fn each_step_is_a_recorded_call() {
    let rig =
        rig(json!({"steps": [{"id": "a", "tool": "quick"}, {"id": "b", "tool": "run", "after": ["a"]}]}));
    let record = rig.record("pipeline").await;
    assert_eq!(record.outcome(), Some(Ok(json!(2))));
    let observed: Vec<String> = rig.take_observed().into_iter().map(|(name, _)| name).collect();
    assert_eq!(observed, ["quick", "run", "pipeline"]);
}

#[tokio::test(start_paused = true)]
async fn independent_steps_run_in_parallel() {
    let started = tokio::time::Instant::now();
    let steps: Vec<Value> = (0..6).map(|n| json!({"id": format!("s{n}"), "tool": "slow"})).collect();
    let rig = rig(json!({"steps": steps, "max_parallel": 3}));
    assert!(rig.call("pipeline", json!({})).await.is_ok());
    assert_eq!(started.elapsed().as_secs(), 2);
    assert_eq!(rig.seen.most.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_is_the_order_of_the_list() {
    let steps: Vec<Value> = (0..4).map(|n| json!({"id": format!("s{n}"), "tool": "slow"})).collect();
    let output = json!(["$steps.s0.value", "$steps.s1.value", "$steps.s2.value", "$steps.s3.value"]);
    let found = run(json!({"steps": steps, "max_parallel": 1, "output": output}), json!({})).await;
    assert_eq!(found, Ok(json!([1, 2, 3, 4])));
}

#[tokio::test]
async fn a_step_runs_for_each_item_in_order() {
    let steps = json!({"steps": [
        {"id": "each", "tool": "quick", "for_each": "$args.cities", "args": {"city": "$item.name", "n": "$index"}},
    ]});
    let cities = json!({"cities": [{"name": "Bern"}, {"name": "Basel"}]});
    let expected = json!([{"city": "Bern", "n": 0}, {"city": "Basel", "n": 1}]);
    assert_eq!(run(steps.clone(), cities).await, Ok(expected));
    assert_eq!(run(steps.clone(), json!({"cities": []})).await, Ok(json!([])));
    assert_eq!(run(steps.clone(), json!({})).await, Ok(json!([])));
    let many: Vec<Value> = vec![json!({}); 101];
    let error = failure(steps, json!({ "cities": many })).await;
    assert_eq!(
        error.message,
        "step `each` (`quick`) failed: `for_each` has 101 items; the limit is 100 (`max_items`)"
    );
}

#[tokio::test]
async fn a_step_is_skipped_if_its_condition_does_not_hold() {
    let steps = json!({"steps": [
        {"id": "a", "tool": "fails", "when": "$args.mode == 'fast'"},
        {"id": "b", "tool": "quick", "args": {"a": "$steps.a.value", "status": "$steps.a.status", "ok": "$steps.a.ok"}},
    ]});
    let found = run(steps.clone(), json!({"mode": "slow"})).await;
    assert_eq!(found, Ok(json!({"status": "skipped", "ok": false})));
    assert!(run(steps, json!({"mode": "fast"})).await.is_err());
}

#[tokio::test]
async fn a_failure_names_the_step_and_lists_the_others() {
    let steps = json!({"steps": [
        {"id": "a", "tool": "quick"},
        {"id": "b", "tool": "fails", "after": ["a"]},
        {"id": "c", "tool": "quick", "after": ["b"]},
    ]});
    let error = failure(steps, json!({})).await;
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    assert_eq!(error.message, "step `b` (`fails`) failed: the disk is full of hunter2");
    let details = *error.details.unwrap();
    assert_eq!(details["step"], "b");
    assert_eq!(details["error"]["code"], "execution_failed");
    let states: Vec<_> =
        details["steps"].as_array().unwrap().iter().map(|step| step["status"].clone()).collect();
    assert_eq!(states, ["success", "error", "not_run"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_lets_running_calls_end_and_starts_no_other() {
    let rig = rig(json!({"steps": [
        {"id": "a", "tool": "fails"},
        {"id": "b", "tool": "slow"},
        {"id": "c", "tool": "quick", "after": ["b"]},
    ]}));
    assert!(rig.call("pipeline", json!({})).await.is_err());
    let observed = rig.take_observed();
    let names: Vec<(&str, &str)> = observed.iter().map(|(name, code)| (name.as_str(), *code)).collect();
    assert_eq!(names, [("fails", "execution_failed"), ("slow", "ok"), ("pipeline", "execution_failed")]);
}

#[tokio::test]
async fn failures_are_passed_on_or_replaced() {
    let steps = json!({"steps": [
        {"id": "a", "tool": "fails", "on_failure": "continue"},
        {"id": "b", "tool": "fails", "on_failure": "fallback", "fallback": {"city": "$args.city"}},
        {"id": "c", "tool": "quick", "args": {
            "ok": "$steps.a.ok", "why": "$steps.a.error.message", "code": "$steps.a.error.code", "value": "$steps.a.value",
            "b": "$steps.b.value.city",
        }},
    ]});
    let expected =
        json!({"ok": false, "why": "the disk is full of hunter2", "code": "execution_failed", "b": "Bern"});
    assert_eq!(run(steps, json!({"city": "Bern"})).await, Ok(expected));

    let steps = json!({"steps": [
        {"id": "each", "tool": "fails", "for_each": [1, 2], "on_failure": "fallback", "fallback": "none"},
        {"id": "some", "tool": "fails", "for_each": [1], "on_failure": "continue"},
    ], "output": ["$steps.each.value", "$steps.each.ok", "$steps.some.value"]});
    assert_eq!(run(steps, json!({})).await, Ok(json!([["none", "none"], false, [null]])));
}

#[tokio::test]
async fn a_path_that_a_step_did_not_return_is_an_error() {
    let steps = json!({"steps": [
        {"id": "a", "tool": "quick", "args": {"city": "Bern"}},
        {"id": "b", "tool": "quick", "args": {"x": "$steps.a.value.town"}},
    ]});
    let error = failure(steps, json!({})).await;
    assert_eq!(
        error.message,
        "step `b` (`quick`) failed: `$steps.a.value.town` has no value: step `a` did not return it"
    );
}

#[tokio::test]
async fn unknown_tools_and_panics_are_failures_of_the_step() {
    let error = failure(json!({"steps": [{"id": "a", "tool": "nothing"}]}), json!({})).await;
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    assert_eq!(error.details.unwrap()["error"]["code"], "not_found");
    let error = failure(json!({"steps": [{"id": "a", "tool": "panics"}]}), json!({})).await;
    assert_eq!(error.details.unwrap()["error"]["code"], "panicked");
}

#[tokio::test]
async fn a_tool_that_calls_itself_ends() {
    let error = failure(json!({"steps": [{"id": "a", "tool": "user-created:pipeline"}]}), json!({})).await;
    assert_eq!(error.code, ErrorCode::TooDeep);
}

#[tokio::test(start_paused = true)]
async fn all_steps_share_the_deadline() {
    let rig = Rig::new(Vec::new());
    rig.tool("slow", json!({}));
    rig.defined(json!({
        "name": "pipeline", "version": "1.0.0", "execution": {"timeout_ms": 2500},
        "implementation": {"type": "steps", "max_parallel": 1, "steps": [
            {"id": "a", "tool": "slow"}, {"id": "b", "tool": "slow", "args": {"seconds": 20}},
        ]},
    }));
    let started = tokio::time::Instant::now();
    assert_eq!(rig.code("pipeline", json!({})).await, "timeout");
    assert!(started.elapsed() < secs(4), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_reference_that_is_repeated_does_not_use_all_memory() {
    let repeated: Vec<&str> = vec!["$args.city"; 1000];
    let steps = json!({"steps": [{"id": "a", "tool": "quick", "args": {"x": repeated}}]});
    let error = failure(steps, json!({"city": "x".repeat(100_000)})).await;
    assert_eq!(error.details.unwrap()["error"]["code"], "too_large");
}

#[tokio::test]
async fn invalid_steps_are_not_ready() {
    let error = failure(json!({"steps": [{"id": "a", "tool": "quick", "after": ["b"]}]}), json!({})).await;
    assert_eq!(error.code, ErrorCode::NotReady);
}
