//! `haft tool show`: shows a tool.

use clap::Args;
use haft_api::tool::{SourceView, ToolView};
use haft_core::implementation::Kind;
use haft_core::schema::RawSchema;
use serde_json::Value;

use crate::client::{Request, tool_segment};
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
    let path = format!("/api/tools/{}", tool_segment(&arguments.tool));
    if arguments.source {
        let data = context.tool_request(&arguments.tool, Request::get(format!("{path}/source"))).await?;
        return context.output.show(&data, |output, source: SourceView| output.line(&source.text));
    }
    let data = context.tool_request(&arguments.tool, Request::get(path)).await?;
    context.output.show(&data, |output, tool: ToolView| show(output, &tool))
}

fn show(output: &Output, tool: &ToolView) -> Result<(), CliError> {
    let ready = match (tool.ready, tool.warnings.is_empty()) {
        (true, true) => "ready",
        (true, false) => "ready with warnings",
        (false, _) => "not ready",
    };
    let kind = tool.implementation_type.map(Kind::as_str).unwrap_or_default();
    let mut lines = vec![
        format!("tool         {}", tool.qualified()),
        format!("id           {}", view::optional(tool.id.as_ref())),
        format!("description  {}", tool.description.trim()),
        format!(
            "state        {}, {}, {ready}",
            tool.status.as_str(),
            if tool.enabled { "enabled" } else { "disabled" },
        ),
        format!("type         {kind}"),
        format!("policy       {}", view::word(&tool.policy)),
        format!("calls        {}", tool.usage.call_count),
        format!("changed      {}", view::moment(tool.modified_at)),
    ];
    for (label, text) in [("file         ", &tool.path), ("error        ", &tool.error)] {
        lines.extend(text.iter().map(|text| format!("{label}{text}")));
    }
    lines.extend(tool.warnings.iter().map(|warning| format!("warning      {}", view::problem(warning))));
    output.line(&lines.join("\n"))?;
    let rows = arguments(&tool.input_schema.as_ref().map(RawSchema::value).unwrap_or_default());
    if !rows.is_empty() {
        output.line("")?;
        output.table(&["ARGUMENT", "TYPE", "REQUIRED", "DESCRIPTION"], rows)?;
    }
    let implementation = serde_json::to_value(&tool.implementation).unwrap_or_default();
    output.line(&format!("\nimplementation\n{implementation:#}"))
}

/// Returns the arguments of a schema as rows.
fn arguments(schema: &Value) -> Vec<Vec<String>> {
    let required = schema.get("required").and_then(Value::as_array);
    let text = |property: &Value, key: &str| match property.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let rows = properties.into_iter().flatten().map(|(name, property)| {
        vec![
            name.clone(),
            text(property, "type"),
            view::yes_no(required.is_some_and(|names| names.iter().any(|item| item == name.as_str()))),
            view::first_line(&text(property, "description"), 80),
        ]
    });
    rows.collect()
}
