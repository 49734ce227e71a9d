//! Writes the definition of an agent as YAML; reading it returns the same definition.

use std::time::Duration;

use haft_core::agent::{AgentDefinition, AgentModel, ToolExecution};
use haft_core::duration;
use serde_json::{Map, Value, json};

use crate::dialect;

/// Writes a definition as a YAML file, without settings that have their default.
pub fn write_yaml(definition: &AgentDefinition) -> String {
    let default = AgentDefinition::new(definition.slug.clone(), AgentModel::new(""));
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
    put("slug", json!(definition.slug));
    put("name", json!(definition.name));
    if !definition.description.is_empty() {
        put("description", json!(definition.description));
    }
    put("model", model(&definition.model));
    if let Some(fallback) = &definition.fallback {
        put("fallback", model(fallback));
    }
    put("instructions", json!(definition.instructions));
    if !definition.variables.is_empty() {
        put("variables", json!(definition.variables));
    }
    put("tools", json!(definition.tools));
    if !definition.exclude_tools.is_empty() {
        put("exclude_tools", json!(definition.exclude_tools));
    }
    if definition.tool_execution == ToolExecution::ParallelSafe {
        put("tool_execution", json!("parallel_safe"));
    }
    if definition.max_iterations != default.max_iterations {
        put("max_iterations", json!(definition.max_iterations));
    }
    if definition.max_parallel_tools != default.max_parallel_tools {
        put("max_parallel_tools", json!(definition.max_parallel_tools));
    }
    if let Some(millis) = definition.tool_timeout_ms {
        put("tool_timeout", time(millis));
    }
    if !definition.budget.is_unlimited() {
        put("budget", budget(definition));
    }
    if let Some(schema) = &definition.output_schema {
        put("output_schema", schema.clone());
    }
    if definition.require_published {
        put("require_published", json!(true));
    }
    if let Some(supervision) = definition.supervision {
        put(
            "supervision",
            json!({"attempts": supervision.attempts, "backoff": time(supervision.backoff_ms)}),
        );
    }
    if let Some(window) = definition.context_window {
        put("context_window", json!(window));
    }
    dialect::write_yaml(&map)
}

/// A model without settings is its name.
fn model(model: &AgentModel) -> Value {
    if *model == AgentModel::new(&model.name) {
        return json!(model.name);
    }
    serde_json::to_value(model).unwrap_or_else(|_| json!(model.name))
}

fn budget(definition: &AgentDefinition) -> Value {
    let mut map = Map::new();
    let budget = &definition.budget;
    map.extend(budget.calls.map(|calls| ("calls".to_owned(), json!(calls))));
    map.extend(budget.tokens.map(|tokens| ("tokens".to_owned(), json!(tokens))));
    map.extend(budget.time_ms.map(|millis| ("time".to_owned(), time(millis))));
    map.extend(budget.cost.map(|cost| ("cost".to_owned(), json!(cost))));
    Value::Object(map)
}

fn time(millis: u64) -> Value {
    Value::String(duration::format(Duration::from_millis(millis)))
}
