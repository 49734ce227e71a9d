//! The schemas of implementations, one for each type.

use haft_core::artifact::InputType;
use haft_core::implementation::{Kind, ParamStyle, TextStyle};
use serde_json::{Value, json};

use super::kind_words;
use super::object::{Object, count, duration, flag, map, scalars, shared, text, text_map, texts, words};

/// Returns the shared schemas of implementations.
pub(super) fn definitions() -> Vec<(&'static str, Value)> {
    let mut definitions = vec![
        ("implementation", implementation()),
        ("auth", auth()),
        ("httpStep", http_step()),
        ("step", step()),
        ("artifactInput", input()),
        ("artifactInputs", artifact_inputs()),
    ];
    definitions.extend(Kind::ALL.map(|kind| (kind.as_str(), of_kind(kind))));
    definitions
}

/// The implementation block; its `type` selects the keys.
fn implementation() -> Value {
    let words_of = |kind: Kind| kind_words().into_iter().filter(move |word| Kind::parse(word) == Some(kind));
    let branches = Kind::ALL.map(|kind| {
        let condition = json!({
            "properties": {"type": {"enum": words_of(kind).collect::<Vec<_>>()}}, "required": ["type"],
        });
        json!({"if": condition, "then": shared(kind.as_str())})
    });
    let block = Object::default().key("type", words(&kind_words()), "How the tool runs");
    branches.into_iter().fold(block, Object::also).open()
}

/// Returns the schema of a list of requirements, or a text with one in each line.
pub(super) fn dependencies() -> Value {
    json!({"anyOf": [texts(), text()]})
}

fn of_kind(kind: Kind) -> Value {
    let common = Object::default()
        .key("type", words(&kind_words()), "How the tool runs")
        .key("timeout", duration(), "How long a call may take, such as `30s`")
        .keys(&["timeout_ms", "timeout_s", "timeout_secs"], count(), "")
        .key("retry", shared("retry"), "How often a failed call is repeated");
    let output = || words(&["auto", "text", "json"]);
    match kind {
        Kind::Http => return http(common),
        Kind::Function => common
            .keys(&["function", "function_name", "goFunc", "builtin_key"], text(), "The registered function")
            .key("config", map(), "Settings of the function")
            .keys(&["api_key", "credentials_ref", "provider"], text(), ""),
        Kind::Script => common
            .key("runtime", words(&["bash", "python"]), "The language")
            .key("body", text(), "The text of the script")
            .key("output", output(), "How the output becomes the value")
            .keys(&["dependencies", "requirements"], dependencies(), "The Python packages that it needs"),
        Kind::Wasm => common
            .key("file", text(), "The file of the module")
            .key("base64", text(), "The module in base64")
            .key("function", text(), "The function that is called")
            .key("env", text_map(), "Environment variables")
            .key("files", text_map(), "The folders of the module, as `read` or `write`"),
        Kind::Exec => common
            .key("command", text(), "A shell command")
            .key("argv", scalars(), "A program and its arguments, without a shell")
            .key("env", text_map(), "Environment variables")
            .key("stdin", text(), "The standard input")
            .key("output", output(), "How the output becomes the value"),
        Kind::FileRead => file(common),
        Kind::FileWrite => file(common)
            .key("content", text(), "The text to write")
            .key("mode", json!({"type": ["string", "integer"]}), "Permission bits, such as `0644`")
            .key("mkdir", flag(), "Whether missing folders are created"),
        Kind::Python => common
            .key("entrypoint", text(), "`module:function`")
            .key("package", json!({}), "")
            .keys(&["dependencies", "requirements"], dependencies(), "The Python packages that it needs"),
        Kind::Mcp => mcp(common),
        Kind::Artifact => artifact(common),
        Kind::AgentCall => {
            common.keys(&["target_agent_slug", "target_agent_id"], text(), "The agent that answers")
        }
        Kind::RagRetrieval => common
            .key("pipeline_id", text(), "The retrieval pipeline, by its slug or id")
            .key("config", map(), "Settings of the query"),
        Kind::Steps => common
            .key("steps", steps(), "What is called, in which order")
            .keys(&["output", "result"], json!({}), "The value, with `${steps.ID}`")
            .key("max_parallel", count(), "The maximum number of concurrent steps"),
    }
    .closed()
}

fn file(object: Object) -> Object {
    object
        .key("path", text(), "The path of the file, relative to its root")
        .key("encoding", words(&["utf-8", "base64", "binary"]), "How the content is given")
        .key("root", text(), "The folder from the configuration that the path is relative to")
}

fn mcp(object: Object) -> Object {
    let hints = Object::default().keys(&["destructive", "idempotent", "open_world"], flag(), "");
    object
        .key("server", text(), "The id of the MCP server")
        .key("server_url", text(), "The URL of the MCP server")
        .key("tool_name", text(), "The name of the tool on that server")
        .key("headers", text_map(), "Headers of every request")
        .key("hints", hints.closed(), "What the server says about the tool")
        .key("workspace", flag(), "Whether calls run in their workspace")
}

fn artifact(object: Object) -> Object {
    object
        .keys(&["artifact_id", "artifact"], text(), "The stored artifact, by its slug or id")
        .key("artifact_version", json!({"type": ["string", "integer"]}), "Its version")
        .key("runtime", words(&["bash", "python", "wasm"]), "The language of inline code")
        .keys(&["source", "code"], text(), "Inline code")
        .key("inputs", shared("artifactInputs"), "The declared inputs of inline code")
        .key("config", map(), "Settings")
}

/// Returns the keys of an HTTP request.
fn request(object: Object) -> Object {
    let styles = |words_of: &[&str]| json!({"type": "object", "additionalProperties": words(words_of)});
    object
        .key("method", text(), "The HTTP method")
        .keys(&["url", "url_template"], text(), "The URL, with `${name}` for arguments")
        .key("query", map(), "Query parameters")
        .key("styles", styles(&ParamStyle::ALL.map(ParamStyle::as_str)), "How lists and objects are written")
        .key("text_styles", styles(&TextStyle::ALL.map(TextStyle::as_str)), "How lists are written in a text")
        .key("allow_reserved", texts(), "Parameters whose reserved characters are kept")
        .key("headers", text_map(), "Headers")
        .key("body", json!({}), "The body: a map becomes JSON")
        .key("body_template", text(), "The body as a text")
        .key("files", texts(), "Fields of the body whose values are files")
        .key("optional_body", flag(), "Whether an empty body is left out")
        .key(
            "success_codes",
            json!({"type": "array", "items": {"type": "integer"}}),
            "Status codes of success",
        )
        .keys(
            &["response", "response_encoding"],
            words(&["json", "text", "graphql"]),
            "How the response is read",
        )
        .keys(&["extract", "extract_expr"], text(), "A JSONPath, such as `$.items[0]`")
}

fn http(object: Object) -> Value {
    request(object)
        .key("steps", json!({"type": "array", "items": shared("httpStep")}), "Requests that run before")
        .key("error_mode", words(&["fail", "empty"]), "What an error status means")
        .key("auth", shared("auth"), "How requests are authenticated")
        .keys(&["credential", "credentials_ref"], text(), "The stored secret that authenticates requests")
        .key("templates", words(&["dollar", "braces"]), "How templates are written")
        .closed()
}

fn http_step() -> Value {
    request(Object::default())
        .key("name", text(), "The name by which later steps refer to its value")
        .needs(&["name"])
        .closed()
}

fn auth() -> Value {
    let kinds = ["bearer", "basic", "api_key", "hmac", "oauth2"];
    Object::default()
        .key("type", words(&kinds), "How requests are authenticated")
        .keys(&["credential", "credentials_ref"], text(), "The stored secret")
        .key("token", text(), "The token, as `${NAME}`")
        .keys(&["username", "password"], text(), "")
        .keys(&["name", "value"], text(), "The header or query parameter with the key")
        .key("in", words(&["header", "query"]), "Where the key is sent")
        .keys(&["key", "algorithm", "header", "prefix", "encoding", "sign", "timestamp_header"], text(), "")
        .keys(&["token_url", "client_id", "client_secret", "refresh_token", "audience"], text(), "")
        .key("scopes", texts(), "OAuth scopes")
        .closed()
}

/// A list of steps, or a map of steps by their ids.
fn steps() -> Value {
    json!({"anyOf": [
        {"type": "array", "items": shared("step")},
        {"type": "object", "additionalProperties": shared("step")},
    ]})
}

fn step() -> Value {
    Object::default()
        .keys(&["id", "name"], text(), "The name of the step")
        .key("tool", text(), "The tool to call")
        .keys(&["args", "arguments", "inputs", "input", "parameters"], map(), "Its arguments")
        .keys(&["after", "depends_on", "needs"], json!({"anyOf": [texts(), text()]}), "Steps that run before")
        .keys(&["when", "if", "condition"], json!({"type": ["string", "object"]}), "When it runs")
        .key("for_each", json!({}), "A list: the step runs once for each item")
        .key("max_items", count(), "The largest number of items")
        .keys(&["on_failure", "on_error"], words(&["stop", "continue", "fallback"]), "What a failure does")
        .key("fallback", json!({}), "The value after a failure")
        .needs(&["tool"])
        .closed()
}

/// Returns the schema of the inputs of an artifact: a list, or a map by name.
fn artifact_inputs() -> Value {
    json!({"anyOf": [
        {"type": "array", "items": shared("artifactInput")},
        {"type": "object", "additionalProperties": {"anyOf": [input_type(), shared("artifactInput")]}},
    ]})
}

/// Returns the schema of one input of an artifact.
pub(super) fn input() -> Value {
    Object::default()
        .key("name", text(), "The name of the input")
        .key("type", input_type(), "The type of the value")
        .key("required", flag(), "Whether every call must have it")
        .key("default", json!({}), "The value if a call has none")
        .key("description", text(), "What it means")
        .closed()
}

fn input_type() -> Value {
    words(&InputType::ALL.map(|(word, _)| word))
}

/// Returns the shared schemas of the inputs of an artifact.
pub(super) fn input_definitions() -> Vec<(&'static str, Value)> {
    vec![("artifactInput", input()), ("artifactInputs", artifact_inputs())]
}
