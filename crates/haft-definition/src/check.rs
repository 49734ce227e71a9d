//! Checks of definitions that do not depend on the dialect or the executor.
//!
//! Dialects check the form of a text, this module checks the content of the definition. Functions and servers are
//! checked by their executors.

mod artifact;
mod http;
mod scripts;
mod shell;
mod steps;
mod templates;
mod values;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

pub use self::http::has_userinfo;
pub use self::values::INVALID_SCHEMA_VALUE;
use haft_core::duration;
use haft_core::implementation::{AgentCall, Implementation, Mcp, Notation};
use haft_core::problem::{Problem, excerpt};
use haft_core::requirement::Requirements;
use haft_core::schema::Schema;
use haft_core::spec::{RateLimit, ToolSpec};
use haft_template::{Scope, Template, is_variable};

/// The maximum size of a definition as canonical JSON, in bytes.
pub const MAX_SPEC: usize = 1024 * 1024;
/// The maximum size of a description, in bytes.
pub const MAX_DESCRIPTION: usize = 8 * 1024;
/// The maximum length of a display name, category or tag, in characters.
pub const MAX_LABEL: usize = 128;
/// The maximum number of tags, and of renderers.
pub const MAX_ENTRIES: usize = 32;
/// The maximum number of requests of one `http` tool.
pub const MAX_STEPS: usize = 20;
/// The maximum number of invalid requirements that are reported.
const MAX_REQUIREMENT_PROBLEMS: usize = 20;
/// The maximum time limit of one call.
pub const MAX_TIMEOUT: Duration = Duration::from_hours(1);
/// The maximum size of a request or response, in bytes: it is held in memory and recorded.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum number of retries.
pub const MAX_RETRIES: u32 = 10;

/// The errors and warnings of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Errors, with which it cannot be stored.
    pub errors: Vec<Problem>,
    /// Warnings for its author.
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

/// Checks a definition on its own, without its environment.
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

/// Returns the errors of the implementation only: the part of [`definition`] that executors need.
pub fn implementation_errors(spec: &ToolSpec) -> Vec<Problem> {
    let mut checked = CheckReport::default();
    implementation(spec, &mut checked);
    checked.errors
}

/// Returns the warnings about how a tool will run; those about names, descriptions and schemas are left out. Unlike
/// [`definition`] it compiles no schema, so that it can be shown in lists.
pub fn runtime_warnings(spec: &ToolSpec) -> Vec<Problem> {
    let mut checked = CheckReport::default();
    implementation(spec, &mut checked);
    templates::check(spec, &mut checked);
    checked.warnings
}

/// Returns the program or module of a script or command that needs network access, if there is one.
pub fn network_program(spec: &ToolSpec) -> Option<String> {
    scripts::network_program(spec)
}

fn size(spec: &ToolSpec, checked: &mut CheckReport) {
    let bytes = serde_json::to_vec(spec).map_or(0, |text| text.len());
    if bytes > MAX_SPEC {
        checked.error("", "too_large", format!("the definition has {bytes} bytes; the limit is {MAX_SPEC}"));
    }
}

fn schemas(spec: &ToolSpec, checked: &mut CheckReport) {
    let (input, output) = (&spec.input_schema.value(), &spec.output_schema.value());
    for (field, schema) in [("input_schema", input), ("output_schema", output)] {
        if let Err(problems) = Schema::compile(field, schema) {
            checked.errors.extend(problems);
        }
    }
    if let Some(kind) = input.get("type")
        && kind != "object"
    {
        checked.error(
            "input_schema.type",
            "invalid_value",
            "must be `object`, because arguments are always an object",
        );
    }
    // The properties of a composed schema may be declared in its parts.
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
        checked.error("execution.max_concurrency", "invalid_value", "must be at least 1");
    }
    if execution.limits.max_parallel == Some(0) {
        checked.error("execution.limits.max_parallel", "invalid_value", "must be at least 1");
    }
    for (field, bytes) in [
        ("execution.limits.max_request_bytes", execution.limits.max_request_bytes),
        ("execution.limits.max_response_bytes", execution.limits.max_response_bytes),
    ] {
        if bytes > MAX_BYTES {
            checked.error(field, "invalid_value", format!("is {bytes}; the limit is {MAX_BYTES}"));
        }
    }
    if let Some(retry) = &execution.retry {
        if retry.attempts > MAX_RETRIES {
            checked.error("execution.retry.attempts", "invalid_value", format!("the limit is {MAX_RETRIES}"));
        }
        timeout(Some(retry.backoff_ms.max(1)), "execution.retry.backoff_ms", checked);
    }
    if let Some(limit) = &execution.rate_limit {
        checked.errors.extend(rate_limit(limit));
    }
}

/// Checks a rate limit.
pub fn rate_limit(limit: &RateLimit) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut error = |field, message: String| problems.push(Problem::new(field, "invalid_value", message));
    if limit.calls == 0 {
        error("execution.rate_limit.calls", "must be at least 1".to_owned());
    }
    match limit.period() {
        Ok(per) if per.is_zero() => {
            error("execution.rate_limit.per", "must be longer than zero, such as `1m`".to_owned());
        }
        Ok(_) => {}
        Err(invalid) => error("execution.rate_limit.per", invalid.to_string()),
    }
    problems
}

/// Checks the image, which is an argument on the command line of a container engine and must not look like an option.
fn image(spec: &ToolSpec, checked: &mut CheckReport) {
    let Some(image) = &spec.image else { return };
    if !is_image_name(image) {
        let shown = excerpt(image, 60);
        let message =
            format!("invalid container image `{shown}`; expected a name such as `python:3.13-slim`");
        checked.error("image", "invalid_value", message);
    }
    if !spec.sandbox {
        checked.error("image", "conflicting_fields", "requires `sandbox: true`");
    }
}

/// Returns whether a text is a valid name of a container image.
pub fn is_image_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    text.len() <= 256 && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits)
}

fn variables(env: &BTreeMap<String, String>, checked: &mut CheckReport) {
    for name in env.keys().filter(|name| !is_variable(name)) {
        let field = format!("implementation.env.{}", excerpt(name, 60));
        let message =
            "invalid name of an environment variable: use letters, digits and `_`, and no digit at the start";
        checked.error(field, "invalid_value", message);
    }
}

fn timeout(millis: Option<u64>, field: &str, checked: &mut CheckReport) {
    let Some(millis) = millis else { return };
    if millis == 0 {
        checked.error(field, "invalid_value", "must be longer than zero; remove it to use the default");
    } else if Duration::from_millis(millis) > MAX_TIMEOUT {
        let limit = duration::format(MAX_TIMEOUT);
        checked.error(field, "invalid_value", format!("the limit is {limit}"));
    }
}

fn implementation(spec: &ToolSpec, checked: &mut CheckReport) {
    match &spec.implementation {
        Implementation::Http(http) => {
            http::check(http, checked);
            http::empty_value(spec, http, checked);
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
                let message = format!("set `file` or `base64`{both}");
                checked.error("implementation.file", "missing_field", message);
            }
            variables(&wasm.env, checked);
            for (name, text) in &wasm.env {
                let parsed =
                    Template::parse(Notation::Braces, text, &Scope::from_schema(&spec.input_schema.value()));
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
                    "invalid permission bits; expected a value such as `0644`",
                );
            }
            go_templates(spec, checked);
        }
        Implementation::Python(python) => {
            let parts = python.entrypoint.split_once(':');
            if parts.is_none_or(|(module, function)| module.is_empty() || function.is_empty()) {
                checked.error("implementation.entrypoint", "invalid_value", "expected `module:function`");
            }
            dependencies(&python.dependencies, checked);
        }
        Implementation::Mcp(mcp) => self::mcp(mcp, checked),
        Implementation::Artifact(artifact) => artifact::check(artifact, checked),
        Implementation::AgentCall(call) => agent(call, checked),
        Implementation::Steps(steps) => steps::check(spec, steps, checked),
        Implementation::RagRetrieval(rag) => {
            named(&rag.pipeline_id, "pipeline_id", checked);
            if !required(&spec.input_schema.value()).any(|name| name == "query") {
                checked.error(
                    "input_schema.required",
                    "missing_field",
                    "a retrieval tool needs a required argument `query`",
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

/// Checks the requirement lines of a Python tool.
fn dependencies(lines: &[String], checked: &mut CheckReport) {
    if let Err(problems) = Requirements::parse_lines(lines, "implementation.dependencies") {
        checked.errors.extend(problems.into_iter().take(MAX_REQUIREMENT_PROBLEMS));
    }
}

fn mcp(mcp: &Mcp, checked: &mut CheckReport) {
    named(&mcp.tool_name, "tool_name", checked);
    http::headers(&mcp.headers, "implementation.headers", checked);
    match (&mcp.server, &mcp.server_url) {
        (None, None) => checked.error(
            "implementation.server_url",
            "missing_field",
            "set `server_url`, or `server` to the name of a configured MCP server",
        ),
        (_, Some(url)) if !http::is_http_url(url) => {
            checked.error("implementation.server_url", "invalid_url", http::EXPECTED_URL);
        }
        _ => {}
    }
}

fn agent(call: &AgentCall, checked: &mut CheckReport) {
    if call.target_agent_id.is_none() && call.target_agent_slug.is_none() {
        checked.error(
            "implementation.target_agent_slug",
            "missing_field",
            "set `target_agent_slug` or `target_agent_id`",
        );
    }
}

/// Reports `{{.name}}`, the notation of Go templates, which is a common mistake.
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
