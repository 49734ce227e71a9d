//! Whether bash can read a text; nothing of it is run.

use std::time::Duration;

use bytes::Bytes;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{NOT_CHECKED, Problem};
use haft_sandbox::{Command, ExitReason, File, Level, Limits, SandboxLayout};

use super::{Account, Processes, refused};

/// The file in which bash finds the text.
const SCRIPT: &str = "script";
/// How long reading may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How much of what bash says is read.
const SAID: usize = 16 * 1024;

/// A text to look at.
pub(crate) struct Reading<'a> {
    pub(crate) text: &'a str,
    /// The field of the definition that holds it.
    pub(crate) field: &'a str,
    /// What it is for people.
    pub(crate) what: &'a str,
    /// Where bash is looked for.
    pub(crate) image: Option<&'a str>,
}

impl Processes {
    /// Looks at the syntax of a text in a definition that is written or checked. Where bash cannot be run at all
    /// that is said: it is no fault of the text.
    pub(crate) async fn examine_bash(&self, reading: &Reading<'_>) -> Vec<Problem> {
        let place = self.sandbox().place(Level::Isolated, None).map_err(|error| refused(&error));
        let found = match place {
            Ok(place) => {
                let _turn = self.turn(Account::Checks).await;
                self.read_bash(place, reading, WITHIN).await
            }
            Err(error) => Err(error),
        };
        found.unwrap_or_else(|error| vec![not_checked(reading.field, &error)])
    }

    /// Lets bash read a text in a place; an error says why it could not. The caller holds a turn.
    pub(crate) async fn read_bash(
        &self,
        place: SandboxLayout,
        reading: &Reading<'_>,
        within: Duration,
    ) -> Result<Vec<Problem>, CallError> {
        let script = place.files().join(SCRIPT);
        let prefix = format!("{}: ", script.display());
        let argv = ["bash".into(), "-n".into(), script.into_os_string()];
        let mut command = Command::new(place, argv).env("PATH", &self.settings().path).env("LANG", "C.UTF-8");
        command.files.push(File { name: SCRIPT, content: Bytes::from(reading.text.to_owned()) });
        command.image = reading.image.map(str::to_owned);
        let wall = within.min(WITHIN);
        command.limits = Limits { wall, cpu: wall, output: SAID, ..self.settings().limits.clone() };
        let finished = self.sandbox().run(command, &mut |_, _| {}).await.map_err(|error| refused(&error))?;
        match finished.ending {
            ExitReason::Exited(0) => Ok(Vec::new()),
            ExitReason::Exited(_) => Ok(vec![first_fault(&finished.stderr.text(), &prefix, reading)]),
            ExitReason::Stopped(limit) => {
                let message =
                    format!("bash met the limit `{}` while it read the {}", limit.as_str(), reading.what);
                Err(CallError::new(ErrorCode::ExecutionFailed, message))
            }
            ExitReason::Signalled(signal) => {
                let message = format!("bash was ended by signal {signal} while it read the {}", reading.what);
                Err(CallError::new(ErrorCode::ExecutionFailed, message))
            }
        }
    }
}

/// Says that the syntax of a field is unknown, and why.
pub(crate) fn not_checked(field: &str, error: &CallError) -> Problem {
    tracing::warn!(%error, field, "the syntax of a definition could not be checked");
    Problem::new(
        field,
        NOT_CHECKED,
        format!("its syntax was not checked, and a fault shows when it is called: {error}"),
    )
}

/// Reads `PREFIX line 3: what is wrong`; further lines repeat the text of the fault.
fn first_fault(said: &str, prefix: &str, reading: &Reading<'_>) -> Problem {
    let fault = said.lines().find_map(|line| {
        let (number, wrong) = line.strip_prefix(prefix)?.strip_prefix("line ")?.split_once(": ")?;
        Some(format!("bash: {wrong} (line {number} of the {})", reading.what))
    });
    let message = fault.unwrap_or_else(|| format!("bash does not understand it: {}", said.trim()));
    Problem::new(reading.field, "syntax", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_told_with_its_line() {
        let reading = Reading { text: "", field: "implementation.body", what: "body", image: None };
        for (said, expected) in [
            (
                "/f/script: line 3: syntax error near unexpected token `fi'\n/f/script: line 3: `fi'\n",
                "bash: syntax error near unexpected token `fi' (line 3 of the body)",
            ),
            ("bash: cannot execute\n", "bash does not understand it: bash: cannot execute"),
        ] {
            let problem = first_fault(said, "/f/script: ", &reading);
            assert_eq!(problem, Problem::new("implementation.body", "syntax", expected));
        }
    }
}
