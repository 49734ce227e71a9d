//! `haft tool edit`: changes the definition of a tool in an editor, and never loses what was typed.

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

/// Change the definition of a tool in your editor
///
/// The editor is `$VISUAL`, else `$EDITOR`, else `vi`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool
    tool: String,
    /// Take the text from this file instead of an editor
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let answer = edit(&arguments, context, &client).await;
    client.close().await;
    let Some(data) = answer? else {
        context.output.note("nothing changed");
        return Ok(());
    };
    context.output.data(&data, |output| {
        output.note(&format!("changed `{}`", view::qualified(&data)));
        Ok(())
    })
}

/// The text of a definition as the server has it.
struct Source {
    text: String,
    form: Form,
}

async fn edit(arguments: &Arguments, context: &Context, client: &Client) -> Result<Option<Value>, CliError> {
    let tool = &arguments.tool;
    let source = fetch(tool, client).await?;
    if let Some(file) = &arguments.from {
        let text = input::read_text(file)?;
        let form = Form::of_path(Path::new(file)).unwrap_or_else(|| Form::of_text(&text));
        return store(tool, form, text, client).await.map(Some);
    }
    let mut draft = Draft::new(&source)?;
    loop {
        let edited = draft.open(context).and_then(|()| draft.read());
        let text = match edited {
            Ok(text) => text,
            Err(error) if draft.is_untouched(&source) => return Err(error),
            Err(error) => return Err(draft.keep(error, tool)),
        };
        if text == source.text {
            return Ok(None);
        }
        if text.trim().is_empty() {
            let error =
                CliError::Usage("the text is empty; to remove the tool, use `haft tool rm`".to_owned());
            return Err(draft.keep(error, tool));
        }
        let stored = match unchanged(tool, &source, client).await {
            Ok(()) => store(tool, source.form, text, client).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(data) => return Ok(Some(data)),
            Err(error) if can_ask() && again(&error, context)? => {}
            Err(error) => return Err(draft.keep(error, tool)),
        }
    }
}

async fn fetch(tool: &str, client: &Client) -> Result<Source, CliError> {
    let data = client.data(Request::get(format!("/api/tools/{}/source", segment(tool)))).await?;
    let text = view::text(&data, "text");
    let form = Form::of_name(&view::text(&data, "form")).unwrap_or_else(|| Form::of_text(&text));
    Ok(Source { text, form })
}

/// Refuses to write over a change that someone else made meanwhile.
async fn unchanged(tool: &str, source: &Source, client: &Client) -> Result<(), CliError> {
    if fetch(tool, client).await?.text == source.text {
        return Ok(());
    }
    Err(CliError::Api(Box::new(ApiError {
        status: 409,
        code: "conflict".to_owned(),
        message: format!("the definition of `{tool}` was changed while you edited it"),
        details: Value::Null,
        request_id: None,
    })))
}

async fn store(tool: &str, form: Form, text: String, client: &Client) -> Result<Value, CliError> {
    let request = Request::new(Method::PUT, format!("/api/tools/{}", segment(tool)));
    client.data(request.with_body(form.body(text))).await
}

fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows the error and asks whether to edit again.
fn again(error: &CliError, context: &Context) -> Result<bool, CliError> {
    context.output.error(error);
    let mut stderr = std::io::stderr().lock();
    let mut line = String::new();
    write!(stderr, "Edit again? [Y/n] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| std::io::stdin().read_line(&mut line))
        .map_err(CliError::io("ask"))?;
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

    #[expect(clippy::disallowed_methods, reason = "the person's own editor, not a tool; nothing confines it")]
    fn open(&self, context: &Context) -> Result<(), CliError> {
        let named = ["VISUAL", "EDITOR"].iter().find_map(|name| context.environment.get(name));
        let editor = named.unwrap_or("vi").to_owned();
        // The variable may hold flags, so that a shell has to read it; the path is passed, never spliced.
        let status = Command::new("sh")
            .args(["-c", &format!("{editor} \"$1\""), "sh"])
            .arg(&self.path)
            .status()
            .map_err(CliError::io("start the editor"))?;
        if status.success() { Ok(()) } else { Err(CliError::Editor { editor, status }) }
    }

    fn read(&self) -> Result<String, CliError> {
        // By name: editors replace the file.
        input::read_text(Path::new(&self.path))
    }

    fn is_untouched(&self, source: &Source) -> bool {
        std::fs::read(&self.path).is_ok_and(|content| content == source.text.as_bytes())
    }

    /// Keeps the file and says where it is.
    fn keep(&mut self, error: CliError, tool: &str) -> CliError {
        if let Some(file) = self.file.take() {
            // The handle is dropped; the file stays.
            let _ = file.into_temp_path().keep();
        }
        CliError::Kept { error: Box::new(error), path: self.path.clone(), tool: tool.to_owned() }
    }
}
