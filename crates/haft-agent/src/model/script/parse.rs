//! Parses scripts.

use std::time::Duration;

use haft_core::problem::{Problem, excerpt};
use haft_definition::dialect::{
    DocumentLimits, Fields, Report, UNKNOWN_FIELD, YamlDocument, describe, unknown,
};
use haft_template::{Notation, Scope, Template, ValueTemplate};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value, json};

use super::script_file::{Condition, Script, ScriptedArguments, ScriptedCall, ScriptedFailure, Turn};
use crate::model::answer::MAX_TOOL_CALLS;
use crate::model::error::ModelErrorKind;
use crate::model::event::{FinishReason, Usage};
use crate::model::image::ImageSource;

const LIMITS: DocumentLimits = DocumentLimits { bytes: 1024 * 1024, values: 50_000 };

/// The maximum size of a compiled regular expression.
const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// The maximum of `repeat`.
const MAX_REPEAT: usize = 10_000;

/// The kinds of errors that a script can report.
const ERRORS: [&str; 11] = [
    "auth",
    "quota",
    "rate_limited",
    "overloaded",
    "server",
    "bad_request",
    "context_too_long",
    "content_filter",
    "connect",
    "stalled",
    "broken_stream",
];

/// The values of `finish`.
const REASONS: [&str; 4] = ["length", "content_filter", "refusal", "malformed_call"];

/// Parses a script.
pub(super) fn parse(text: &str) -> Result<Script, Vec<Problem>> {
    let mut document = YamlDocument::parse(text, LIMITS).map_err(|problem| vec![problem])?;
    let map = match document.take_value() {
        Value::Object(map) => map,
        // A list is a list of turns.
        list @ Value::Array(_) => Map::from_iter([("turns".to_owned(), list)]),
        other => {
            let message = format!("expected a map with `turns`, found {}", describe(&other));
            return Err(vec![Problem::new("", "wrong_type", message)]);
        }
    };
    let report = Report::default();
    let turns = {
        let mut fields = Fields::new("", map, &report);
        fields.ignore(&["description"]);
        if !fields.has("turns") {
            fields.missing("turns", "a list of turns, each with `text` or `calls`");
        }
        fields.nested_list("turns").unwrap_or_default().into_iter().map(turn).collect::<Vec<_>>()
    };
    let (mut errors, mut warnings) = report.into_parts();
    // A misspelled key would silently change what a demo or a test does.
    for mut problem in warnings.extract_if(.., |problem| problem.code == UNKNOWN_FIELD) {
        problem.message = problem.message.replacen("unknown field, ignored", "unknown field", 1);
        errors.push(problem);
    }
    if errors.is_empty() && turns.is_empty() {
        errors.push(Problem::new("turns", "missing_field", "expected at least one turn"));
    }
    if errors.is_empty() {
        return Ok(Script { turns });
    }
    document.locate(&mut errors);
    errors.sort_by_key(|problem| problem.line);
    Err(errors)
}

/// The names that templates can use.
fn scope() -> Scope {
    Scope::from_schema(&json!({
        "type": "object",
        "properties": {"user": {}, "match": {}, "result": {}, "results": {}},
    }))
}

fn turn(mut fields: Fields<'_>) -> Turn {
    let when = fields.nested("when").map(condition);
    let repeat = match fields.integer::<usize>("repeat", "a number of answers") {
        Some(count) if !(1..=MAX_REPEAT).contains(&count) => {
            fields.error("repeat", "out_of_range", format!("expected 1 to {MAX_REPEAT}"));
            1
        }
        count => count.unwrap_or(1),
    };
    let calls = calls(&mut fields);
    let turn = Turn {
        when,
        repeat,
        delay: wait(&mut fields, "delay"),
        pace: wait(&mut fields, "pace"),
        reasoning: template(&mut fields, "reasoning"),
        text: template(&mut fields, "text"),
        image: fields.text("image").map(|url| ImageSource::from_url(&url)),
        calls,
        usage: fields.nested("usage").map(usage),
        finish: finish(&mut fields),
        error: failure(&mut fields),
    };
    let says_something =
        turn.text.is_some() || turn.image.is_some() || !turn.calls.is_empty() || turn.error.is_some();
    if !says_something && turn.reasoning.is_none() {
        fields
            .missing("text", "an answer: `text`, `calls`, `image` or `error` (`text: \"\"` answers nothing)");
    }
    turn
}

fn wait(fields: &mut Fields<'_>, key: &'static str) -> Duration {
    fields.duration(key, Duration::from_millis(1)).map_or(Duration::ZERO, Duration::from_millis)
}

fn template(fields: &mut Fields<'_>, key: &'static str) -> Option<Template> {
    let text = fields.text(key)?;
    match Template::parse(Notation::Braces, &text, &scope()) {
        Ok(template) => {
            reject_secrets(fields, key, template.secrets().next());
            Some(template)
        }
        Err(error) => {
            fields.error(key, "invalid_template", error.to_string());
            None
        }
    }
}

fn reject_secrets(fields: &Fields<'_>, key: &str, name: Option<&str>) {
    if let Some(name) = name {
        let name = excerpt(name, 60);
        let message = format!("`${{{name}}}`: a script has no secrets; write `$${{` for a literal `${{`");
        fields.error(key, "invalid_template", message);
    }
}

fn condition(mut fields: Fields<'_>) -> Condition {
    Condition {
        user: pattern(&mut fields, "user"),
        tool: fields.text("tool"),
        result: pattern(&mut fields, "result"),
        failed: fields.flag("failed"),
        offered: fields.text("offered"),
    }
}

fn pattern(fields: &mut Fields<'_>, key: &'static str) -> Option<Regex> {
    let text = fields.text(key)?;
    let built = RegexBuilder::new(&text).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build();
    match built {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let reason = excerpt(&error.to_string(), 300);
            fields.error(key, "invalid_pattern", format!("not a regular expression: {reason}"));
            None
        }
    }
}

fn calls(fields: &mut Fields<'_>) -> Vec<ScriptedCall> {
    let mut list = fields.nested_list("calls").unwrap_or_default();
    if list.len() > MAX_TOOL_CALLS {
        let message = format!("{} calls; the limit is {MAX_TOOL_CALLS}", list.len());
        fields.error("calls", "too_many", message);
        list.truncate(MAX_TOOL_CALLS);
    }
    list.into_iter().filter_map(call).collect()
}

fn call(mut fields: Fields<'_>) -> Option<ScriptedCall> {
    let tool = fields.required_text("tool", "the name of a tool");
    let id = fields.text("id");
    let raw = fields.text("raw_arguments");
    let values = fields.value("arguments").unwrap_or_else(|| Value::Object(Map::new()));
    let arguments = match raw {
        Some(raw) => ScriptedArguments::Raw(raw),
        None => ScriptedArguments::Values(arguments(&fields, &values)?),
    };
    Some(ScriptedCall { tool: tool?, id, arguments })
}

fn arguments(fields: &Fields<'_>, values: &Value) -> Option<ValueTemplate> {
    if !values.is_object() {
        let message = format!("expected a map, found {}", describe(values));
        fields.error("arguments", "wrong_type", message);
        return None;
    }
    match ValueTemplate::parse(Notation::Braces, values, &scope()) {
        Ok(template) => {
            reject_secrets(fields, "arguments", template.secrets().next());
            Some(template)
        }
        Err(errors) => {
            for error in errors.iter().take(20) {
                fields.error("arguments", "invalid_template", error.to_string());
            }
            None
        }
    }
}

fn usage(mut fields: Fields<'_>) -> Usage {
    let mut count = |key| fields.integer::<u64>(key, "a number of tokens").unwrap_or(0);
    Usage {
        input: count("input"),
        output: count("output"),
        cached: count("cached"),
        cache_written: count("cache_written"),
        reasoning: count("reasoning"),
    }
}

fn finish(fields: &mut Fields<'_>) -> Option<FinishReason> {
    let name = fields.text("finish")?;
    let reason = match name.as_str() {
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal,
        "malformed_call" => FinishReason::MalformedCall,
        _ => {
            fields.error("finish", "unknown_value", unknown("reason", &name, &REASONS));
            return None;
        }
    };
    Some(reason)
}

fn failure(fields: &mut Fields<'_>) -> Option<ScriptedFailure> {
    // `error: overloaded` is short for a map with only `kind`.
    if fields.peek("error").is_some_and(Value::is_string) {
        let name = fields.text("error")?;
        let kind = error_kind(&name, None);
        if kind.is_none() {
            fields.error("error", "unknown_value", unknown("error", &name, &ERRORS));
        }
        return Some(ScriptedFailure { kind: kind?, message: String::new() });
    }
    let mut inner = fields.nested("error")?;
    let name = inner.required_text("kind", "a kind such as `rate_limited`")?;
    let message = inner.text("message").unwrap_or_default();
    let retry_after = inner.duration("retry_after", Duration::from_secs(1)).map(Duration::from_millis);
    let kind = error_kind(&name, retry_after);
    if kind.is_none() {
        inner.error("kind", "unknown_value", unknown("error", &name, &ERRORS));
    }
    Some(ScriptedFailure { kind: kind?, message })
}

fn error_kind(name: &str, retry_after: Option<Duration>) -> Option<ModelErrorKind> {
    Some(match name {
        "auth" => ModelErrorKind::Auth,
        "quota" => ModelErrorKind::Quota,
        "rate_limited" => ModelErrorKind::RateLimited { retry_after },
        "overloaded" => ModelErrorKind::Overloaded { retry_after },
        "server" => ModelErrorKind::Server { status: 500 },
        "bad_request" => ModelErrorKind::BadRequest,
        "context_too_long" => ModelErrorKind::ContextTooLong,
        "content_filter" => ModelErrorKind::ContentFilter,
        "connect" => ModelErrorKind::Connect,
        "stalled" => ModelErrorKind::Stalled { limit: Duration::from_mins(1) },
        "broken_stream" => ModelErrorKind::BrokenStream,
        _ => return None,
    })
}
