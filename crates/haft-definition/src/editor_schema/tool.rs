//! The schema of tools in every dialect.

use haft_core::tool::Status;
use serde_json::{Value, json};

use super::implementation;
use super::kind_words;
use super::object::{
    Object, count, duration, flag, map, shared, text, text_map, texts, with_definitions, words,
};

/// Derived or stored fields of API responses.
const DERIVED: [&str; 33] = [
    "id",
    "tool_id",
    "toolID",
    "schema_version",
    "is_built_in",
    "soft_deleted_at",
    "builtin_template_id",
    "is_builtin_template",
    "is_system",
    "tenant",
    "tenant_id",
    "tool_type",
    "ready",
    "error",
    "path",
    "usage",
    "created_at",
    "modified_at",
    "updated_at",
    "published_at",
    "created_by",
    "modified_by",
    "published_by",
    "callable",
    "deprecation",
    "legacy",
    "built_in",
    "revision",
    "hash",
    "qualified",
    "published_revision",
    "warnings",
    "hint",
];

/// The keys that name the implementation in one of the dialects.
const IMPLEMENTATION_KEYS: [&str; 8] = [
    "implementation",
    "impl",
    "implementation_config",
    "config_schema",
    "implementation_type",
    "artifact_id",
    "builtin_key",
    "runtime",
];

pub(super) fn schema() -> Value {
    with_definitions(keys().needs(&IMPLEMENTATION_KEYS).closed(), definitions())
}

/// Returns the shared schemas of tools.
pub(super) fn definitions() -> Vec<(&'static str, Value)> {
    let mut definitions = vec![
        ("execution", execution()),
        ("retry", retry()),
        ("rateLimit", rate_limit()),
        ("parameter", parameter()),
        ("inputSchema", input_schema()),
        ("renderer", renderer()),
    ];
    definitions.extend(implementation::definitions());
    definitions
}

/// Returns the keys of a tool.
pub(super) fn keys() -> Object {
    script(blocks(names()))
        .keys(
            &["input_schema", "parameters", "argSchema", "args_schema", "params"],
            shared("inputSchema"),
            "The arguments: a list of parameters, or a JSON Schema",
        )
        .key("output_schema", json!({"type": ["object", "boolean"]}), "JSON Schema of the value")
        .key("schema", map(), "The schemas, as `input` and `output`, or the input schema")
        .keys(&["execution", "execution_config"], shared("execution"), "How calls run")
        .key("timeout", duration(), "How long a call may take, such as `30s`")
        .keys(&["timeout_ms", "timeout_s", "timeout_secs"], count(), "")
        .key("max_calls_per_minute", count(), "How many calls are allowed per minute")
        .key("policy", words(&["allow", "deny", "elevated"]), "Who may call it")
        .key("requires_confirmation", flag(), "Whether each call requires approval")
        .key("sandbox", flag(), "Whether its process is isolated")
        .key("network", flag(), "Whether its isolated process has network access")
        .key("image", text(), "The container image in which it runs")
        .key("renderers", json!({"type": "array", "items": shared("renderer")}), "How the value is shown")
        .key("origin", map(), "The document that it was imported from")
        .ignored(&DERIVED)
}

fn names() -> Object {
    Object::default()
        .key(
            "name",
            text(),
            "The name: letters, digits, `-` and `_`. With a `slug`, the name that people see",
        )
        .key("slug", text(), "The name by which the tool is called")
        .key("display_name", text(), "The name that people see")
        .key("version", json!({"type": ["string", "number"]}), "The version label, such as `1.0.0`")
        .key("description", text(), "What it does: models choose tools by it")
        .key("category", text(), "A word to group tools by")
        .key("tags", texts(), "Words to find tools by, and to refer to several at once")
        .keys(&["enabled", "is_enabled", "is_active"], flag(), "Whether it can be called")
        .keys(&["bundle", "toolset", "bundle_id", "bundleID"], text(), "The bundle that it belongs to")
        .key("status", words(&Status::ALL.map(Status::as_str)), "`published` makes production mode run it")
        .key("scope", text(), "")
}

/// The implementation under the keys of all dialects.
fn blocks(object: Object) -> Object {
    let mut types = kind_words();
    types.push("custom");
    let blocks = Object::default().key("implementation", shared("implementation"), "").key(
        "execution",
        shared("execution"),
        "",
    );
    object
        .keys(&["implementation", "impl"], shared("implementation"), "How it runs")
        .key("implementation_config", map(), "How it runs, in the registry form")
        .keys(&["type", "implementation_type"], words(&types), "How it runs, beside its block")
        .key("config_schema", blocks.open(), "The blocks of the registry form")
}

/// A script, a module or an artifact, without a block of its own.
fn script(object: Object) -> Object {
    object
        .key("runtime", words(&["bash", "python", "wasm"]), "The language of the script")
        .key("body", text(), "The text of the script")
        .key("output", words(&["auto", "text", "json"]), "How the output becomes the value")
        .keys(
            &["dependencies", "requirements"],
            implementation::dependencies(),
            "The Python packages that it needs",
        )
        .key("file", text(), "The file of the WebAssembly module")
        .key("function", text(), "The function of the WebAssembly module")
        .key("env", text_map(), "Environment variables")
        .key("files", text_map(), "The folders of the WebAssembly module, as `read` or `write`")
        .key("artifact_id", text(), "The code artifact that it runs")
        .key("artifact_version", json!({"type": ["string", "integer"]}), "The version of the code artifact")
        .key("builtin_key", text(), "The built-in function that it runs")
        .key("source", json!(true), "")
}

fn execution() -> Value {
    let limits = Object::default()
        .key("max_request_bytes", count(), "The size limit of a request")
        .key("max_response_bytes", count(), "The size limit of a response")
        .key("max_parallel", count(), "The maximum number of concurrent calls");
    Object::default()
        .key("is_pure", flag(), "Whether equal arguments give equal values, which are then cached")
        .key("concurrency_group", text(), "Calls of one group share `max_concurrency`")
        .key("max_concurrency", count(), "The maximum number of concurrent calls")
        .key("timeout", duration(), "How long a call may take, such as `30s`")
        .keys(&["timeout_ms", "timeout_s", "timeout_secs"], count(), "")
        .key("retry", shared("retry"), "How often a failed call is repeated")
        .key("validation", words(&["strict", "coerce", "none"]), "How arguments are checked")
        .key("limits", limits.closed(), "Limits of one tool")
        .key("rate_limit", shared("rateLimit"), "How many calls are allowed per period")
        .key("max_calls_per_minute", count(), "")
        .closed()
}

fn retry() -> Value {
    Object::default()
        .key("attempts", count(), "How often a failed call is repeated")
        .key("backoff", duration(), "The wait before the first repetition; it doubles")
        .key("backoff_ms", count(), "")
        .needs(&["attempts"])
        .closed()
}

fn rate_limit() -> Value {
    Object::default()
        .key("calls", count(), "How many calls are allowed")
        .key("per", text(), "The period, such as `1m`")
        .needs(&["calls"])
        .needs(&["per"])
        .closed()
}

fn renderer() -> Value {
    Object::default()
        .key("renderer", text(), "How the value is shown, such as `table`")
        .key("priority", json!({"type": "integer"}), "The highest one is used first")
        .key("config", map(), "Settings of the renderer")
        .needs(&["renderer"])
        .closed()
}

fn input_schema() -> Value {
    let parameters = Object::default().key("name", text(), "The name of the parameter").needs(&["name"]);
    let item = parameters.also(shared("parameter")).open();
    json!({"anyOf": [{"type": "array", "items": item}, {"type": ["object", "boolean"]}]})
}

/// One parameter of a list, or a property of one.
fn parameter() -> Value {
    let types = ["string", "integer", "number", "boolean", "array", "object"];
    let properties = json!({"anyOf": [
        {"type": "object", "additionalProperties": shared("parameter")},
        {"type": "array", "items": shared("parameter")},
    ]});
    let number = || json!({"type": "number"});
    Object::default()
        .key("name", text(), "The name of the parameter")
        .key("type", words(&types), "The type of the value")
        .key("description", text(), "What it means: models choose values by it")
        .key("required", json!({"type": ["boolean", "array"]}), "Whether every call must have it")
        .key("default", json!({}), "The value if a call has none")
        .key("enum", json!({"type": "array"}), "The allowed values")
        .key("items", shared("parameter"), "The items of a list")
        .key("properties", properties, "The keys of an object")
        .key("title", text(), "")
        .key("format", text(), "")
        .key("pattern", text(), "A regular expression")
        .keys(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"], number(), "")
        .keys(
            &["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
            count(),
            "",
        )
        .key("uniqueItems", flag(), "")
        .key("additionalProperties", json!({"type": ["boolean", "object"]}), "")
        .key("const", json!({}), "")
        .keys(&["examples", "anyOf", "oneOf"], json!({"type": "array"}), "")
        .closed()
}
