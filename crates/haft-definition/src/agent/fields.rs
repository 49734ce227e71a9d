//! Reads the fields of one agent.

use std::collections::BTreeMap;

use haft_core::agent::{
    AgentDefinition, MAX_DESCRIPTION, MAX_INSTRUCTIONS, MAX_ITERATIONS, MAX_NAME, MAX_PARALLEL_TOOLS,
    MAX_VARIABLES, ToolExecution,
};
use haft_core::id::AgentId;
use haft_core::name::AgentSlug;
use haft_core::schema::Schema;
use serde_json::Value;

use super::team::Shared;
use super::{model, rules};
use crate::dialect::Fields;

/// Where the slug of an agent comes from if it has none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Naming<'a> {
    /// The key in a map of agents.
    pub(super) key: Option<&'a str>,
    /// The name of the file.
    pub(super) stem: Option<&'a str>,
}

/// The fields of agents in API responses that are not part of the definition. They are ignored, so that a response can be
/// sent back.
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

pub(super) fn agent(mut fields: Fields<'_>, naming: &Naming<'_>, shared: &Shared) -> Option<AgentDefinition> {
    if !fields.has("slug")
        && let Some(Value::String(id)) = fields.peek("id")
        && id.parse::<AgentId>().is_err()
    {
        let slug = id.clone();
        fields.put("slug", slug);
    }
    fields.ignore(&STATE);
    let (slug, name) = names(&mut fields, naming);
    let role = fields.text("role");
    let description = description(&mut fields, role.as_deref());
    let model = model::main(&mut fields, shared.model.as_ref());
    let fallback = model::fallback(&mut fields, shared.fallback.as_ref());
    let instructions = instructions(&mut fields, &name, role.as_deref());
    let variables = variables(&mut fields, shared.variables.as_ref());
    let tool_rules = rules::tools(&mut fields);
    let modes = [("sequential", ToolExecution::Sequential), ("parallel_safe", ToolExecution::ParallelSafe)];
    let tool_execution = fields
        .alias(&["tool_execution", "tool_execution_mode"])
        .and_then(|key| fields.choice(key, &modes))
        .unwrap_or_default();
    let iterations = fields.alias(&["max_iterations", "max_tool_iterations", "max_turns"]);
    let max_iterations = iterations.and_then(|key| rules::bounded(&mut fields, key, 1..=MAX_ITERATIONS));
    let max_parallel_tools = rules::bounded(&mut fields, "max_parallel_tools", 1..=MAX_PARALLEL_TOOLS);
    let tool_timeout_ms = rules::tool_timeout(&mut fields);
    let budget = rules::nested(&mut fields, "budget", shared.budget.as_ref());
    let supervision = rules::nested(&mut fields, "supervision", shared.supervision.as_ref());
    let mut definition = AgentDefinition::new(slug?, model?);
    definition.name = name;
    definition.description = description;
    definition.fallback = fallback;
    definition.instructions = instructions;
    definition.variables = variables;
    definition.tools = tool_rules.tools;
    definition.exclude_tools = tool_rules.excluded;
    definition.tool_execution = tool_execution;
    definition.max_iterations = max_iterations.unwrap_or(definition.max_iterations);
    definition.max_parallel_tools = max_parallel_tools.unwrap_or(definition.max_parallel_tools);
    definition.tool_timeout_ms = tool_timeout_ms;
    definition.budget = rules::budget(budget);
    definition.output_schema = output_schema(&mut fields);
    definition.require_published = fields.flag("require_published").unwrap_or_default();
    definition.supervision = rules::supervision(supervision);
    definition.context_window = rules::bounded(&mut fields, "context_window", 1000..=100_000_000);
    Some(definition)
}

/// Reads the slug and the name that people see. A slug follows from the key, the file or the name.
fn names(fields: &mut Fields<'_>, naming: &Naming<'_>) -> (Option<AgentSlug>, String) {
    let given = fields.text("slug");
    let name = fields.alias(&["name", "display_name"]).and_then(|key| fields.text(key)).unwrap_or_default();
    if name.chars().count() > MAX_NAME {
        fields.error("name", "too_large", format!("the limit is {MAX_NAME} characters"));
    }
    let from_name = || Some(slugify(&name)).filter(|slug| !slug.is_empty());
    let text = given
        .clone()
        .or_else(|| naming.key.map(slug_of_key))
        // `Greeter` is a name for people; `greeter` is one for programs, too.
        .or_else(|| Some(name.clone()).filter(|name| !name.is_empty() && slugify(name) == *name))
        .or_else(|| naming.stem.map(str::to_owned))
        .or_else(from_name);
    let Some(text) = text else {
        fields.missing("slug", "a name of letters, digits, `-` and `_`, such as `assistant`");
        return (None, name);
    };
    match AgentSlug::new(&text) {
        Ok(slug) => {
            let shown = if name.is_empty() { naming.key.unwrap_or(slug.as_str()).to_owned() } else { name };
            (Some(slug), shown)
        }
        Err(error) => {
            fields.error("slug", "invalid_value", error.to_string());
            (None, name)
        }
    }
}

/// A key that is no slug is the name of the agent.
fn slug_of_key(key: &str) -> String {
    if AgentSlug::new(key).is_ok() { key.to_owned() } else { slugify(key) }
}

/// Makes a slug of a name: `research-assistant` of `Research assistant`.
fn slugify(name: &str) -> String {
    let mut slug = String::new();
    for character in name.trim().chars().take(64) {
        if character.is_alphanumeric() || character == '_' {
            slug.extend(character.to_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

fn description(fields: &mut Fields<'_>, role: Option<&str>) -> String {
    let text = fields.text("description").or_else(|| role.map(str::to_owned)).unwrap_or_default();
    if text.chars().count() > MAX_DESCRIPTION {
        fields.error("description", "too_large", format!("the limit is {MAX_DESCRIPTION} characters"));
    }
    text
}

/// Reads the instructions. Those of a team member without any state its name and its role.
fn instructions(fields: &mut Fields<'_>, name: &str, role: Option<&str>) -> String {
    let Some(key) = fields.alias(&["instructions", "system", "prompt", "system_prompt"]) else {
        return role.map(|role| format!("You are {name}. Your role: {role}.")).unwrap_or_default();
    };
    let text = fields.text(key).unwrap_or_default();
    if text.len() > MAX_INSTRUCTIONS {
        let message = format!("{} bytes; the limit is {MAX_INSTRUCTIONS}", text.len());
        fields.error(key, "too_large", message);
    }
    text
}

fn variables(fields: &mut Fields<'_>, inherited: Option<&Value>) -> BTreeMap<String, Value> {
    let mut variables: BTreeMap<String, Value> =
        inherited.and_then(Value::as_object).cloned().unwrap_or_default().into_iter().collect();
    variables.extend(fields.object("variables").unwrap_or_default());
    if variables.len() > MAX_VARIABLES {
        let message = format!("{} variables; the limit is {MAX_VARIABLES}", variables.len());
        fields.error("variables", "too_many", message);
    }
    variables
}

fn output_schema(fields: &mut Fields<'_>) -> Option<Value> {
    let key = fields.alias(&["output_schema", "response_schema"])?;
    let schema = Value::Object(fields.object(key)?);
    if let Err(problems) = Schema::compile(&fields.path(key), &schema) {
        for problem in problems {
            fields.report().error(problem.field, &problem.code, problem.message);
        }
    }
    Some(schema)
}
