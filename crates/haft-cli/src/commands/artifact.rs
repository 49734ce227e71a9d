//! `haft artifact`: stored programs that tools run.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand, ValueEnum};
use haft_api::artifact::{ArtifactVersion, ArtifactView};
use haft_core::artifact::ArtifactContent;
use haft_core::name::ArtifactSlug;
use http::Method;
use serde_json::{Map, Value, json};

use super::life_cycle::{self, ARTIFACTS, Columns};
use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::{input, view};

/// Manage code artifacts: stored programs with declared inputs, which tools run
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List artifacts
    #[command(visible_alias = "ls", after_help = examples!("haft artifact list", "haft artifact list --deleted"))]
    List(life_cycle::ListArguments),
    /// Store a program as a new artifact
    ///
    /// The runtime follows from the ending of the file: `.sh`, `.py` or `.wasm`.
    #[command(after_help = examples!(
        "haft artifact create word-count count.sh --input text:string!",
        "haft artifact create totals totals.py --input 'rows:array!' --input currency:string=EUR"
    ))]
    Create(CreateArguments),
    /// Show an artifact: its newest version, or another one
    #[command(after_help = examples!("haft artifact show word-count", "haft artifact show word-count --version 1"))]
    Show {
        /// Slug or id of the artifact
        artifact: String,
        /// Number of the version [default: the newest]
        #[arg(long = "version", value_name = "N")]
        number: Option<u32>,
    },
    /// Append a version; tools that pin an earlier one keep it
    #[command(after_help = examples!("haft artifact update word-count count.sh"))]
    Update(UpdateArguments),
    #[command(flatten)]
    LifeCycle(life_cycle::Command),
    /// Delete an artifact; `haft artifact undelete` restores it for 48 hours
    #[command(visible_alias = "rm", after_help = examples!(
        "haft artifact delete word-count",
        "haft artifact delete word-count --force"
    ))]
    Delete(life_cycle::DeleteArguments),
}

/// What runs an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Runtime {
    /// GNU bash
    Bash,
    /// Python 3
    Python,
    /// WebAssembly
    Wasm,
}

impl Runtime {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Python => "python",
            Self::Wasm => "wasm",
        }
    }

    fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "sh" | "bash" => Some(Self::Bash),
            "py" => Some(Self::Python),
            "wasm" => Some(Self::Wasm),
            _ => None,
        }
    }
}

/// The fields of an artifact besides its source.
#[derive(Debug, Args)]
pub(crate) struct Fields {
    /// What runs it [default: by the ending of the file]
    #[arg(long)]
    runtime: Option<Runtime>,
    /// Name that people see
    #[arg(long)]
    name: Option<String>,
    /// What it does
    #[arg(long)]
    description: Option<String>,
    /// Declared input; `!` marks a required one; may be repeated
    #[arg(short, long = "input", value_name = "NAME[:TYPE][!|=DEFAULT]", value_parser = parse_input)]
    inputs: Vec<Value>,
}

/// A new artifact.
#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// Name by which tools refer to it
    slug: String,
    /// File with the source
    file: PathBuf,
    #[command(flatten)]
    fields: Fields,
}

/// A new version.
#[derive(Debug, Args)]
pub(crate) struct UpdateArguments {
    /// Slug or id of the artifact
    artifact: String,
    /// File with the source [default: the source stays]
    file: Option<PathBuf>,
    #[command(flatten)]
    fields: Fields,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List(arguments) => list(&arguments, context).await,
        Command::Create(arguments) => create(arguments, context).await,
        Command::Show { artifact, number } => show(&artifact, number, context).await,
        Command::Update(arguments) => update(arguments, context).await,
        Command::LifeCycle(command) => life_cycle::run(command, ARTIFACTS, context).await,
        Command::Delete(arguments) => life_cycle::delete(&arguments, ARTIFACTS, context).await,
    }
}

fn path(artifact: &str) -> String {
    format!("/api/code-artifacts/{}", segment(artifact))
}

/// Parses an input: `city`, `city:string!`, `days:integer=3`.
fn parse_input(text: &str) -> Result<Value, String> {
    let (declared, default) = match text.split_once('=') {
        Some((declared, default)) => (declared, Some(default)),
        None => (text, None),
    };
    let (declared, required) = match declared.strip_suffix('!') {
        Some(declared) => (declared, true),
        None => (declared, false),
    };
    let (name, kind) = declared.split_once(':').unwrap_or((declared, "any"));
    if name.is_empty() || kind.is_empty() {
        return Err("expected `NAME`, `NAME:TYPE`, `NAME:TYPE!` or `NAME:TYPE=DEFAULT`".to_owned());
    }
    let mut input = json!({"name": name, "type": kind, "required": required});
    if let (Some(default), Value::Object(input)) = (default, &mut input) {
        let value = match kind {
            "string" => Value::String(default.to_owned()),
            _ => serde_json::from_str(default).unwrap_or_else(|_| Value::String(default.to_owned())),
        };
        input.insert("default".to_owned(), value);
    }
    Ok(input)
}

/// Returns the body of a request from the given fields.
fn body(fields: Fields, file: Option<&Path>) -> Result<Map<String, Value>, CliError> {
    let mut body = Map::new();
    let runtime = fields.runtime.or_else(|| file.and_then(Runtime::of_file));
    if let Some(file) = file {
        let is_wasm = runtime == Some(Runtime::Wasm);
        let source = if is_wasm {
            let bytes = std::fs::read(file).map_err(CliError::io(format!("read `{}`", file.display())))?;
            STANDARD.encode(bytes)
        } else {
            input::read_text(file)?
        };
        body.insert("source".to_owned(), json!(source));
    }
    body.extend(runtime.map(|runtime| ("runtime".to_owned(), json!(runtime.as_str()))));
    body.extend(fields.name.map(|name| ("name".to_owned(), json!(name))));
    body.extend(fields.description.map(|text| ("description".to_owned(), json!(text))));
    if !fields.inputs.is_empty() {
        body.insert("inputs".to_owned(), json!(fields.inputs));
    }
    Ok(body)
}

async fn list(arguments: &life_cycle::ListArguments, context: &Context) -> Result<(), CliError> {
    let columns = Columns {
        header: &["ARTIFACT", "RUNTIME", "VERSION", "DESCRIPTION"],
        wide: &["STATUS", "REVISION", "NAME", "CHANGED"],
    };
    life_cycle::list(arguments, ARTIFACTS, context, columns, |artifact: &ArtifactView, output| {
        let ArtifactView { slug, content, version, state, .. } = artifact;
        vec![
            slug.to_string(),
            content.runtime.as_str().to_owned(),
            version.to_string(),
            output.brief(&content.description, 60),
            state.status.as_str().to_owned(),
            state.revision.to_string(),
            output.brief(&content.name, 60),
            view::moment(state.modified_at),
        ]
    })
    .await
}

async fn create(arguments: CreateArguments, context: &Context) -> Result<(), CliError> {
    let mut body = body(arguments.fields, Some(&arguments.file))?;
    if !body.contains_key("runtime") {
        let message = format!("unknown ending of `{}`; set `--runtime`", arguments.file.display());
        return Err(CliError::usage(message));
    }
    body.insert("slug".to_owned(), json!(arguments.slug));
    let data = context.request(Request::post("/api/code-artifacts", Value::Object(body))).await?;
    context.output.show(&data, |output, created: ArtifactView| {
        output.line(&created.id.to_string())?;
        output.note(&format!("created artifact `{}`, version 1", arguments.slug));
        Ok(())
    })
}

async fn show(artifact: &str, number: Option<u32>, context: &Context) -> Result<(), CliError> {
    let path = match number {
        Some(number) => format!("{}/versions/{number}", path(artifact)),
        None => path(artifact),
    };
    let data = context.request(Request::get(path)).await?;
    if number.is_some() {
        return context.output.show(&data, |output, found: ArtifactVersion| {
            show_version(output, None, found.version, &found.content)
        });
    }
    context.output.show(&data, |output, found: ArtifactView| {
        show_version(output, Some(&found.slug), found.version, &found.content)
    })
}

fn show_version(
    output: &Output,
    slug: Option<&ArtifactSlug>,
    version: u32,
    content: &ArtifactContent,
) -> Result<(), CliError> {
    let ArtifactContent { name, description, runtime, source, inputs } = content;
    for (key, text) in [
        ("slug", view::optional(slug)),
        ("name", name.clone()),
        ("description", description.clone()),
        ("runtime", runtime.as_str().to_owned()),
        ("version", version.to_string()),
    ] {
        if !text.is_empty() {
            output.line(&format!("{key}: {text}"))?;
        }
    }
    let rows = inputs.iter().map(|input| {
        let default = input.default.as_ref().filter(|value| !value.is_null());
        let default = default.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        vec![
            input.name.clone(),
            input.kind.as_str().to_owned(),
            input.required.to_string(),
            default.unwrap_or_default(),
            input.description.clone(),
        ]
    });
    output.table(&["INPUT", "TYPE", "REQUIRED", "DEFAULT", "DESCRIPTION"], rows.collect())?;
    output.line("")?;
    output.line(source.trim_end())
}

async fn update(arguments: UpdateArguments, context: &Context) -> Result<(), CliError> {
    let body = body(arguments.fields, arguments.file.as_deref())?;
    if body.is_empty() {
        return Err(CliError::usage(
            "nothing to update: name a file, or set a field such as `--description`",
        ));
    }
    let request =
        Request::new(Method::PUT, path(&arguments.artifact)).with_body(Body::Json(Value::Object(body)));
    let data = context.request(request).await?;
    context.output.show(&data, |output, ArtifactView { slug, version, .. }| {
        output.note(&format!("the newest version of artifact `{slug}` is {version}"));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_parsed() {
        for (text, expected) in [
            ("city", json!({"name": "city", "type": "any", "required": false})),
            ("city:string!", json!({"name": "city", "type": "string", "required": true})),
            ("days:integer=3", json!({"name": "days", "type": "integer", "required": false, "default": 3})),
            ("unit:string=3", json!({"name": "unit", "type": "string", "required": false, "default": "3"})),
        ] {
            assert_eq!(parse_input(text).unwrap(), expected, "{text}");
        }
        assert!(parse_input(":string").is_err());
    }
}
