//! Reads the steps of a tool.

use serde_json::{Map, Value};

use super::fields::{Fields, describe, join};
use haft_core::implementation::{Condition, OnFailure, Step, Steps};
use haft_core::problem::excerpt;

/// Reads `steps`, `output` and `max_parallel`.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<Steps> {
    if !fields.has("steps") {
        fields.missing("steps", "a list of steps, each with `id` and `tool`");
    }
    let steps = list(fields);
    let output = fields.alias(&["output", "result"]).and_then(|key| fields.value(key));
    let max_parallel = fields.integer("max_parallel", "a number from 1 to 64");
    Some(Steps { steps: steps?, output, max_parallel })
}

/// The steps are a list, or a map from the id to the step.
fn list(fields: &mut Fields<'_>) -> Option<Vec<Step>> {
    let Some(Value::Object(_)) = fields.peek("steps") else {
        let mut steps = Vec::new();
        for item in fields.nested_list("steps")? {
            steps.push(step(item, None));
        }
        return steps.into_iter().collect();
    };
    let (map, path) = (fields.object("steps")?, fields.path("steps"));
    let mut steps = Vec::new();
    for (id, item) in map {
        let path = join(&path, &excerpt(&id, 60));
        match item {
            Value::Object(map) => steps.push(step(Fields::new(path, map, fields.report()), Some(id))),
            other => {
                let message = format!("expected a map, found {}", describe(&other));
                fields.report().error(path, "wrong_type", message);
                steps.push(None);
            }
        }
    }
    steps.into_iter().collect()
}

fn step(mut fields: Fields<'_>, key: Option<String>) -> Option<Step> {
    let id = key.or_else(|| match fields.alias(&["id", "name"]) {
        Some(key) => fields.text(key),
        None => fields.required_text("id", "a name for the step, such as `fetch`"),
    });
    let tool = fields.required_text("tool", "the tool to call, such as `weather` or `bundle:weather`");
    let args = arguments(&mut fields);
    let after = match fields.alias(&["after", "depends_on", "needs"]) {
        Some(key) if fields.peek(key).is_some_and(Value::is_string) => fields.text(key).into_iter().collect(),
        Some(key) => fields.texts(key).unwrap_or_default(),
        None => Vec::new(),
    };
    let when = condition(&mut fields);
    let for_each = fields.value("for_each");
    let max_items = fields.integer("max_items", "a number from 1 to 1000");
    let fallback_given = fields.peek("fallback").is_some();
    let fallback = fields.value("fallback");
    let on_failure =
        fields.alias(&["on_failure", "on_error"]).and_then(|key| fields.choice(key, &OnFailure::ALL));
    let default = if fallback_given { OnFailure::Fallback } else { OnFailure::default() };
    Some(Step {
        id: id?,
        tool: tool?,
        args,
        after,
        when,
        for_each,
        max_items,
        on_failure: on_failure.unwrap_or(default),
        fallback,
    })
}

fn arguments(fields: &mut Fields<'_>) -> Map<String, Value> {
    fields
        .alias(&["args", "arguments", "inputs", "input", "parameters"])
        .and_then(|key| fields.object(key))
        .unwrap_or_default()
}

fn condition(fields: &mut Fields<'_>) -> Option<Condition> {
    let key = fields.alias(&["when", "if", "condition"])?;
    let value = fields.value(key)?;
    match Condition::from_value(&value) {
        Ok(condition) => Some(condition),
        Err(error) => {
            fields.error(key, "invalid_condition", error.to_string());
            None
        }
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
