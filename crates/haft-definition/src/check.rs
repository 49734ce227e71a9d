//! What makes a definition wrong or doubtful, whatever dialect it came from and whatever runs it.
//!
//! A dialect says whether a text has the right form; this says whether the definition makes sense.
//! Templates, functions and servers are checked by those who know them.

mod http;
mod scripts;
mod templates;
mod values;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

pub use self::http::names_user;
pub use self::values::UNFITTING_VALUE;
use haft_core::duration;
use haft_core::implementation::{AgentCall, Implementation, Mcp, Notation};
use haft_core::problem::{Problem, excerpt};
use haft_core::schema::Schema;
use haft_core::spec::{RateLimit, ToolSpec};
use haft_template::{Scope, Template, is_variable};

/// The most bytes of a definition, as canonical JSON.
pub const MAX_SPEC: usize = 1024 * 1024;
/// The most bytes of a description.
pub const MAX_DESCRIPTION: usize = 8 * 1024;
/// The most characters of a display name, a category or a tag.
pub const MAX_WORDS: usize = 128;
/// The most tags or renderers.
pub const MAX_ENTRIES: usize = 32;
/// The most requests of one `http` tool.
pub const MAX_STEPS: usize = 20;
/// The longest time that one call may take.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(1);
/// The most bytes that one call may send or return: all of them are in memory, and in the record.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The most further attempts after a failed one.
pub const MAX_RETRIES: u32 = 10;

/// What is wrong with a definition, and what is doubtful.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Why it cannot be stored.
    pub errors: Vec<Problem>,
    /// What its author may want to know.
    pub warnings: Vec<Problem>,
}

impl CheckReport {
    fn error(&mut self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        self.errors.push(Problem::new(field, code, message));
    }

    fn warn(&mut self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        self.warnings.push(Problem::new(field, code, message));
    }
}

/// Checks everything about a definition that can be known from the definition alone.
pub fn definition(spec: &ToolSpec) -> CheckReport {
    let mut checked = CheckReport::default();
    size(spec, &mut checked);
    words::check(spec, &mut checked);
    schemas(spec, &mut checked);
    values::check(spec, &mut checked);
    execution(spec, &mut checked);
    implementation(spec, &mut checked);
    image(spec, &mut checked);
    templates::check(spec, &mut checked);
    checked
}

/// Says what is wrong with how a tool runs: a part of [`definition`], for those who compile it.
pub fn faults_of_implementation(spec: &ToolSpec) -> Vec<Problem> {
    let mut checked = CheckReport::default();
    implementation(spec, &mut checked);
    checked.errors
}

fn size(spec: &ToolSpec, checked: &mut CheckReport) {
    let bytes = serde_json::to_vec(spec).map_or(0, |text| text.len());
    if bytes > MAX_SPEC {
        checked.error(
            "",
            "too_large",
            format!("the definition has {bytes} bytes; at most {MAX_SPEC} are allowed"),
        );
    }
}

fn schemas(spec: &ToolSpec, checked: &mut CheckReport) {
    for (field, schema) in [("input_schema", &spec.input_schema), ("output_schema", &spec.output_schema)] {
        if let Err(problems) = Schema::compile(field, schema) {
            checked.errors.extend(problems);
        }
    }
    let input = &spec.input_schema;
    if let Some(kind) = input.get("type")
        && kind != "object"
    {
        checked.error(
            "input_schema.type",
            "invalid_value",
            "arguments are always a map; the schema's `type` is `object`",
        );
    }
    // Where a schema is composed, its properties may be declared elsewhere.
    let composed =
        ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].iter().any(|word| input.get(word).is_some());
    for name in required(input).filter(|_| !composed) {
        if input.get("properties").is_none_or(|properties| properties.get(name).is_none()) {
            checked.error(
                "input_schema.required",
                "undeclared_argument",
                format!("`{name}` is required but not declared in `properties`"),
            );
        }
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn execution(spec: &ToolSpec, checked: &mut CheckReport) {
    let execution = &spec.execution;
    timeout(execution.timeout_ms, "execution.timeout_ms", checked);
    if execution.max_concurrency == 0 {
        checked.error(
            "execution.max_concurrency",
            "invalid_value",
            "is 0, so no call could ever run; use 1 or more",
        );
    }
    if execution.limits.max_parallel == Some(0) {
        checked.error(
            "execution.limits.max_parallel",
            "invalid_value",
            "is 0, so no call could ever run; use 1 or more",
        );
    }
    for (field, bytes) in [
        ("execution.limits.max_request_bytes", execution.limits.max_request_bytes),
        ("execution.limits.max_response_bytes", execution.limits.max_response_bytes),
    ] {
        if bytes > MAX_BYTES {
            checked.error(field, "invalid_value", format!("is {bytes}; at most {MAX_BYTES} are allowed"));
        }
    }
    if let Some(retry) = &execution.retry {
        if retry.attempts > MAX_RETRIES {
            checked.error(
                "execution.retry.attempts",
                "invalid_value",
                format!("at most {MAX_RETRIES} are allowed"),
            );
        }
        timeout(Some(retry.backoff_ms.max(1)), "execution.retry.backoff_ms", checked);
    }
    if let Some(limit) = &execution.rate_limit {
        checked.errors.extend(rate_limit(limit));
    }
}

/// Says what is wrong with a rate.
pub fn rate_limit(limit: &RateLimit) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut error = |field, message: String| problems.push(Problem::new(field, "invalid_value", message));
    if limit.calls == 0 {
        error("execution.rate_limit.calls", "is 0, so no call could ever run; use 1 or more".to_owned());
    }
    match limit.period() {
        Ok(per) if per.is_zero() => {
            error("execution.rate_limit.per", "is no time at all; write it like `1m`".to_owned());
        }
        Ok(_) => {}
        Err(fault) => error("execution.rate_limit.per", fault.to_string()),
    }
    problems
}

/// An image is a word on the command line of a container engine: it must not look like an option.
fn image(spec: &ToolSpec, checked: &mut CheckReport) {
    let Some(image) = &spec.image else { return };
    if !is_image(image) {
        let shown = excerpt(image, 60);
        let message =
            format!("`{shown}` is not the name of a container image; write it like `python:3.13-slim`");
        checked.error("image", "invalid_value", message);
    }
    if !spec.sandbox {
        checked.error(
            "image",
            "conflicting_fields",
            "a tool in a container sees nothing of the host; set `sandbox: true`",
        );
    }
}

/// Tells whether a text can name a container image.
pub fn is_image(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    text.len() <= 256 && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits)
}

fn variables(env: &BTreeMap<String, String>, checked: &mut CheckReport) {
    for name in env.keys().filter(|name| !is_variable(name)) {
        let field = format!("implementation.env.{}", excerpt(name, 60));
        checked.error(field, "invalid_value", "is not the name of an environment variable");
    }
}

fn timeout(millis: Option<u64>, field: &str, checked: &mut CheckReport) {
    let Some(millis) = millis else { return };
    if millis == 0 {
        checked.error(field, "invalid_value", "is no time at all; leave it out for the default");
    } else if Duration::from_millis(millis) > MAX_TIMEOUT {
        let most = duration::format(MAX_TIMEOUT);
        checked.error(field, "invalid_value", format!("at most {most} are allowed"));
    }
}

fn implementation(spec: &ToolSpec, checked: &mut CheckReport) {
    match &spec.implementation {
        Implementation::Http(http) => {
            http::check(http, checked);
            timeout(http.timeout_ms, "implementation.timeout_ms", checked);
            if http.templates == Notation::Braces {
                go_templates(spec, checked);
            }
        }
        Implementation::Function(function) => named(&function.function, "function", checked),
        Implementation::Script(script) => {
            named(&script.body, "body", checked);
            scripts::script(spec, script, checked);
        }
        Implementation::Wasm(wasm) => {
            if wasm.file.is_none() == wasm.base64.is_none() {
                let both = if wasm.file.is_some() { ", not both" } else { "" };
                let message = format!("give the module as `file` or as `base64`{both}");
                checked.error("implementation.file", "missing_field", message);
            }
            variables(&wasm.env, checked);
            for (name, text) in &wasm.env {
                let parsed = Template::parse(Notation::Braces, text, &Scope::from_schema(&spec.input_schema));
                checked.errors.extend(
                    parsed
                        .err()
                        .map(|error| error.to_problem(format!("implementation.env.{}", excerpt(name, 60)))),
                );
            }
            go_templates(spec, checked);
        }
        Implementation::Exec(exec) => {
            variables(&exec.env, checked);
            scripts::exec(spec, exec, checked);
        }
        Implementation::FileRead(file) => {
            named(&file.path, "path", checked);
            go_templates(spec, checked);
        }
        Implementation::FileWrite(file) => {
            named(&file.path, "path", checked);
            if file.mode.is_some_and(|mode| mode > 0o777) {
                checked.error(
                    "implementation.mode",
                    "invalid_value",
                    "are no permission bits; write them like `0644`",
                );
            }
            go_templates(spec, checked);
        }
        Implementation::Python(python) => {
            let parts = python.entrypoint.split_once(':');
            if parts.is_none_or(|(module, function)| module.is_empty() || function.is_empty()) {
                checked.error("implementation.entrypoint", "invalid_value", "expected `module:function`");
            }
        }
        Implementation::Mcp(mcp) => self::mcp(mcp, checked),
        Implementation::Artifact(artifact) => named(&artifact.artifact_id, "artifact_id", checked),
        Implementation::AgentCall(call) => agent(call, checked),
        Implementation::RagRetrieval(rag) => {
            named(&rag.pipeline_id, "pipeline_id", checked);
            if !required(&spec.input_schema).any(|name| name == "query") {
                checked.error(
                    "input_schema.required",
                    "missing_field",
                    "a retrieval tool takes a required `query`",
                );
            }
        }
    }
}

fn named(text: &str, field: &str, checked: &mut CheckReport) {
    if text.trim().is_empty() {
        checked.error(format!("implementation.{field}"), "missing_field", "is empty");
    }
}

fn mcp(mcp: &Mcp, checked: &mut CheckReport) {
    named(&mcp.tool_name, "tool_name", checked);
    http::headers(&mcp.headers, "implementation.headers", checked);
    match (&mcp.server, &mcp.server_url) {
        (None, None) => checked.error(
            "implementation.server_url",
            "missing_field",
            "name the MCP server by `server_url`, or by the `server` of the configuration",
        ),
        (_, Some(url)) if !http::is_web(url) => {
            checked.error("implementation.server_url", "invalid_url", http::NOT_WEB);
        }
        _ => {}
    }
}

fn agent(call: &AgentCall, checked: &mut CheckReport) {
    if call.target_agent_id.is_none() && call.target_agent_slug.is_none() {
        checked.error(
            "implementation.target_agent_slug",
            "missing_field",
            "name the agent by `target_agent_slug` or `target_agent_id`",
        );
    }
}

/// `{{.name}}` is how Go spells it; here the dot is wrong, and a common slip.
fn go_templates(spec: &ToolSpec, checked: &mut CheckReport) {
    fn walk(value: &Value, path: &str, checked: &mut CheckReport) {
        match value {
            Value::String(text) => {
                if let Some(name) = go_name(text) {
                    let message = format!("write `{{{{{name}}}}}` instead of `{{{{.{name}}}}}`");
                    checked.error(path, "go_template", message);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    walk(item, &format!("{path}[{index}]"), checked);
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    walk(item, &format!("{path}.{}", excerpt(key, 60)), checked);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    if let Ok(value) = serde_json::to_value(&spec.implementation) {
        walk(&value, "implementation", checked);
    }
}

fn go_name(text: &str) -> Option<&str> {
    let (_, after) = text
        .split("{{")
        .skip(1)
        .find_map(|part| part.trim_start().split_once('.').filter(|(before, _)| before.is_empty()))?;
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(after.len());
    after.get(..end).filter(|name| !name.is_empty())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
