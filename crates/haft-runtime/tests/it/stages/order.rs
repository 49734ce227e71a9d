//! Who wraps whom, and stages of one's own.

use std::sync::{Arc, Mutex};

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_runtime::pipeline::Call;
use haft_runtime::stages::{Next, Stage, from_fn, from_fn_with};
use serde_json::json;

use super::rig::Rig;

type Notes = Arc<Mutex<Vec<String>>>;

fn noting(name: &'static str, notes: &Notes) -> Arc<dyn Stage> {
    let state = (name, Arc::clone(notes));
    Arc::new(from_fn_with(state, async |(name, notes): &(&str, Notes), call: &mut Call, next: Next<'_>| {
        notes.lock().unwrap().push(format!("{name} in"));
        let outcome = next.run(call).await;
        notes.lock().unwrap().push(format!("{name} out"));
        outcome
    }))
}

async fn refusing(call: &mut Call, next: Next<'_>) -> Outcome {
    if call.args().get("forbidden").is_some() {
        return Err(CallError::new(ErrorCode::PolicyDenied, format!("not for {}", call.caller())));
    }
    next.run(call).await
}

#[tokio::test]
async fn the_first_stage_is_the_outermost() {
    let notes = Notes::default();
    let stages =
        vec![noting("a", &notes), noting("b", &notes), Arc::new(from_fn(refusing)), noting("c", &notes)];
    let rig = Rig::new(stages);
    rig.tool("quick", json!({}));
    rig.call("quick", json!({})).await.unwrap();
    assert_eq!(
        std::mem::take(&mut *notes.lock().unwrap()),
        ["a in", "b in", "c in", "c out", "b out", "a out"]
    );
    let error = rig.call("quick", json!({"forbidden": true})).await.unwrap_err();
    assert_eq!(error.to_string(), "policy_denied: not for tester");
    assert_eq!(*notes.lock().unwrap(), ["a in", "b in", "b out", "a out"]);
}

#[tokio::test]
async fn a_stage_may_change_the_value_run_twice_and_panic() {
    let twice = from_fn(async |call: &mut Call, next: Next<'_>| {
        next.run(call).await?;
        next.run(call).await.map(|value| json!({"of": value}))
    });
    let rig = Rig::new(vec![Arc::new(twice)]);
    rig.tool("run", json!({}));
    assert_eq!(rig.call("run", json!({})).await.unwrap(), json!({"of": 2}));

    let panics = from_fn(async |call: &mut Call, _: Next<'_>| panic!("stage {}", call.tool()));
    let rig = Rig::new(vec![Arc::new(panics)]);
    rig.tool("run", json!({}));
    assert_eq!(rig.code("run", json!({})).await, "panicked");
}
