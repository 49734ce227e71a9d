//! The instructions of an agent, with their variables filled in.

use std::collections::BTreeMap;

use haft_core::agent::AgentDefinition;
use haft_core::outcome::{CallError, ErrorCode};
use haft_template::{EscapeContext, Notation, Scope, Template, Values};
use serde_json::{Map, Value, json};

/// Fills in the variables of the instructions: those of the run, then those of the agent.
///
/// The value of a variable is never read as a template, and `$` has no meaning: instructions have no secrets.
pub fn render_instructions(
    definition: &AgentDefinition,
    variables: &BTreeMap<String, Value>,
) -> Result<String, CallError> {
    let mut values = Map::new();
    for (name, value) in definition.variables.iter().chain(variables) {
        values.insert(name.clone(), value.clone());
    }
    let declared: Map<String, Value> = values.keys().map(|name| (name.clone(), json!({}))).collect();
    let scope = Scope::from_schema(&json!({"type": "object", "properties": declared}));
    let text = definition.instructions.replace("${", "$${");
    let invalid = |reason: String| {
        let known: Vec<_> = values.keys().take(20).map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("`instructions`: {reason} (variables: {known})");
        CallError::new(ErrorCode::Template, message)
    };
    let template =
        Template::parse(Notation::Braces, &text, &scope).map_err(|error| invalid(error.to_string()))?;
    let (steps, secrets) = (Map::new(), BTreeMap::new());
    let given = Values { args: &values, steps: &steps, secrets: &secrets, version: "" };
    let rendered = template.render(EscapeContext::Text, &given);
    rendered.map(|rendered| rendered.text).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use haft_core::agent::AgentModel;

    use super::*;

    fn render(instructions: &str) -> Result<String, String> {
        let mut agent = AgentDefinition::new("a".parse().unwrap(), AgentModel::new("scripted"));
        instructions.clone_into(&mut agent.instructions);
        agent.variables = BTreeMap::from([
            ("city".to_owned(), json!("Oslo")),
            ("twice".to_owned(), json!("{{city}} ${KEY}")),
            ("list".to_owned(), json!([1, 2])),
        ]);
        let run = BTreeMap::from([("city".to_owned(), json!("Rome"))]);
        render_instructions(&agent, &run).map_err(|error| error.message)
    }

    #[test]
    fn variables_are_filled_in_once() {
        for (instructions, expected) in [
            ("", ""),
            ("In {{city}}.", "In Rome."),
            ("{{twice}}", "{{city}} ${KEY}"),
            ("{{list}}", "[1,2]"),
            ("Run echo ${HOME} $${X} $1 { }", "Run echo ${HOME} $${X} $1 { }"),
            ("{{if city}}yes{{end}}", "yes"),
        ] {
            assert_eq!(render(instructions).as_deref(), Ok(expected), "{instructions}");
        }
    }

    #[test]
    fn an_unknown_variable_is_named() {
        let error = render("In {{town}}.").unwrap_err();
        assert!(error.starts_with("`instructions`: at character 4: "), "{error}");
        assert!(error.contains("`town`") && error.contains("variables: `city`, `list`, `twice`"), "{error}");
    }
}
