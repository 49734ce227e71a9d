//! `haft agent show`: shows an agent with its tools.

use clap::Args;
use haft_core::agent::AgentDefinition;
use serde_json::{Value, json};

use super::command::path;
use super::list::state;
use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// Show an agent with its tools
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agent: slug or id
    agent: String,
    /// Print the definition as YAML
    #[arg(long)]
    source: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let found = client.data(Request::get(path(&arguments.agent))).await;
    let tools = match (&found, arguments.source) {
        (Ok(_), false) => client.data(Request::get(format!("{}/tools", path(&arguments.agent)))).await,
        _ => Ok(Value::Null),
    };
    client.close().await;
    let mut agent = found?;
    if arguments.source {
        let definition: AgentDefinition = serde_json::from_value(agent.clone())
            .map_err(|error| CliError::LocalRequest { source: error.into() })?;
        let source = haft_definition::agent::write_yaml(&definition);
        return context.output.data(&json!({ "source": source }), |output| output.line(&source));
    }
    let tools = tools?;
    if let Some(map) = agent.as_object_mut() {
        map.insert("bound_tools".to_owned(), tools);
    }
    context.output.data(&agent, |output| show(output, &agent))
}

fn show(output: &Output, agent: &Value) -> Result<(), CliError> {
    let mut lines = vec![
        format!("agent         {} ({})", view::text(agent, "slug"), view::text(agent, "name")),
        format!("status        {}, revision {}", state(agent), view::text(agent, "revision")),
        format!("model         {}", view::text(agent, "model.name")),
    ];
    for (key, label) in [
        ("description", "description   "),
        ("path", "file          "),
        ("error", "error         "),
        ("fallback.name", "fallback      "),
    ] {
        let text = view::text(agent, key);
        if !text.is_empty() {
            lines.push(format!("{label}{text}"));
        }
    }
    let bound = agent.get("bound_tools").cloned().unwrap_or_default();
    let names: Vec<String> =
        view::list(&bound, "tools").iter().map(|tool| view::text(tool, "qualified")).collect();
    lines.push(format!("tools         {} ({} tokens)", names.len(), view::text(&bound, "tokens")));
    lines.extend(names.iter().map(|name| format!("  {name}")));
    for rule in view::list(&bound, "missing") {
        lines.push(format!("  no tool matches `{}`", view::readable(rule)));
    }
    let instructions = view::text(agent, "instructions");
    if !instructions.is_empty() {
        lines.push(format!("instructions\n{}", instructions.trim_end()));
    }
    output.line(&lines.join("\n"))
}
