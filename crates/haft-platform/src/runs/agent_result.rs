//! The result of an `agent_call` tool: compact, because a model reads it.

use haft_agent::run::run_state;
use haft_core::agent::Agent;
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::outcome::CallError;
use haft_core::run::{Run, RunStep};
use serde_json::{Map, Value, json};

use super::engine::not_stored;
use crate::context::Context;

/// How many of the newest steps the state of a run is read from.
const MAX_STEPS: usize = 200;
/// How many steps are read at once.
const PAGE: u32 = 500;
/// How large the state of a run may be in a result, in bytes of JSON.
const MAX_CONTEXT: usize = 32 * 1024;

/// Returns the result of a run: its answer, and the state that it left as `context`. What there is nothing of is left
/// out.
pub(super) async fn result_of(
    app: &Context,
    agent: &Agent,
    run: &Run,
    status: &str,
) -> Result<Map<String, Value>, CallError> {
    let steps = newest_steps(app, &agent.tenant, run.id).await?;
    let mut result = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        result.extend(value.map(|value| (key.to_owned(), value)));
    };
    set("mode", Some("sync".into()));
    set("target_agent_id", Some(agent.id.to_string().into()));
    set("target_agent_slug", Some(agent.definition.slug.as_str().into()));
    set("run_id", Some(run.id.to_string().into()));
    set("status", Some(status.into()));
    set("output", run.output.clone());
    set("context", context_of(run_state(&steps), run.output.as_ref()));
    let error = run.error.as_ref().map(|error| json!({"code": error.code, "message": error.message}));
    set("error", error);
    set("usage", Some(json!(run.usage)));
    Ok(result)
}

async fn newest_steps(app: &Context, tenant: &TenantId, run: RunId) -> Result<Vec<RunStep>, CallError> {
    let (mut newest, mut after) = (Vec::new(), 0);
    loop {
        let page = app.store().runs().steps(tenant, run, after, PAGE).await.map_err(not_stored)?;
        let is_last = u32::try_from(page.len()).is_ok_and(|count| count < PAGE);
        after = page.last().map_or(after, |step| step.number);
        newest.extend(page);
        newest.drain(..newest.len().saturating_sub(MAX_STEPS));
        if is_last {
            return Ok(newest);
        }
    }
}

/// Returns the state of a run within the size limit: the newest outputs of tools are kept. The last text of the model is
/// left out if it is the answer.
fn context_of(state: Value, output: Option<&Value>) -> Option<Value> {
    let Value::Object(mut state) = state else { return None };
    let mut room = MAX_CONTEXT;
    let mut fits = |value: &Value| {
        let size = value.to_string().len();
        let fits = size <= room;
        room -= if fits { size } else { 0 };
        fits
    };
    let mut context = Map::new();
    for key in ["last_agent_output", "context"] {
        let value =
            state.remove(key).filter(|value| !value.is_null() && Some(value) != output && fits(value));
        context.extend(value.map(|value| (key.to_owned(), value)));
    }
    if let Some(Value::Array(outputs)) = state.remove("tool_outputs")
        && !outputs.is_empty()
    {
        let total = outputs.len();
        let mut kept: Vec<Value> = outputs.into_iter().rev().take_while(|entry| fits(entry)).collect();
        kept.reverse();
        if kept.len() < total {
            context.insert("omitted_tool_outputs".to_owned(), json!(total - kept.len()));
        }
        context.insert("tool_outputs".to_owned(), Value::Array(kept));
    }
    (!context.is_empty()).then_some(Value::Object(context))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_run_is_bounded() {
        let state = |outputs: Value, context: Value, last: &str| {
            context_of(
                json!({"tool_outputs": outputs, "context": context, "last_agent_output": last}),
                Some(&json!("Done.")),
            )
        };
        assert_eq!(state(json!([]), Value::Null, "Done."), None);
        let small = json!({"name": "double", "output": 42});
        assert_eq!(
            state(json!([small]), json!(42), "Done."),
            Some(json!({"tool_outputs": [small], "context": 42}))
        );
        assert_eq!(state(json!([]), Value::Null, "Half"), Some(json!({"last_agent_output": "Half"})));
        let large = json!({"name": "read", "output": "x".repeat(15 * 1024)});
        let bounded = state(json!([large, large, large, small]), json!(42), "Done.").unwrap();
        assert_eq!(bounded["tool_outputs"], json!([large, large, small]));
        assert_eq!(bounded["omitted_tool_outputs"], 1);
        assert!(bounded.to_string().len() < MAX_CONTEXT + 100);
    }
}
