//! From what a process left to the outcome of the call.

use std::time::Duration;

use haft_core::call::ProcessRecord;
use haft_core::duration;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::output::{StreamOutput, last_lines};
use haft_core::secret::Secret;
use haft_sandbox::{CapturedOutput, ExitReason, Limit};
use serde_json::{Value, json};

/// How much of each stream is kept with a call.
const KEPT: usize = 16 * 1024;

/// How a process ended, and what it said.
pub(crate) struct End<'a> {
    pub(crate) ending: ExitReason,
    pub(crate) stdout: &'a CapturedOutput,
    pub(crate) stderr: &'a CapturedOutput,
    /// The most bytes that its value may have.
    pub(crate) most: u64,
    /// The folder whose path is of no interest to anyone.
    pub(crate) files: &'a str,
    /// Secrets that the tool names and that are not stored: a likely reason of a failure.
    pub(crate) missing: &'a [String],
}

/// Which streams make the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// The standard output.
    Output,
    /// Nothing: the value came another way.
    Apart,
}

/// Keeps what the process left with the call, and says what the call came to.
pub(crate) fn outcome(call: &CallContext, end: &End<'_>, spoken: Spoken) -> Outcome {
    let secrets = call.exposed();
    let stderr = told(end.stderr, end.files, &secrets);
    // Of a call that succeeds it is the value.
    let stdout = match end.ending {
        ExitReason::Exited(0) => String::new(),
        _ => told(end.stdout, end.files, &secrets),
    };
    call.report_process(record(end, &stdout, &stderr));
    match end.ending {
        ExitReason::Exited(0) if spoken == Spoken::Apart => Ok(Value::Null),
        ExitReason::Exited(0) => {
            let printed = StreamOutput { bytes: &end.stdout.bytes, left_out: end.stdout.left_out };
            Ok(printed.value(end.most, &secrets))
        }
        ExitReason::Exited(code) => {
            let mut said = last_lines(&stderr);
            let mut details = json!({"exit_code": code, "stderr": said});
            if said.is_empty() && !stdout.trim().is_empty() {
                said = last_lines(&stdout);
                details = json!({"exit_code": code, "stderr": "", "stdout": said});
            }
            let message = match said.as_str() {
                "" => format!("exit code {code}"),
                said => format!("exit code {code}: {said}"),
            };
            Err(failed(message, end).with_details(details))
        }
        ExitReason::Signalled(signal) => {
            let message = format!("the process was ended by signal {signal}");
            Err(failed(message, end).with_details(json!({"signal": signal, "stderr": last_lines(&stderr)})))
        }
        ExitReason::Stopped(limit) => Err(stopped(limit, allowed(call))),
    }
}

/// Returns how long the call was allowed to take, whoever said so.
fn allowed(call: &CallContext) -> Duration {
    let time = call.deadline.saturating_duration_since(call.started);
    let millis = time.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// Returns a stream for people: without our paths, and without any secret.
fn told(stream: &CapturedOutput, files: &str, secrets: &[Secret]) -> String {
    let text = stream.text().replace(&format!("{files}/"), "");
    StreamOutput { bytes: text.as_bytes(), left_out: stream.left_out }.redacted(secrets)
}

fn failed(message: String, end: &End<'_>) -> CallError {
    let mut error = CallError::new(ErrorCode::ExecutionFailed, message);
    if let [first, ..] = end.missing {
        error.message = format!(
            "{} (hint: the tool names `{first}`, and there is no credential of that name)",
            error.message
        );
    }
    error
}

fn stopped(limit: Limit, allowed: Duration) -> CallError {
    let (code, message) = match limit {
        Limit::Wall => {
            (ErrorCode::Timeout, format!("the process took longer than {}", duration::format(allowed)))
        }
        Limit::Cpu => {
            (ErrorCode::ExecutionFailed, "the process used more processor time than it may".to_owned())
        }
        Limit::Memory => (ErrorCode::ExecutionFailed, "the process used more memory than it may".to_owned()),
        Limit::FileSize => {
            (ErrorCode::ExecutionFailed, "the process wrote a file that is larger than it may be".to_owned())
        }
        Limit::Output => (ErrorCode::TooLarge, "the process wrote far more output than is kept".to_owned()),
    };
    CallError::new(code, message).with_details(json!({"limit": limit.as_str()}))
}

fn record(end: &End<'_>, stdout: &str, stderr: &str) -> ProcessRecord {
    let mut record = ProcessRecord { left_out: end.stdout.left_out, ..ProcessRecord::default() };
    match end.ending {
        ExitReason::Exited(code) => record.exit_code = Some(code),
        ExitReason::Signalled(signal) => record.signal = Some(signal),
        ExitReason::Stopped(limit) => record.limit = Some(limit.as_str().to_owned()),
    }
    tail(stdout).clone_into(&mut record.stdout);
    tail(stderr).clone_into(&mut record.stderr);
    record
}

/// Returns the end of a text, as much as is kept of it.
fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(KEPT);
    let start = (start..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(0);
    text.get(start..).unwrap_or_default()
}
