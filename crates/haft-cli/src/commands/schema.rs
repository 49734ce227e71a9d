//! `haft schema`: prints the JSON Schemas of the definitions, for editors.

use clap::Args;
use clap::builder::PossibleValuesParser;
use haft_definition::editor_schema::SchemaKind;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::CliError;
use crate::output::print_json;

/// Print the JSON Schema of a kind of definition
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Kind of definition [default: list the kinds]
    #[arg(value_parser = PossibleValuesParser::new(SchemaKind::ALL.map(SchemaKind::as_str)))]
    kind: Option<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), CliError> {
    if let Some(kind) = arguments.kind.as_deref().and_then(SchemaKind::parse) {
        return print_json(&kind.schema());
    }
    let rows: Vec<[String; 3]> = SchemaKind::ALL
        .map(|kind| [kind.as_str(), kind.files()].map(str::to_owned))
        .map(|[kind, files]| [kind.clone(), files, format!("/schemas/{kind}.json")])
        .to_vec();
    let schemas: Vec<Value> =
        rows.iter().map(|[kind, files, path]| json!({"kind": kind, "files": files, "path": path})).collect();
    context.output.data(&json!({"schemas": schemas}), |output| {
        output.list(&["KIND", "FILES"], &["PATH"], rows.into_iter().map(Vec::from).collect())
    })
}
