//! `haft tool edit`: edits the definition of a tool, and keeps the text if it cannot be stored.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use http::Method;
use serde_json::Value;

use super::definition::Form;
use crate::client::{Client, Request, segment};
use crate::context::Context;
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
    context.output.data(&data, |output| {
        output.note(&format!("updated `{}`", view::qualified(&data)));
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
    let mut draft = Draft::new(&source)?;
    loop {
        let edited = draft.open(context).and_then(|()| draft.read());
        let text = match edited {
            Ok(text) => text,
            Err(error) if draft.is_unchanged(&source) => return Err(error),
            Err(error) => return Err(draft.keep(error, tool)),
        };
        if text == source.text {
            return Ok(None);
        }
        if text.trim().is_empty() {
            let error = CliError::usage("the text is empty; delete the tool with `haft tool rm`");
            return Err(draft.keep(error, tool));
        }
        let stored = match check_unchanged(tool, &source, client).await {
            Ok(()) => store(tool, source.form, text, client).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(data) => return Ok(Some(data)),
            Err(error) if is_interactive() && ask_again(&error, context)? => {}
            Err(error) => return Err(draft.keep(error, tool)),
        }
    }
}

async fn fetch(tool: &str, client: &Client) -> Result<Source, CliError> {
    let data = client.data(Request::get(format!("/api/tools/{}/source", segment(tool)))).await?;
    let text = view::text(&data, "text");
    let form = Form::from_name(&view::text(&data, "form")).unwrap_or_else(|| Form::from_text(&text));
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
    let request = Request::new(Method::PUT, format!("/api/tools/{}", segment(tool)));
    client.data(request.with_body(form.body(text))).await
}

fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Prints the error and asks whether to edit again.
fn ask_again(error: &CliError, context: &Context) -> Result<bool, CliError> {
    context.output.error(error);
    let mut stderr = std::io::stderr().lock();
    let mut line = String::new();
    write!(stderr, "Edit again? [Y/n] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| std::io::stdin().read_line(&mut line))
        .map_err(CliError::io("read from the terminal"))?;
    Ok(!line.is_empty() && !line.trim().to_lowercase().starts_with('n'))
}

/// The file that the editor opens.
struct Draft {
    file: Option<tempfile::NamedTempFile>,
    path: PathBuf,
}

impl Draft {
    fn new(source: &Source) -> Result<Self, CliError> {
        let make = || {
            let suffix = format!(".{}", source.form.name());
            let mut file = tempfile::Builder::new().prefix("haft-").suffix(&suffix).tempfile()?;
            file.write_all(source.text.as_bytes())?;
            Ok(file)
        };
        let file = make().map_err(CliError::io("write a temporary file"))?;
        Ok(Self { path: file.path().to_owned(), file: Some(file) })
    }

    #[expect(clippy::disallowed_methods, reason = "the user's own editor, which runs without a sandbox")]
    fn open(&self, context: &Context) -> Result<(), CliError> {
        let configured = ["VISUAL", "EDITOR"].iter().find_map(|name| context.environment.get(name));
        let editor = configured.unwrap_or("vi").to_owned();
        // The variable may contain options, so a shell evaluates it; the path is passed as an argument.
        let status = Command::new("sh")
            .args(["-c", &format!("{editor} \"$1\""), "sh"])
            .arg(&self.path)
            .status()
            .map_err(CliError::io("start the editor"))?;
        if status.success() { Ok(()) } else { Err(CliError::Editor { editor, status }) }
    }

    fn read(&self) -> Result<String, CliError> {
        // Read by path: editors may replace the file.
        input::read_text(Path::new(&self.path))
    }

    fn is_unchanged(&self, source: &Source) -> bool {
        std::fs::read(&self.path).is_ok_and(|content| content == source.text.as_bytes())
    }

    /// Keeps the file and adds its path to the error.
    fn keep(&mut self, error: CliError, tool: &str) -> CliError {
        if let Some(file) = self.file.take() {
            let _ = file.into_temp_path().keep();
        }
        CliError::EditNotStored { error: Box::new(error), path: self.path.clone(), tool: tool.to_owned() }
    }
}
