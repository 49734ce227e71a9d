//! `haft tool show`: shows a tool.

use clap::Args;
use serde_json::Value;

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// Show a tool
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Print the text of the definition
    #[arg(long)]
    source: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tools/{}", segment(&arguments.tool));
    if arguments.source {
        let data = context.tool_request(&arguments.tool, Request::get(format!("{path}/source"))).await?;
        return context.output.data(&data, |output| output.line(&view::text(&data, "text")));
    }
    let data = context.tool_request(&arguments.tool, Request::get(path)).await?;
    context.output.data(&data, |output| show(output, &data))
}

fn show(output: &Output, tool: &Value) -> Result<(), CliError> {
    let state = |key, on, off| if view::is(tool, key) { on } else { off };
    let mut lines = vec![
        format!("tool         {}", view::qualified(tool)),
        format!("id           {}", view::text(tool, "id")),
        format!("description  {}", view::text(tool, "description").trim()),
        format!(
            "state        {}, {}, {}",
            view::text(tool, "status"),
            state("enabled", "enabled", "disabled"),
            match view::list(tool, "warnings").len() {
                0 => state("ready", "ready", "not ready"),
                _ => state("ready", "ready with warnings", "not ready"),
            },
        ),
        format!("type         {}", view::text(tool, "implementation_type")),
        format!("policy       {}", view::text(tool, "policy")),
        format!("calls        {}", view::text(tool, "usage.call_count")),
        format!("changed      {}", view::time(tool, "modified_at")),
    ];
    for (label, key) in [("file         ", "path"), ("error        ", "error")] {
        let text = view::text(tool, key);
        if !text.is_empty() {
            lines.push(format!("{label}{text}"));
        }
    }
    let warnings = view::list(tool, "warnings").iter();
    lines.extend(warnings.map(|warning| format!("warning      {}", view::problem(warning))));
    output.line(&lines.join("\n"))?;
    let rows = arguments(tool.get("input_schema").unwrap_or(&Value::Null));
    if !rows.is_empty() {
        output.line("")?;
        output.table(&["ARGUMENT", "TYPE", "REQUIRED", "DESCRIPTION"], rows)?;
    }
    output.line(&format!("\nimplementation\n{:#}", tool.get("implementation").unwrap_or(&Value::Null)))
}

/// Returns the arguments of a schema as rows.
fn arguments(schema: &Value) -> Vec<Vec<String>> {
    let required = view::list(schema, "required");
    let properties = schema.get("properties").and_then(Value::as_object);
    let rows = properties.into_iter().flatten().map(|(name, property)| {
        vec![
            name.clone(),
            view::text(property, "type"),
            if required.iter().any(|item| item == name.as_str()) { "yes" } else { "no" }.to_owned(),
            view::first_line(&view::text(property, "description"), 80),
        ]
    });
    rows.collect()
}
