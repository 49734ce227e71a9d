//! `haft tool edit`: edits the definition of a tool, and keeps the text if it cannot be stored.

use std::path::{Path, PathBuf};

use clap::Args;
use haft_api::tool::{SourceForm, SourceView, ToolView};
use http::Method;
use serde_json::Value;

use super::definition::Form;
use crate::client::{Client, Request, tool_segment};
use crate::context::Context;
use crate::draft::{Draft, ask_again};
use crate::error::{ApiError, CliError};
use crate::input;
use crate::view;

/// Edit the definition of a tool in $VISUAL, $EDITOR or vi
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Read the text from this file instead of opening an editor
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let edited = edit(&arguments, context, &client).await;
    client.close().await;
    let Some(data) = edited? else {
        context.output.note("no changes");
        return Ok(());
    };
    context.output.show(&data, |output, changed: ToolView| {
        output.note(&format!("updated `{}`", changed.qualified()));
        Ok(())
    })
}

/// The stored text of a definition.
struct Source {
    text: String,
    form: Form,
}

async fn edit(arguments: &Arguments, context: &Context, client: &Client) -> Result<Option<Value>, CliError> {
    let tool = &arguments.tool;
    let source = fetch(tool, client).await?;
    if let Some(file) = &arguments.from {
        let text = input::read_text(file)?;
        let form = Form::from_path(Path::new(file)).unwrap_or_else(|| Form::from_text(&text));
        return store(tool, form, text, client).await.map(Some);
    }
    let command = || format!("haft tool edit {tool}");
    let mut draft = Draft::new(&source.text, source.form.name())?;
    loop {
        let text = match draft.edit(context) {
            Ok(text) => text,
            Err(error) if draft.has_text(&source.text) => return Err(error),
            Err(error) => return Err(draft.keep(error, command())),
        };
        if text == source.text {
            return Ok(None);
        }
        if text.trim().is_empty() {
            let error = CliError::usage("the text is empty; delete the tool with `haft tool delete`");
            return Err(draft.keep(error, command()));
        }
        let stored = match check_unchanged(tool, &source, client).await {
            Ok(()) => store(tool, source.form, text, client).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(data) => return Ok(Some(data)),
            Err(error) if ask_again(&error, context)? => {}
            Err(error) => return Err(draft.keep(error, command())),
        }
    }
}

async fn fetch(tool: &str, client: &Client) -> Result<Source, CliError> {
    let data = client.data(Request::get(format!("/api/tools/{}/source", tool_segment(tool)))).await?;
    let SourceView { text, form, .. } = view::read(&data)?;
    let form = match form {
        SourceForm::Json => Form::Json,
        SourceForm::Yaml => Form::Yaml,
        SourceForm::Skill => Form::Skill,
    };
    Ok(Source { text, form })
}

/// Rejects the edit if the definition was changed in the meantime.
async fn check_unchanged(tool: &str, source: &Source, client: &Client) -> Result<(), CliError> {
    if fetch(tool, client).await?.text == source.text {
        return Ok(());
    }
    let message = format!("the definition of `{tool}` was changed while you edited it");
    Err(CliError::Api(Box::new(ApiError::local(409, "conflict", message))))
}

async fn store(tool: &str, form: Form, text: String, client: &Client) -> Result<Value, CliError> {
    let request = Request::new(Method::PUT, format!("/api/tools/{}", tool_segment(tool)));
    client.data(request.with_body(form.body(text))).await
}
