//! Reads files, stdin, and secrets from the terminal.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use haft_core::secret::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::error::CliError;

/// The largest file or standard input.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The largest secret.
const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Reads a text from a file, or from stdin if the path is `-`.
pub(crate) fn read_text(path: &Path) -> Result<String, CliError> {
    let from_stdin = path == Path::new("-");
    let operation =
        || if from_stdin { "read stdin".to_owned() } else { format!("read `{}`", path.display()) };
    let read = || {
        let mut text = String::new();
        let count = if from_stdin {
            std::io::stdin().lock().take(MAX_BYTES + 1).read_to_string(&mut text)?
        } else {
            std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?
        };
        if count as u64 > MAX_BYTES {
            return Err(std::io::Error::other("larger than 64 MiB"));
        }
        Ok(text)
    };
    read().map_err(CliError::io(operation()))
}

/// Reads a secret: from a terminal without echo, otherwise from stdin without the final line break.
pub(crate) fn read_secret(prompt: &str) -> Result<Secret, CliError> {
    let text = if std::io::stdin().is_terminal() { prompt_for(prompt)? } else { read_text(Path::new("-"))? };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(CliError::usage("the secret is empty; pass its value on standard input"));
    }
    if text.len() > MAX_SECRET_BYTES {
        return Err(CliError::usage("the secret exceeds the limit of 64 KiB"));
    }
    Ok(Secret::new(text.to_owned()))
}

/// Asks a question on the terminal; without a terminal, the answer is yes.
pub(crate) fn confirm(question: &str) -> Result<bool, CliError> {
    if !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    let operation = "read from the terminal";
    let mut error = std::io::stderr().lock();
    write!(error, "{question} [y/N] ").and_then(|()| error.flush()).map_err(CliError::io(operation))?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(CliError::io(operation))?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks a question on the terminal; without a terminal the answer is no.
pub(crate) fn confirm_explicitly(question: &str) -> Result<bool, CliError> {
    Ok(std::io::stdin().is_terminal() && confirm(question)?)
}

fn prompt_for(prompt: &str) -> Result<String, CliError> {
    let operation = "read from the terminal";
    let _echo_off = EchoOff::new().map_err(CliError::io(operation))?;
    let mut error = std::io::stderr().lock();
    write!(error, "{prompt}: ").and_then(|()| error.flush()).map_err(CliError::io(operation))?;
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    // The user's line break was not echoed.
    let _ = writeln!(error);
    read.map_err(CliError::io(operation))?;
    Ok(line)
}

/// Turns off the echo of the terminal until dropped.
struct EchoOff(Termios);

impl EchoOff {
    fn new() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Parses `NAME=VALUE`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').filter(|(name, _)| !name.is_empty());
    split
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "expected NAME=VALUE".to_owned())
}
