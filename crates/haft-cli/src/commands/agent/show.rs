//! `haft agent show`: shows an agent with its tools.

use clap::Args;
use haft_api::agent::{AgentTools, AgentView};
use serde::Deserialize;
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
        let AgentView { definition, .. } = view::read(&agent)?;
        let source = haft_definition::agent::write_yaml(&definition);
        return context.output.data(&json!({ "source": source }), |output| output.line(&source));
    }
    let tools = tools?;
    if let Some(map) = agent.as_object_mut() {
        map.insert("bound_tools".to_owned(), tools);
    }
    context
        .output
        .show(&agent, |output, ShownAgent { agent, bound_tools }| show(output, &agent, &bound_tools))
}

/// The JSON output.
#[derive(Deserialize)]
struct ShownAgent {
    #[serde(flatten)]
    agent: AgentView,
    bound_tools: AgentTools,
}

fn show(output: &Output, agent: &AgentView, bound: &AgentTools) -> Result<(), CliError> {
    let definition = &agent.definition;
    let mut lines = vec![
        format!("agent         {} ({})", definition.slug, definition.name),
        format!("status        {}, revision {}", state(agent), agent.revision),
        format!("model         {}", definition.model.name),
    ];
    let fallback = definition.fallback.as_ref().map(|model| model.name.as_str());
    for (label, text) in [
        ("description   ", Some(definition.description.as_str())),
        ("file          ", agent.path.as_deref()),
        ("error         ", agent.error.as_deref()),
        ("fallback      ", fallback),
    ] {
        lines.extend(text.filter(|text| !text.is_empty()).map(|text| format!("{label}{text}")));
    }
    lines.push(format!("tools         {} ({} tokens)", bound.tools.len(), bound.tokens));
    lines.extend(bound.tools.iter().map(|tool| format!("  {}", tool.qualified)));
    lines.extend(bound.missing.iter().map(|rule| format!("  no tool matches `{rule}`")));
    if !definition.instructions.is_empty() {
        lines.push(format!("instructions\n{}", definition.instructions.trim_end()));
    }
    output.line(&lines.join("\n"))
}
