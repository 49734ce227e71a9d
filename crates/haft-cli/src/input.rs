//! What commands read: files, stdin, and values that must not be seen.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use haft_core::secret::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::error::CliError;

/// The most bytes that are read from a file or from stdin.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The most bytes of a secret.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Reads a text from a file, or from stdin where the path is `-`.
pub(crate) fn read_text(path: &Path) -> Result<String, CliError> {
    let from_stdin = path == Path::new("-");
    let doing = || if from_stdin { "read stdin".to_owned() } else { format!("read `{}`", path.display()) };
    let read = || {
        let mut text = String::new();
        let count = if from_stdin {
            std::io::stdin().lock().take(MAX_BYTES + 1).read_to_string(&mut text)?
        } else {
            std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?
        };
        if count as u64 > MAX_BYTES {
            return Err(std::io::Error::other("it is larger than 64 MiB"));
        }
        Ok(text)
    };
    read().map_err(CliError::io(doing()))
}

/// Reads a secret: from a person without echo, else all of stdin without its last line break.
pub(crate) fn read_secret(prompt: &str) -> Result<Secret, CliError> {
    let text = if std::io::stdin().is_terminal() { ask(prompt)? } else { read_text(Path::new("-"))? };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(CliError::Usage("the value is empty; give it on stdin".to_owned()));
    }
    if text.len() > MAX_SECRET_BYTES {
        return Err(CliError::Usage("the value is larger than 64 KiB".to_owned()));
    }
    Ok(Secret::new(text.to_owned()))
}

fn ask(prompt: &str) -> Result<String, CliError> {
    let doing = "read from the terminal";
    let _quiet = Quiet::new().map_err(CliError::io(doing))?;
    let mut error = std::io::stderr().lock();
    write!(error, "{prompt}: ").and_then(|()| error.flush()).map_err(CliError::io(doing))?;
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    // The person's line break was not echoed.
    let _ = writeln!(error);
    read.map_err(CliError::io(doing))?;
    Ok(line)
}

/// Keeps the terminal from echoing.
struct Quiet(Termios);

impl Quiet {
    fn new() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}
