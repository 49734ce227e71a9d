//! The schema of agents, and of teams of them.

use serde_json::{Value, json};

use super::object::{Object, count, duration, flag, map, shared, text, texts, with_definitions, words};

/// The fields of agents in API responses that are not part of the definition.
const STATE: [&str; 17] = [
    "id",
    "tenant",
    "revision",
    "published_revision",
    "status",
    "enabled",
    "ready",
    "error",
    "path",
    "created_by",
    "modified_by",
    "created_at",
    "modified_at",
    "published_at",
    "warnings",
    "kind",
    "version",
];

pub(super) fn schema() -> Value {
    let members = json!({"anyOf": [
        {"type": "array", "items": shared("agent")},
        {"type": "object", "additionalProperties": shared("agent")},
    ]});
    let document = agent().keys(&["agents", "members"], members, "Several agents, by name or as a list");
    let mut schema = document.closed();
    if let Value::Object(map) = &mut schema {
        // A file may be a list of agents.
        map.insert("type".to_owned(), json!(["object", "array"]));
        map.insert("items".to_owned(), shared("agent"));
    }
    with_definitions(
        schema,
        vec![("agent", agent().closed()), ("model", model()), ("toolRules", tool_rules())],
    )
}

fn agent() -> Object {
    limits(Object::default())
        .key("slug", text(), "The name by which the agent is called")
        .keys(&["name", "display_name"], text(), "The name that people see")
        .key("description", text(), "What it is for")
        .key("role", text(), "Its role in a team")
        .keys(&["model", "model_name"], shared("model"), "The model that answers")
        .keys(&["fallback", "fallback_model"], shared("model"), "The fallback model")
        .keys(&["provider", "base_url", "credential", "credentials_ref"], text(), "")
        .key("temperature", json!({"type": "number", "minimum": 0, "maximum": 2}), "")
        .keys(&["max_tokens", "max_output_tokens"], count(), "The length limit of an answer")
        .keys(&["reasoning", "reasoning_effort"], words(&["low", "medium", "high"]), "")
        .keys(&["instructions", "system", "prompt", "system_prompt"], text(), "The system prompt")
        .key("variables", map(), "Values for `{{name}}` in the instructions")
        .keys(
            &["tools", "skills", "tool_list", "tool_ids"],
            shared("toolRules"),
            "Tools that it may call, such as `web:*`, `tag:docs` or `!exec`",
        )
        .keys(
            &["exclude_tools", "excluded_tools", "exclude"],
            shared("toolRules"),
            "Tools that it may not call",
        )
        .keys(
            &["tool_execution", "tool_execution_mode"],
            words(&["sequential", "parallel_safe"]),
            "Whether calls run concurrently",
        )
        .keys(&["output_schema", "response_schema"], map(), "JSON Schema of the answer")
        .key("require_published", flag(), "Whether it calls published tools only")
        .ignored(&STATE)
}

fn limits(object: Object) -> Object {
    let budget = Object::default()
        .keys(&["calls", "max_calls", "tool_calls"], count(), "How many tools a run may call")
        .keys(&["tokens", "max_tokens"], count(), "How many tokens a run may use")
        .keys(&["cost", "max_cost", "money"], json!({"type": "number", "minimum": 0}), "What a run may cost")
        .keys(&["time", "timeout", "duration"], duration(), "How long a run may take")
        .key("time_ms", count(), "");
    let supervision = Object::default()
        .keys(
            &["attempts", "max_attempts", "retries", "max_retries"],
            count(),
            "How often a call is repeated",
        )
        .key("backoff", duration(), "The wait before the first repetition")
        .key("backoff_ms", count(), "");
    object
        .keys(
            &["max_iterations", "max_tool_iterations", "max_turns"],
            count(),
            "The maximum number of model requests per run",
        )
        .key("max_parallel_tools", count(), "The maximum number of concurrent calls")
        .keys(&["tool_timeout", "tool_timeout_s"], duration(), "How long a call may take")
        .key("tool_timeout_ms", count(), "")
        .key("context_window", count(), "The context window of the model, in tokens")
        .key("budget", budget.closed(), "What a run may use")
        .key("supervision", supervision.closed(), "How failed calls are repeated")
}

fn model() -> Value {
    let settings = Object::default()
        .keys(&["name", "model", "id"], text(), "The name of the model, such as `claude-sonnet-5`")
        .key("provider", text(), "Whose API it is, such as `anthropic` or `openai_compatible`")
        .keys(&["base_url", "url", "endpoint", "api_base"], text(), "The address of the API")
        .keys(&["credential", "credentials_ref", "credential_id"], text(), "The name of the stored key")
        .key("temperature", json!({"type": "number", "minimum": 0, "maximum": 2}), "")
        .keys(&["max_tokens", "max_output_tokens"], count(), "The length limit of an answer")
        .keys(&["reasoning", "reasoning_effort"], words(&["low", "medium", "high"]), "")
        .key("text_tools", flag(), "Whether calls are read from the text of answers")
        .key(
            "script",
            json!({"type": ["string", "object", "array"]}),
            "The answers of a scripted model, for tests",
        );
    json!({"anyOf": [text(), settings.closed()]})
}

fn tool_rules() -> Value {
    let named =
        Object::default().keys(&["qualified", "id", "name", "tool", "slug"], text(), "The name of the tool");
    let entry = json!({"anyOf": [text(), named.open()]});
    json!({"anyOf": [text(), texts(), {"type": "array", "items": entry}]})
}
