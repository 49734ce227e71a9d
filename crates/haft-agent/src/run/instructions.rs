//! The instructions of an agent, with their variables filled in.

use std::collections::BTreeMap;

use haft_core::agent::AgentDefinition;
use haft_core::outcome::{CallError, ErrorCode};
use haft_template::{EscapeContext, Notation, Scope, SyntaxError, Template, Values};
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
    let scope = scope_of(values.keys());
    let invalid = |reason: String| {
        let known: Vec<_> = values.keys().take(20).map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("`instructions`: {reason} (variables: {known})");
        CallError::new(ErrorCode::Template, message)
    };
    // Any other name would be parsed as a secret, and instructions have no secrets.
    let open =
        parse(definition, &scope_of(values.keys()).open()).map_err(|error| invalid(error.to_string()))?;
    if let Some(name) = open.arguments().into_iter().find(|name| !values.contains_key(*name)) {
        let fix = "set it in `variables` of the agent, or pass it when the run starts";
        return Err(invalid(format!("the variable `{name}` has no value; {fix}")));
    }
    let template = parse(definition, &scope).map_err(|error| invalid(error.to_string()))?;
    let (steps, secrets) = (Map::new(), BTreeMap::new());
    let given = Values { args: &values, steps: &steps, secrets: &secrets, version: "" };
    let rendered = template.render(EscapeContext::Text, &given);
    rendered.map(|rendered| rendered.text).map_err(|error| invalid(error.to_string()))
}

/// Returns the variables that the instructions use and that have no value in the definition: every run must set them.
pub fn missing_variables(definition: &AgentDefinition) -> Result<Vec<String>, SyntaxError> {
    let template = parse(definition, &scope_of(definition.variables.keys()).open())?;
    let is_missing = |name: &&str| !definition.variables.contains_key(*name);
    Ok(template.arguments().into_iter().filter(is_missing).map(str::to_owned).collect())
}

fn scope_of<'a>(names: impl Iterator<Item = &'a String>) -> Scope {
    let declared: Map<String, Value> = names.map(|name| (name.clone(), json!({}))).collect();
    Scope::from_schema(&json!({"type": "object", "properties": declared}))
}

fn parse(definition: &AgentDefinition, scope: &Scope) -> Result<Template, SyntaxError> {
    Template::parse(Notation::Braces, &definition.instructions.replace("${", "$${"), scope)
}

#[cfg(test)]
mod tests {
    use haft_core::agent::AgentModel;

    use super::*;

    fn agent(instructions: &str) -> AgentDefinition {
        let mut agent = AgentDefinition::new("a".parse().unwrap(), AgentModel::new("scripted"));
        instructions.clone_into(&mut agent.instructions);
        agent.variables = BTreeMap::from([
            ("city".to_owned(), json!("Oslo")),
            ("twice".to_owned(), json!("{{city}} ${KEY}")),
            ("list".to_owned(), json!([1, 2])),
        ]);
        agent
    }

    fn render(instructions: &str) -> Result<String, String> {
        let agent = agent(instructions);
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
        assert_eq!(
            error,
            "`instructions`: the variable `town` has no value; set it in `variables` of the agent, or pass it when the \
             run starts (variables: `city`, `list`, `twice`)"
        );
    }
    #[test]
    fn variables_without_a_value_are_found() {
        let missing = |text: &str| missing_variables(&agent(text)).map_err(|error| error.to_string());
        for (instructions, expected) in [
            ("In {{city}} on {{day}}.", vec!["day"]),
            (
                "{{if vip}}{{person.name}}{{else}}{{city}} {{day | default:1}}{{end}} {{day}} ${KEY}",
                vec!["day", "person", "vip"],
            ),
            ("{{\"{{\"}} { x } {{list.0}}", vec![]),
        ] {
            assert_eq!(missing(instructions).unwrap(), expected, "{instructions}");
        }
        assert!(missing("{{if city}}").unwrap_err().contains("has no `{{end}}`"));
    }
}
