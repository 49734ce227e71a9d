//! Checks the syntax of bash scripts without running them.

use std::time::Duration;

use bytes::Bytes;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{NOT_CHECKED, Problem};
use haft_sandbox::{Command, ExitReason, File, Level, Limit, Limits, SandboxLayout};

use super::{Account, Processes, sandbox_error};

/// The name of the script file.
const SCRIPT: &str = "script";
/// The timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// How much output of bash is read.
const MAX_OUTPUT: usize = 16 * 1024;

/// A script to check.
pub(crate) struct BashSource<'a> {
    pub(crate) text: &'a str,
    /// The field of the definition that holds it.
    pub(crate) field: &'a str,
    /// What messages call it: `body`, `command`.
    pub(crate) what: &'a str,
    /// The container image with bash, if not the host.
    pub(crate) image: Option<&'a str>,
}

impl Processes {
    /// Checks the syntax of a script in a definition. If bash cannot be run, the problem says that it was not checked.
    pub(crate) async fn examine_bash(&self, source: &BashSource<'_>) -> Vec<Problem> {
        let place = self.sandbox().place(Level::Isolated, None).map_err(|error| sandbox_error(&error));
        let found = match place {
            Ok(place) => {
                let _slot = self.slot(Account::Checks).await;
                self.check_bash(place, source, CHECK_TIMEOUT).await
            }
            Err(error) => Err(error),
        };
        found.unwrap_or_else(|error| vec![not_checked(source.field, &error)])
    }

    /// Checks a script in a sandbox. An error means that bash could not be run. The caller holds a slot.
    pub(crate) async fn check_bash(
        &self,
        place: SandboxLayout,
        source: &BashSource<'_>,
        within: Duration,
    ) -> Result<Vec<Problem>, CallError> {
        let script = place.files().join(SCRIPT);
        let prefix = format!("{}: ", script.display());
        let argv = ["bash".into(), "-n".into(), script.into_os_string()];
        let mut command = Command::new(place, argv).env("PATH", &self.settings().path).env("LANG", "C.UTF-8");
        command.files.push(File { name: SCRIPT, content: Bytes::from(source.text.to_owned()) });
        command.image = source.image.map(str::to_owned);
        let wall = within.min(CHECK_TIMEOUT);
        command.limits = Limits { wall, cpu: wall, output: MAX_OUTPUT, ..self.settings().limits.clone() };
        let finished =
            self.sandbox().run(command, &mut |_, _| {}).await.map_err(|error| sandbox_error(&error))?;
        match finished.ending {
            ExitReason::Exited(0) => Ok(Vec::new()),
            ExitReason::Exited(_) => Ok(vec![first_error(&finished.stderr.text(), &prefix, source)]),
            ExitReason::Stopped(limit) => {
                let message = format!(
                    "bash exceeded the limit `{}` while checking the {}",
                    limit.as_str(),
                    source.what
                );
                let code = if limit == Limit::Wall { ErrorCode::Timeout } else { ErrorCode::ExecutionFailed };
                Err(CallError::new(code, message))
            }
            ExitReason::Signalled(signal) => {
                let message =
                    format!("bash was killed by signal {signal} while checking the {}", source.what);
                Err(CallError::new(ErrorCode::ExecutionFailed, message))
            }
        }
    }
}

/// Returns the problem of a field whose syntax could not be checked.
pub(crate) fn not_checked(field: &str, error: &CallError) -> Problem {
    tracing::warn!(%error, field, "syntax check failed");
    Problem::new(
        field,
        NOT_CHECKED,
        format!("syntax not checked; errors show only when the tool is called: {error}"),
    )
}

/// Parses `PREFIX line 3: message`; further lines repeat the source.
fn first_error(output: &str, prefix: &str, source: &BashSource<'_>) -> Problem {
    let error = output.lines().find_map(|line| {
        let (number, message) = line.strip_prefix(prefix)?.strip_prefix("line ")?.split_once(": ")?;
        Some(format!("bash: {message} (line {number} of the {})", source.what))
    });
    let message = error.unwrap_or_else(|| format!("rejected by bash: {}", output.trim()));
    Problem::new(source.field, "syntax", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_reported_with_its_line() {
        let source = BashSource { text: "", field: "implementation.body", what: "body", image: None };
        for (output, expected) in [
            (
                "/f/script: line 3: syntax error near unexpected token `fi'\n/f/script: line 3: `fi'\n",
                "bash: syntax error near unexpected token `fi' (line 3 of the body)",
            ),
            ("bash: cannot execute\n", "rejected by bash: bash: cannot execute"),
        ] {
            let problem = first_error(output, "/f/script: ", &source);
            assert_eq!(problem, Problem::new("implementation.body", "syntax", expected));
        }
    }
}
