//! Reads the limits and the tools of an agent.

use std::ops::RangeInclusive;
use std::time::Duration;

use haft_core::agent::{AgentBudget, MAX_TOOL_RULES, Supervision};
use haft_core::principal::AllowList;
use haft_core::problem::excerpt;
use serde_json::Value;

use crate::dialect::{Fields, describe, item_path};

/// The longest timeout of one call.
const MAX_TOOL_TIMEOUT_MS: u64 = 600_000;
/// The longest time budget: a week.
const MAX_TIME_MS: u64 = 604_800_000;
/// The largest number of repetitions.
const MAX_ATTEMPTS: u32 = 10;
/// The unit of a bare number in a duration.
const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Reads a number in a range.
pub(super) fn bounded<T>(fields: &mut Fields<'_>, key: &'static str, range: RangeInclusive<T>) -> Option<T>
where
    T: TryFrom<i128> + PartialOrd + std::fmt::Display + Copy,
{
    let (least, most) = range.into_inner();
    let expected = format!("a number from {least} to {most}");
    let number = fields.integer::<T>(key, &expected)?;
    if number < least || number > most {
        fields.error(key, "invalid_value", format!("expected {expected}, found {number}"));
    }
    Some(number)
}

/// Reads a time in milliseconds: `30s` or a number of seconds under one of `keys`, or milliseconds under `millis`.
fn time(
    fields: &mut Fields<'_>,
    keys: &[&'static str],
    millis: &'static str,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    let (key, unit) = match (fields.alias(keys), fields.has(millis)) {
        (Some(key), true) => {
            fields.error(
                millis,
                "conflicting_fields",
                format!("conflicts with `{}`; remove one of them", fields.path(key)),
            );
            (key, SECOND)
        }
        (Some(key), false) => (key, SECOND),
        (None, _) => (millis, MILLISECOND),
    };
    let found = fields.duration(key, unit)?;
    let (least, most) = range.into_inner();
    if found < least || found > most {
        let [least, most] =
            [least, most].map(|millis| haft_core::duration::format(Duration::from_millis(millis)));
        fields.error(key, "invalid_value", format!("expected a time from {least} to {most}"));
    }
    Some(found)
}

pub(super) fn tool_timeout(fields: &mut Fields<'_>) -> Option<u64> {
    time(fields, &["tool_timeout", "tool_timeout_s"], "tool_timeout_ms", 1..=MAX_TOOL_TIMEOUT_MS)
}

/// Reads what a run may use.
pub(super) fn budget(fields: Option<Fields<'_>>) -> AgentBudget {
    let Some(mut fields) = fields else { return AgentBudget::default() };
    let calls = fields.alias(&["calls", "max_calls", "tool_calls"]);
    let tokens = fields.alias(&["tokens", "max_tokens"]);
    let cost = fields.alias(&["cost", "max_cost", "money"]);
    AgentBudget {
        calls: calls.and_then(|key| bounded(&mut fields, key, 0..=1_000_000)),
        tokens: tokens.and_then(|key| bounded(&mut fields, key, 0..=1_000_000_000_000)),
        time_ms: time(&mut fields, &["time", "timeout", "duration"], "time_ms", 1..=MAX_TIME_MS),
        cost: cost.and_then(|key| amount(&mut fields, key)),
    }
}

fn amount(fields: &mut Fields<'_>, key: &'static str) -> Option<f64> {
    let value = fields.value(key)?;
    let amount = value.as_f64().filter(|amount| *amount >= 0.0);
    if amount.is_none() {
        fields.error(key, "invalid_value", "expected an amount of 0 or more");
    }
    amount
}

/// Reads how calls are repeated.
pub(super) fn supervision(fields: Option<Fields<'_>>) -> Option<Supervision> {
    let mut fields = fields?;
    let Some(key) = fields.alias(&["attempts", "max_attempts", "retries", "max_retries"]) else {
        fields.missing("attempts", "how often a call is repeated, at most 10");
        fields.rest();
        return None;
    };
    let attempts = bounded(&mut fields, key, 0..=MAX_ATTEMPTS)?;
    let backoff = time(&mut fields, &["backoff"], "backoff_ms", 0..=MAX_TOOL_TIMEOUT_MS);
    Some(Supervision { attempts, backoff_ms: backoff.unwrap_or(500) })
}

/// The tools that an agent may call, and those that it may not.
#[derive(Debug, Default)]
pub(super) struct ToolRules {
    pub(super) tools: Vec<String>,
    pub(super) excluded: Vec<String>,
}

/// Reads `tools`, whose entries with a leading `!` are exclusions, and `exclude_tools`.
pub(super) fn tools(fields: &mut Fields<'_>) -> ToolRules {
    let mut rules = ToolRules::default();
    if let Some(key) = fields.alias(&["tools", "skills", "tool_list", "tool_ids"]) {
        for (path, rule) in entries(fields, key) {
            match rule.strip_prefix('!') {
                Some(rule) => add(fields, &mut rules.excluded, &path, rule.trim()),
                None => add(fields, &mut rules.tools, &path, &rule),
            }
        }
    }
    if let Some(key) = fields.alias(&["exclude_tools", "excluded_tools", "exclude"]) {
        for (path, rule) in entries(fields, key) {
            add(fields, &mut rules.excluded, &path, rule.strip_prefix('!').unwrap_or(&rule).trim());
        }
    }
    let count = rules.tools.len() + rules.excluded.len();
    if count > MAX_TOOL_RULES {
        fields.error("tools", "too_many", format!("{count} rules; the limit is {MAX_TOOL_RULES}"));
    }
    rules
}

/// Returns the entries of a list of tools with their paths. An entry is a text, or a map with the name of the tool.
fn entries(fields: &mut Fields<'_>, key: &'static str) -> Vec<(String, String)> {
    let path = fields.path(key);
    if let Some(Value::String(_)) = fields.peek(key) {
        return fields.text(key).map(|rule| (path, rule)).into_iter().collect();
    }
    let mut found = Vec::new();
    for (index, item) in fields.list(key).unwrap_or_default().into_iter().enumerate() {
        let path = item_path(&path, index);
        let name = match item {
            Value::String(text) => Some(text),
            Value::Object(map) => ["qualified", "id", "name", "tool", "slug"]
                .iter()
                .find_map(|key| map.get(*key)?.as_str().map(str::to_owned)),
            _ => None,
        };
        if let Some(name) = name {
            found.push((path, name.trim().to_owned()));
        } else {
            let message =
                "expected the name of a tool, such as `web_search`, `bundle:*`, `tag:docs` or `!exec`";
            fields.report().error(path, "wrong_type", message);
        }
    }
    found
}

fn add(fields: &Fields<'_>, rules: &mut Vec<String>, path: &str, rule: &str) {
    if let Err(error) = AllowList::new([rule]) {
        fields.report().error(path, "invalid_value", error.to_string());
    } else if rules.iter().any(|known| known == rule) {
        fields.report().warn(path, "duplicate", format!("`{}` is listed twice", excerpt(rule, 60)));
    } else {
        rules.push(rule.to_owned());
    }
}

/// Takes a nested object that may come from the team.
pub(super) fn nested<'r>(
    fields: &mut Fields<'r>,
    key: &'static str,
    inherited: Option<&Value>,
) -> Option<Fields<'r>> {
    match (fields.value(key).or_else(|| inherited.cloned()))? {
        Value::Object(map) => Some(Fields::new(fields.path(key), map, fields.report())),
        other => {
            fields.error(key, "wrong_type", format!("expected a map, found {}", describe(&other)));
            None
        }
    }
}
