//! `haft import`: makes tools of API descriptions.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Make tools of API descriptions
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a tool of every operation of an OpenAPI 3.0 or 3.1 document, or bring those of an earlier import up to date
    Openapi(Openapi),
}

/// Make a tool of every operation of an OpenAPI document
#[derive(Debug, Args)]
pub(crate) struct Openapi {
    /// The document: a file, an `http` or `https` URL, or `-` for stdin
    #[arg(value_name = "FILE|URL")]
    source: String,
    /// The bundle that the tools go to [default: one after the title of the document]
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<String>,
    /// Take operations with this tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Take operations whose path begins with this; may be repeated
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Take operations whose id or `METHOD /path` fits this pattern of `*` and `?`; may be repeated
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Leave out what fits this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Where the operations are, in place of the document's servers
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Send the secret of this name as bearer token, in place of what the document says
    #[arg(long, value_name = "SECRET")]
    bearer: Option<String>,
    /// Delete tools of earlier imports whose operations are gone
    #[arg(long)]
    delete_missing: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    let Command::Openapi(arguments) = command;
    let report = context.ask(Request::post("/api/import/openapi", body(&arguments)?)).await?;
    context.output.data(&report, |output| {
        output.table(&["OPERATION", "TOOL", "ACTION", "NOTE"], rows(&report))?;
        for warning in placed(&report, "warnings") {
            output.warn(&warning);
        }
        output.note(&summary(&report));
        Ok(())
    })?;
    match nothing_came(&report) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// An import that made no tool of any operation has failed, whatever its table says.
fn nothing_came(report: &Value) -> Option<CliError> {
    let lines = report.get("tools").and_then(Value::as_array)?;
    let of_document =
        lines.iter().filter(|line| !matches!(view::text(line, "action").as_str(), "missing" | "deleted"));
    let mut reasons: Vec<(String, usize)> = Vec::new();
    let mut operations = 0_usize;
    for line in of_document {
        if view::text(line, "action") != "skipped" {
            return None;
        }
        operations += 1;
        let reason = view::text(line, "reason");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, times)) => *times += 1,
            None => reasons.push((reason, 1)),
        }
    }
    // The most frequent one; of those that are equal, the first.
    let others = reasons.len().saturating_sub(1);
    let (reason, _) = reasons.into_iter().rev().max_by_key(|(_, times)| *times)?;
    Some(CliError::NothingImported { operations, reason, others })
}

fn body(arguments: &Openapi) -> Result<Value, CliError> {
    let mut body = json!({
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
            ("document", input::read_text(Path::new(&arguments.source))?)
        };
        map.insert(key.to_owned(), Value::String(value));
        if let Some(name) = &arguments.bearer {
            if !is_secret_name(name) {
                // Not shown: it may be the token itself.
                let message = "`--bearer` takes the name of a secret (letters, digits, `_`, `.` and `-`), not its \
                               value; store that with `haft secret set NAME`";
                return Err(CliError::Usage(message.to_owned()));
            }
            map.insert("auth".to_owned(), json!({"type": "bearer", "token": format!("${{{name}}}")}));
        }
    }
    Ok(body)
}

/// Tells whether a secret may have that name.
fn is_secret_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn is_url(source: &str) -> bool {
    let start = source.get(..8).unwrap_or(source).to_ascii_lowercase();
    start.starts_with("http://") || start.starts_with("https://")
}

fn rows(report: &Value) -> Vec<Vec<String>> {
    let tools = report.get("tools").and_then(Value::as_array);
    let row = |tool: &Value| {
        vec![view::text(tool, "operation"), view::text(tool, "name"), view::text(tool, "action"), note(tool)]
    };
    tools.into_iter().flatten().map(row).collect()
}

/// Says why, what changed, what stayed, and what is doubtful.
fn note(tool: &Value) -> String {
    let mut notes = Vec::new();
    let reason = view::text(tool, "reason");
    if !reason.is_empty() {
        notes.push(reason);
    }
    for (key, word) in [("changed", "changed"), ("kept", "kept yours")] {
        let fields: Vec<&str> =
            tool.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if !fields.is_empty() {
            notes.push(format!("{word}: {}", fields.join(", ")));
        }
    }
    notes.extend(texts(tool, "warnings"));
    notes.join("; ")
}

/// Returns the messages of a list of problems, each with the place in the document.
fn placed(holder: &Value, key: &str) -> Vec<String> {
    let problems = holder.get(key).and_then(Value::as_array);
    let told = |problem: &Value| match (view::text(problem, "field"), view::text(problem, "message")) {
        (field, message) if field.is_empty() => message,
        (field, message) => format!("`{field}`: {message}"),
    };
    problems.into_iter().flatten().map(told).collect()
}

/// Returns the messages of a list of problems.
fn texts(holder: &Value, key: &str) -> Vec<String> {
    let problems = holder.get(key).and_then(Value::as_array);
    problems.into_iter().flatten().map(|problem| view::text(problem, "message")).collect()
}

fn summary(report: &Value) -> String {
    let count = |key: &str| report.get(key).and_then(Value::as_u64).unwrap_or_default();
    let counted = ["created", "updated", "unchanged", "skipped", "missing", "deleted"];
    let counts: Vec<String> =
        counted.into_iter().filter(|key| count(key) > 0).map(|key| format!("{} {key}", count(key))).collect();
    let list = |key: &str| -> Vec<String> {
        let texts = report.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        texts.map(|text| format!("`{text}`")).collect()
    };
    let dry = report.get("dry_run") == Some(&Value::Bool(true));
    let servers = list("servers").join(", ");
    let mut lines = vec![format!(
        "{}{} in the bundle `{}`{}",
        if dry { "would be: " } else { "" },
        counts.join(", "),
        view::text(report, "bundle"),
        if servers.is_empty() { String::new() } else { format!("; requests go to {servers}") },
    )];
    let secrets = list("secrets");
    if !secrets.is_empty() {
        lines.push(format!("the tools need these secrets (`haft secret set NAME`): {}", secrets.join(", ")));
    }
    if count("missing") > 0 {
        lines.push("tools whose operations are gone were left; `--delete-missing` deletes them".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_table_and_a_summary() {
        let report = json!({
            "bundle": "pets", "dry_run": true, "created": 1, "updated": 1, "skipped": 1, "missing": 1,
            "servers": ["https://a.example"], "secrets": ["PETS_KEY"],
            "tools": [
                {"operation": "POST /files", "action": "skipped", "reason": "its body is `multipart/form-data`"},
                {"operation": "GET /pets", "name": "listPets", "action": "created", "warnings": [{"message": "old"}]},
                {"operation": "GET /toys", "name": "toys", "action": "updated", "changed": ["tags"], "kept": ["auth", "description"]},
                {"operation": "GET /gone", "name": "gone", "action": "missing"},
            ],
        });
        let rows: Vec<String> = rows(&report).iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        POST /files |  | skipped | its body is `multipart/form-data`
        GET /pets | listPets | created | old
        GET /toys | toys | updated | changed: tags; kept yours: auth, description
        GET /gone | gone | missing |
        ");
        insta::assert_snapshot!(summary(&report), @"
        would be: 1 created, 1 updated, 1 skipped, 1 missing in the bundle `pets`; requests go to `https://a.example`
        the tools need these secrets (`haft secret set NAME`): `PETS_KEY`
        tools whose operations are gone were left; `--delete-missing` deletes them
        ");
    }

    #[test]
    fn an_import_of_which_nothing_came_has_failed() {
        let failed = |lines: Value| nothing_came(&json!({"tools": lines})).map(|error| error.to_string());
        let skipped = |reason: &str| json!({"operation": "POST /a", "action": "skipped", "reason": reason});
        for (lines, expected) in [
            (json!([]), None),
            (json!([skipped("x"), {"action": "created"}]), None),
            (json!([skipped("x"), {"action": "unchanged"}]), None),
            (json!([{"action": "missing"}]), None),
            (json!([skipped("x")]), Some("no tool came of the operation: x")),
            (
                json!([skipped("x"), skipped("x"), {"action": "missing"}]),
                Some("no tool came of the 2 operations: x"),
            ),
            (
                json!([skipped("x"), skipped("y"), skipped("z")]),
                Some("no tool came of the 3 operations: x, and 2 other reasons"),
            ),
            (
                json!([skipped("x"), skipped("y"), skipped("y")]),
                Some("no tool came of the 3 operations: y, and one other reason"),
            ),
        ] {
            assert_eq!(failed(lines.clone()).as_deref(), expected, "{lines}");
        }
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

    #[test]
    fn a_warning_names_its_place() {
        let report = json!({"warnings": [{"field": "paths./c", "message": "left out"}, {"field": "", "message": "odd"}]});
        assert_eq!(placed(&report, "warnings"), ["`paths./c`: left out", "odd"]);
    }
}
