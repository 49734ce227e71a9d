//! The text of a definition in the user's editor. The file is kept if the text cannot be stored.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::Context;
use crate::error::CliError;
use crate::input;

/// The file that the editor opens.
pub(crate) struct Draft {
    file: Option<tempfile::NamedTempFile>,
    path: PathBuf,
}

impl Draft {
    /// Writes a text to a temporary file with an ending such as `yaml`.
    pub(crate) fn new(text: &str, ending: &str) -> Result<Self, CliError> {
        let make = || {
            let suffix = format!(".{ending}");
            let mut file = tempfile::Builder::new().prefix("haft-").suffix(&suffix).tempfile()?;
            file.write_all(text.as_bytes())?;
            Ok(file)
        };
        let file = make().map_err(CliError::io("write a temporary file"))?;
        Ok(Self { path: file.path().to_owned(), file: Some(file) })
    }

    /// Opens the editor and returns the text.
    pub(crate) fn edit(&self, context: &Context) -> Result<String, CliError> {
        self.open(context)?;
        // Read by path: editors may replace the file.
        input::read_text(Path::new(&self.path))
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

    /// Returns whether the content of the file is equal to a text.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        std::fs::read(&self.path).is_ok_and(|content| content == text.as_bytes())
    }

    /// Keeps the file and adds its path to the error. `command` is the command that stores the text, without its options.
    pub(crate) fn keep(&mut self, error: CliError, command: String) -> CliError {
        if let Some(file) = self.file.take() {
            let _ = file.into_temp_path().keep();
        }
        CliError::EditNotStored { error: Box::new(error), path: self.path.clone(), command }
    }
}

/// Prints an error and asks whether to edit again; without a terminal the answer is no.
pub(crate) fn ask_again(error: &CliError, context: &Context) -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(false);
    }
    context.output.error(error);
    let mut stderr = std::io::stderr().lock();
    let mut line = String::new();
    write!(stderr, "Edit again? [Y/n] ")
        .and_then(|()| stderr.flush())
        .and_then(|()| std::io::stdin().read_line(&mut line))
        .map_err(CliError::io("read from the terminal"))?;
    Ok(!line.is_empty() && !line.trim().to_lowercase().starts_with('n'))
}
