//! `haft import`: creates tools from API descriptions and registries.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use haft_api::import::{ImportAction, ImportReport, ImportedTool};
use serde_json::{Value, json};

use super::{import_registry, import_source};
use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Create tools from API descriptions and registries
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Option<Options>,
    /// Kind of the description [default: detected]
    #[arg(long, value_enum, value_name = "KIND")]
    kind: Option<Kind>,
}

/// Create tools from descriptions of one kind
#[derive(Debug, Subcommand)]
enum Command {
    /// Create or update a tool for each operation of an OpenAPI 3 or Swagger 2.0 document
    #[command(after_help = examples!(
        "haft import openapi petstore.yaml --bundle pets",
        "haft import openapi https://api.example.com/openapi.json --tag issues --bearer API_TOKEN --dry-run"
    ))]
    Openapi(Openapi),
    /// Create or update tools from rows of a `tool_registry` table: all of them or none
    #[command(after_help = examples!(
        "haft import registry tools.jsonl --dry-run",
        "haft import registry tools.jsonl --tenant-id 7 --bundle legacy"
    ))]
    Registry(import_registry::Arguments),
}

/// Create or update a tool for each operation of an OpenAPI document
#[derive(Debug, Args)]
struct Openapi {
    #[command(flatten)]
    options: Options,
}

/// A kind of API description.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// OpenAPI 3, or Swagger 2.0
    Openapi,
    /// A Postman collection
    Postman,
    /// A Bruno collection: a folder, or a ZIP archive of it
    Bruno,
    /// A GraphQL schema, or the URL of an endpoint
    Graphql,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Openapi => "openapi",
            Self::Postman => "postman",
            Self::Bruno => "bruno",
            Self::Graphql => "graphql",
        }
    }
}

/// What to import, and how
#[derive(Debug, Args)]
struct Options {
    /// Description: a file, a folder or ZIP archive of a Bruno collection, a URL, or `-` for stdin
    #[arg(value_name = "FILE|URL")]
    source: String,
    /// Bundle for the tools [default: derived from the title of the document]
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<String>,
    /// Import operations with this tag (repeatable)
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Import operations whose path starts with this (repeatable)
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Import operations whose id or `METHOD /path` matches a pattern with `*` and `?` (repeatable)
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Skip operations that match this pattern (repeatable)
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Base URL of the operations, instead of the document's servers; the endpoint of a GraphQL schema
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Name of a secret to send as bearer token, instead of the document's security
    #[arg(long, value_name = "SECRET")]
    bearer: Option<String>,
    /// Delete tools whose operations are no longer in the document
    #[arg(long)]
    delete_missing: bool,
    /// Show what would be done, and store nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    match (arguments.command, arguments.options) {
        (Some(Command::Registry(arguments)), _) => import_registry::run(arguments, context).await,
        (Some(Command::Openapi(arguments)), _) => {
            import(&arguments.options, Some(Kind::Openapi), context).await
        }
        (None, Some(options)) => import(&options, arguments.kind, context).await,
        (None, None) => Err(CliError::Usage {
            message: "missing what to import".to_owned(),
            hint: Some("pass a file or URL: `haft import FILE|URL`".to_owned()),
        }),
    }
}

async fn import(options: &Options, kind: Option<Kind>, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post("/api/import/api", body(options, kind)?)).await?;
    let report: ImportReport = view::read(&data)?;
    context.output.data(&data, |output| {
        output.table(&["OPERATION", "TOOL", "ACTION", "NOTE"], report.tools.iter().map(row).collect())?;
        for warning in &report.warnings {
            output.warn(&view::problem(warning));
        }
        output.note(&summary(&report));
        Ok(())
    })?;
    match nothing_imported(&report.tools).or_else(|| not_stored(&report.tools)) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Returns an error if a tool could not be stored. An unsupported operation, which has no tool, is not a failure.
fn not_stored(lines: &[ImportedTool]) -> Option<CliError> {
    let tools = lines.iter().filter(|line| line.name.is_some());
    let failed = tools.clone().filter(|line| line.action == ImportAction::Skipped).count();
    let total = tools.count();
    (failed > 0).then_some(CliError::SomeFailed { failed, total, items: "tools were not imported" })
}

/// Returns an error if every operation was skipped.
fn nothing_imported(lines: &[ImportedTool]) -> Option<CliError> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    let mut operations = 0_usize;
    for line in lines {
        match line.action {
            // These are not operations of the document.
            ImportAction::Missing | ImportAction::Deleted => continue,
            ImportAction::Skipped => {}
            ImportAction::Created | ImportAction::Updated | ImportAction::Unchanged => return None,
        }
        operations += 1;
        let reason = line.reason.as_deref().unwrap_or_default();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, times)) => *times += 1,
            None => reasons.push((reason, 1)),
        }
    }
    // The most frequent reason; among equals, the first.
    let others = reasons.len().saturating_sub(1);
    let (reason, _) = reasons.into_iter().rev().max_by_key(|(_, times)| *times)?;
    Some(CliError::NothingImported { operations, reason: reason.to_owned(), others })
}

fn body(arguments: &Options, kind: Option<Kind>) -> Result<Value, CliError> {
    let mut body = json!({
        "kind": kind.map(Kind::as_str),
        "tags": arguments.tags,
        "paths": arguments.paths,
        "include": arguments.include,
        "exclude": arguments.exclude,
        "bundle": arguments.bundle,
        "base_url": arguments.base_url,
        "dry_run": arguments.dry_run,
        "delete_missing": arguments.delete_missing,
    });
    if let Value::Object(map) = &mut body {
        let (key, value) = if is_url(&arguments.source) {
            ("url", arguments.source.clone())
        } else {
            ("document", import_source::read(Path::new(&arguments.source))?)
        };
        map.insert(key.to_owned(), Value::String(value));
        if let Some(name) = &arguments.bearer {
            if !is_secret_name(name) {
                // The value is not repeated: it may be the token itself.
                return Err(CliError::Usage {
                    message: "invalid value for `--bearer`: expected the name of a secret".to_owned(),
                    hint: Some(
                        "store the token with `haft secret set NAME`, then pass `--bearer NAME`".to_owned(),
                    ),
                });
            }
            map.insert("auth".to_owned(), json!({"type": "bearer", "token": format!("${{{name}}}")}));
        }
    }
    Ok(body)
}

/// Returns whether a text is a valid name of a secret.
fn is_secret_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn is_url(source: &str) -> bool {
    let start = source.get(..8).unwrap_or(source).to_ascii_lowercase();
    start.starts_with("http://") || start.starts_with("https://")
}

fn row(tool: &ImportedTool) -> Vec<String> {
    let name = tool.name.clone().unwrap_or_default();
    vec![tool.operation.clone(), name, view::word(&tool.action), note(tool)]
}

/// Returns the reason, the changed and kept fields, and the warnings of a tool.
fn note(tool: &ImportedTool) -> String {
    let mut notes: Vec<String> = tool.reason.iter().cloned().collect();
    for (fields, label) in [(&tool.changed, "changed"), (&tool.kept, "kept")] {
        if !fields.is_empty() {
            notes.push(format!("{label}: {}", fields.join(", ")));
        }
    }
    notes.extend(tool.warnings.iter().map(|warning| warning.message.clone()));
    notes.join("; ")
}

fn summary(report: &ImportReport) -> String {
    let counted = [
        (report.created, "created"),
        (report.updated, "updated"),
        (report.unchanged, "unchanged"),
        (report.skipped, "skipped"),
        (report.missing, "missing"),
        (report.deleted, "deleted"),
    ];
    let counts = counted.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    let list = |texts: &[String]| -> Vec<String> { texts.iter().map(|text| format!("`{text}`")).collect() };
    let servers = list(&report.servers).join(", ");
    let mut lines = vec![format!(
        "{}{} in bundle `{}`{}",
        if report.dry_run { "dry run: " } else { "" },
        counts.join(", "),
        report.bundle,
        if servers.is_empty() { String::new() } else { format!("; requests go to {servers}") },
    )];
    let secrets = list(&report.secrets);
    if !secrets.is_empty() {
        lines.push(format!("store these secrets with `haft secret set NAME`: {}", secrets.join(", ")));
    }
    if report.missing > 0 {
        lines.push("tools with missing operations were kept; delete them with `--delete-missing`".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: Value) -> Vec<ImportedTool> {
        serde_json::from_value(lines).unwrap()
    }

    #[test]
    fn a_report_is_a_table_and_a_summary() {
        let report: ImportReport = view::read(&json!({
            "title": "Pets", "version": "1", "operations": 3, "bundle": "pets", "dry_run": true, "created": 1,
            "updated": 1, "unchanged": 0, "skipped": 1, "missing": 1, "deleted": 0, "warnings": [],
            "servers": ["https://a.example"], "secrets": ["PETS_KEY"],
            "tools": [
                {"operation": "POST /files", "action": "skipped", "reason": "its body is `multipart/form-data`"},
                {"operation": "GET /pets", "name": "listPets", "action": "created",
                    "warnings": [{"field": "", "code": "deprecated", "message": "old"}]},
                {"operation": "GET /toys", "name": "toys", "action": "updated", "changed": ["tags"], "kept": ["auth", "description"]},
                {"operation": "GET /gone", "name": "gone", "action": "missing"},
            ],
        }))
        .unwrap();
        let rows: Vec<String> = report.tools.iter().map(|tool| row(tool).join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        POST /files |  | skipped | its body is `multipart/form-data`
        GET /pets | listPets | created | old
        GET /toys | toys | updated | changed: tags; kept: auth, description
        GET /gone | gone | missing |
        ");
        insta::assert_snapshot!(summary(&report), @"
        dry run: 1 created, 1 updated, 1 skipped, 1 missing in bundle `pets`; requests go to `https://a.example`
        store these secrets with `haft secret set NAME`: `PETS_KEY`
        tools with missing operations were kept; delete them with `--delete-missing`
        ");
    }

    #[test]
    fn an_import_that_skips_every_operation_fails() {
        let failed = |json: Value| nothing_imported(&lines(json)).map(|error| error.to_string());
        let done = |action: &str| json!({"operation": "POST /a", "action": action});
        let skipped = |reason: &str| json!({"operation": "POST /a", "action": "skipped", "reason": reason});
        for (lines, expected) in [
            (json!([]), None),
            (json!([skipped("x"), done("created")]), None),
            (json!([skipped("x"), done("unchanged")]), None),
            (json!([done("missing")]), None),
            (json!([skipped("x")]), Some("no tools were imported: the operation was skipped: x")),
            (
                json!([skipped("x"), skipped("x"), done("missing")]),
                Some("no tools were imported: all 2 operations were skipped: x"),
            ),
            (
                json!([skipped("x"), skipped("y"), skipped("z")]),
                Some("no tools were imported: all 3 operations were skipped: x, and 2 other reasons"),
            ),
            (
                json!([skipped("x"), skipped("y"), skipped("y")]),
                Some("no tools were imported: all 3 operations were skipped: y, and one other reason"),
            ),
        ] {
            assert_eq!(failed(lines.clone()).as_deref(), expected, "{lines}");
        }
    }

    #[test]
    fn an_import_fails_if_a_tool_was_not_stored() {
        let failed = |json: Value| not_stored(&lines(json)).map(|error| error.to_string());
        let unsupported = json!({"operation": "POST /a", "action": "skipped", "reason": "unsupported"});
        let invalid = json!({"operation": "POST /b", "name": "b", "action": "skipped", "reason": "invalid"});
        let created = json!({"operation": "GET /c", "name": "c", "action": "created"});
        assert_eq!(failed(json!([unsupported, created])), None);
        assert_eq!(
            failed(json!([unsupported, invalid, created])).as_deref(),
            Some("1 of 2 tools were not imported")
        );
    }

    #[test]
    fn a_token_is_not_the_name_of_a_secret() {
        for (name, expected) in [
            ("API_TOKEN", true),
            ("a.b-c", true),
            ("", false),
            ("not a name", false),
            ("${X}", false),
            ("1x", false),
        ] {
            assert_eq!(is_secret_name(name), expected, "{name}");
        }
    }
}
