//! `haft KIND edit`: edits the newest definition of a resource as YAML.

use std::path::{Path, PathBuf};

use clap::Args;
use haft_api::resource::ChangedResource;
use haft_core::problem::Problem;
use haft_definition::dialect::{DocumentLimits, YamlDocument, write_yaml};
use http::Method;
use serde_json::{Map, Value, json};

use super::life_cycle::Kind;
use crate::client::{Body, Client, Request, segment};
use crate::context::Context;
use crate::draft::{Draft, ask_again};
use crate::error::{ApiError, CliError};
use crate::{input, view};

const LIMITS: DocumentLimits = DocumentLimits { bytes: 16 << 20, values: 200_000 };

/// The arguments of `edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArguments {
    /// Slug or id
    reference: String,
    /// Read the text from this file instead of opening an editor
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// The newest definition of a resource.
struct Newest {
    revision: String,
    text: String,
}

/// Edits a resource: the new text is its newest revision.
pub(super) async fn run(arguments: EditArguments, kind: Kind, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let edited = edit(&arguments, kind, context, &client).await;
    client.close().await;
    let Some(data) = edited? else {
        context.output.note("no changes");
        return Ok(());
    };
    let ChangedResource { slug, revision, warnings, .. } = view::read(&data)?;
    for warning in &warnings {
        context.output.warn(&view::problem(warning));
    }
    context.output.data(&data, |output| {
        output.note(&format!("updated `{slug}`, revision {revision}"));
        Ok(())
    })
}

async fn edit(
    arguments: &EditArguments,
    kind: Kind,
    context: &Context,
    client: &Client,
) -> Result<Option<Value>, CliError> {
    let reference = &arguments.reference;
    let newest = newest(reference, kind, client).await?;
    if let Some(file) = &arguments.from {
        let text = input::read_text(Path::new(file))?;
        return store(reference, kind, &newest, &text, client).await.map(Some);
    }
    let command = || format!("haft {} edit {reference}", kind.noun);
    let mut draft = Draft::new(&newest.text, "yaml")?;
    loop {
        let text = match draft.edit(context) {
            Ok(text) => text,
            Err(error) if draft.has_text(&newest.text) => return Err(error),
            Err(error) => return Err(draft.keep(error, command())),
        };
        if text == newest.text {
            return Ok(None);
        }
        match store(reference, kind, &newest, &text, client).await {
            Ok(data) => return Ok(Some(data)),
            Err(error) if ask_again(&error, context)? => {}
            Err(error) => return Err(draft.keep(error, command())),
        }
    }
}

async fn newest(reference: &str, kind: Kind, client: &Client) -> Result<Newest, CliError> {
    let path = format!("{}/{}", kind.path, segment(reference));
    let resource = client.data(Request::get(&path)).await?;
    let revision = view::text(&resource, "revision");
    let stored = client.data(Request::get(format!("{path}/{}/{revision}", kind.revisions))).await?;
    let definition = match stored.get("definition") {
        Some(definition) => definition.clone(),
        // Versions of artifacts have no `definition`: its fields are at the top level.
        None => stored,
    };
    let mut fields = match definition {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    for own in ["version", "hash", "created_by", "created_at"] {
        fields.remove(own);
    }
    Ok(Newest { revision, text: write_yaml(&fields) })
}

/// Stores a text, unless the resource has changed since it was read.
async fn store(
    reference: &str,
    kind: Kind,
    newest: &Newest,
    text: &str,
    client: &Client,
) -> Result<Value, CliError> {
    let path = format!("{}/{}", kind.path, segment(reference));
    let request = Request::new(Method::PUT, path)
        .header("if-match", newest.revision.clone())
        .with_body(Body::Json(parse(text)?));
    client.data(request).await
}

fn parse(text: &str) -> Result<Value, CliError> {
    let invalid = |problem: Problem| {
        let mut error = ApiError::local(422, "invalid_definition", problem.to_string());
        error.details = json!({ "problems": [problem] });
        CliError::Api(Box::new(error))
    };
    let mut document = YamlDocument::parse(text, LIMITS).map_err(invalid)?;
    match document.take_value() {
        value @ Value::Object(_) => Ok(value),
        _ => Err(invalid(Problem::new("", "wrong_type", "expected a map of keys such as `description`"))),
    }
}
