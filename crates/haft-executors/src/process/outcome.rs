//! Converts the end of a process to the outcome of the call.

use std::time::Duration;

use haft_core::call::ProcessRecord;
use haft_core::duration;
use haft_core::executor::CallContext;
use haft_core::implementation::{ExecProgram, Implementation, OutputFormat, ScriptRuntime};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::output::{StreamOutput, last_lines};
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_definition::check;
use haft_sandbox::{CapturedOutput, ExitReason, Limit};
use serde_json::{Value, json};

/// How many bytes of each stream are stored in the record of a call.
const MAX_RECORDED_BYTES: usize = 16 * 1024;

/// The signal of a program that writes to a pipe without a reader.
const SIGPIPE: i32 = 13;

/// How a process ended, with its output.
pub(crate) struct ProcessEnd<'a> {
    pub(crate) ending: ExitReason,
    pub(crate) stdout: &'a CapturedOutput,
    pub(crate) stderr: &'a CapturedOutput,
    /// The definition, for its limits and its output format.
    pub(crate) spec: &'a ToolSpec,
    /// The folder of the sandbox files, whose path is removed from the output.
    pub(crate) files: &'a str,
    /// Secrets that the tool names but that do not exist: a likely reason of a failure.
    pub(crate) missing: &'a [String],
}

/// Where the value of a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueSource {
    /// The standard output.
    Stdout,
    /// Another channel.
    Separate,
}

/// Adds the record of the process to the call and returns the outcome.
pub(crate) fn outcome(call: &CallContext, end: &ProcessEnd<'_>, source: ValueSource) -> Outcome {
    let secrets = call.exposed();
    let stderr = redacted(end.stderr, end.files, &secrets);
    let ending = if is_closed_pipe(end) { ExitReason::Exited(0) } else { end.ending };
    // The value of a successful call is not recorded twice.
    let stdout = match ending {
        ExitReason::Exited(0) => String::new(),
        _ => redacted(end.stdout, end.files, &secrets),
    };
    call.report_process(record(end, &stdout, &stderr));
    match ending {
        ExitReason::Exited(0) if source == ValueSource::Separate => Ok(Value::Null),
        ExitReason::Exited(0) => {
            let printed = StreamOutput { bytes: &end.stdout.bytes, left_out: end.stdout.left_out };
            let max_bytes = end.spec.execution.limits.max_response_bytes;
            match end.spec.implementation.output_format() {
                OutputFormat::Auto => Ok(printed.value(max_bytes, &secrets)),
                OutputFormat::Text => Ok(printed.text_value(max_bytes, &secrets)),
                OutputFormat::Json => printed.json().ok_or_else(|| {
                    let message =
                        "the output is not one valid JSON document; remove `output: json` to accept text";
                    CallError::new(ErrorCode::InvalidOutput, message)
                }),
            }
        }
        ExitReason::Exited(code) => {
            let mut text = last_lines(&stderr);
            let mut details = json!({"exit_code": code, "stderr": text});
            if text.is_empty() && !stdout.trim().is_empty() {
                text = last_lines(&stdout);
                details = json!({"exit_code": code, "stderr": "", "stdout": text});
            }
            let message = match text.as_str() {
                "" => format!("exit code {code}"),
                text => format!("exit code {code}: {text}"),
            };
            Err(failed(message, end).with_details(details))
        }
        ExitReason::Signalled(signal) => {
            let message = format!("the process was killed by signal {signal}{}", explain_signal(signal));
            Err(failed(message, end).with_details(json!({"signal": signal, "stderr": last_lines(&stderr)})))
        }
        ExitReason::Stopped(limit) => Err(stopped(limit, allowed(call))),
    }
}

/// Returns whether bash reports no failure but a program whose reader stopped early, as in `yes | head -1`: with
/// `pipefail` that is the status of the whole pipe. With `errexit` the rest of a script may not have run.
fn is_closed_pipe(end: &ProcessEnd<'_>) -> bool {
    let script = match &end.spec.implementation {
        Implementation::Exec(exec) => match &exec.program {
            ExecProgram::Command(command) => command,
            ExecProgram::Argv(_) => return false,
        },
        Implementation::Script(script) if script.runtime == ScriptRuntime::Bash => &script.body,
        _ => return false,
    };
    end.ending == ExitReason::Signalled(SIGPIPE) && !sets_errexit(script)
}

/// Returns whether a script sets `errexit`, in any of its notations.
fn sets_errexit(script: &str) -> bool {
    let words: Vec<&str> = script.split(|c: char| c.is_whitespace() || c == ';').collect();
    let is_flag = |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('e');
    words.contains(&"errexit") || words.windows(2).any(|pair| matches!(pair, ["set", flag] if is_flag(flag)))
}

/// Returns the timeout of the call.
fn allowed(call: &CallContext) -> Duration {
    let time = call.deadline.saturating_duration_since(call.started);
    let millis = time.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// Returns the text of a stream without paths of the sandbox and without secrets.
fn redacted(stream: &CapturedOutput, files: &str, secrets: &[Secret]) -> String {
    let text = stream.text().replace(&format!("{files}/"), "");
    StreamOutput { bytes: text.as_bytes(), left_out: stream.left_out }.redacted(secrets)
}

fn failed(message: String, end: &ProcessEnd<'_>) -> CallError {
    let mut error = CallError::new(ErrorCode::ExecutionFailed, message);
    if let [first, ..] = end.missing {
        error.message = format!(
            "{} (hint: secret `{first}` is not stored; store it with `haft secret set {first}`)",
            error.message
        );
    } else if let Some(hint) = network_hint(end.spec, &error.message) {
        error.message = format!("{} ({hint})", error.message);
    }
    error
}

/// What programs print if a process without network access tries to connect.
const NETWORK_FAILURES: [&str; 7] = [
    "could not resolve host",
    "name resolution",
    "name or service not known",
    "network is unreachable",
    "failed to resolve",
    "unable to resolve host",
    "getaddrinfo",
];

/// Returns a hint if a tool without network access probably failed for that reason.
pub(crate) fn network_hint(spec: &ToolSpec, message: &str) -> Option<String> {
    if spec.network {
        return None;
    }
    let message = message.to_lowercase();
    if NETWORK_FAILURES.iter().any(|failure| message.contains(failure)) {
        return Some(
            "hint: the tool has no network access; set `network: true` in its definition".to_owned(),
        );
    }
    // A silent program such as `curl -s` prints nothing.
    let program = check::network_program(spec)?;
    Some(format!(
        "hint: it uses `{program}`, but the tool has no network access; set `network: true` in its definition"
    ))
}

/// Returns the name of a signal and its usual cause, for signals that people meet.
const fn explain_signal(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL): illegal instruction",
        6 => " (SIGABRT): the program aborted itself",
        8 => " (SIGFPE): arithmetic error such as a division by zero",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV): invalid memory access",
        13 => " (SIGPIPE): it wrote to a pipe whose reader had ended, as in `yes | head -1` with `pipefail`",
        15 => " (SIGTERM)",
        31 => " (SIGSYS): a system call that the sandbox does not allow",
        _ => "",
    }
}

fn stopped(limit: Limit, allowed: Duration) -> CallError {
    let (code, message) = match limit {
        Limit::Wall => {
            (ErrorCode::Timeout, format!("the process timed out after {}", duration::format(allowed)))
        }
        Limit::Cpu => (ErrorCode::ExecutionFailed, "the process exceeded its CPU time limit".to_owned()),
        Limit::Memory => (ErrorCode::ExecutionFailed, "the process exceeded its memory limit".to_owned()),
        Limit::FileSize => {
            (ErrorCode::ExecutionFailed, "the process exceeded its file size limit".to_owned())
        }
        Limit::Output => (ErrorCode::TooLarge, "the process exceeded its output limit".to_owned()),
    };
    CallError::new(code, message).with_details(json!({"limit": limit.as_str()}))
}

fn record(end: &ProcessEnd<'_>, stdout: &str, stderr: &str) -> ProcessRecord {
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

/// Returns the last part of a text, as much as is recorded.
fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(MAX_RECORDED_BYTES);
    let start = (start..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(0);
    text.get(start..).unwrap_or_default()
}
