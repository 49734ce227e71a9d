//! From what a process left to the outcome of the call.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use haft_core::call::ProcessRecord;
use haft_core::duration;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_sandbox::{Captured, Ending, Limit};
use serde_json::{Value, json};

/// How much of the standard error is kept with a call.
const KEPT_STDERR: usize = 16 * 1024;
/// How many of its last lines say why a process failed.
const LAST_LINES: usize = 20;

/// How a process ended, and what it said.
pub(crate) struct End<'a> {
    pub(crate) ending: Ending,
    pub(crate) stdout: &'a Captured,
    pub(crate) stderr: &'a Captured,
    /// How long it was allowed to take.
    pub(crate) allowed: Duration,
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
    let stderr = end.stderr.text().replace(&format!("{}/", end.files), "");
    call.report_process(record(end, &stderr));
    match end.ending {
        Ending::Exited(0) if spoken == Spoken::Apart => Ok(Value::Null),
        Ending::Exited(0) => Ok(value_of(end.stdout)),
        Ending::Exited(code) => {
            let mut message = format!("exit code {code}");
            let said = last_lines(&stderr);
            if !said.is_empty() {
                message = format!("{message}: {said}");
            }
            Err(failed(message, end).with_details(json!({"exit_code": code, "stderr": said})))
        }
        Ending::Signalled(signal) => {
            let message = format!("the process was ended by signal {signal}");
            Err(failed(message, end).with_details(json!({"signal": signal, "stderr": last_lines(&stderr)})))
        }
        Ending::Stopped(limit) => Err(stopped(limit, end.allowed)),
    }
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

fn record(end: &End<'_>, stderr: &str) -> ProcessRecord {
    let mut record = ProcessRecord { left_out: end.stdout.left_out, ..ProcessRecord::default() };
    match end.ending {
        Ending::Exited(code) => record.exit_code = Some(code),
        Ending::Signalled(signal) => record.signal = Some(signal),
        Ending::Stopped(limit) => record.limit = Some(limit.as_str().to_owned()),
    }
    let start = stderr.len().saturating_sub(KEPT_STDERR);
    let start = (start..=stderr.len()).find(|index| stderr.is_char_boundary(*index)).unwrap_or(0);
    stderr.get(start..).unwrap_or_default().clone_into(&mut record.stderr);
    record
}

/// Returns the value that an output means: JSON where it is one document, else text. What is no text at all is
/// spelled in base64; a cut is marked.
pub(crate) fn value_of(stdout: &Captured) -> Value {
    if stdout.left_out == 0 {
        if let Ok(value) = serde_json::from_slice(&stdout.bytes) {
            return value;
        }
        if stdout.bytes.contains(&0) {
            let content = base64::engine::general_purpose::STANDARD.encode(&stdout.bytes);
            return json!({"encoding": "base64", "bytes": stdout.bytes.len(), "content": content});
        }
    }
    let text = stdout.text();
    let text: Cow<'_, str> = match stdout.left_out {
        0 => text.strip_suffix('\n').map_or(text.clone(), |text| text.to_owned().into()),
        left_out => format!("{text}\n[output cut here: {left_out} bytes left out]").into(),
    };
    Value::String(text.into_owned())
}

fn last_lines(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let start = lines.len().saturating_sub(LAST_LINES);
    let text = lines.get(start..).unwrap_or_default().join("\n");
    // The end says more than the beginning.
    let surplus = text.chars().count().saturating_sub(2000);
    text.chars().skip(surplus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(bytes: &[u8], left_out: u64) -> Captured {
        Captured { bytes: bytes.to_vec(), left_out }
    }

    #[test]
    fn an_output_is_json_where_it_is_one_document() {
        for (bytes, expected) in [
            (b"" as &[u8], json!("")),
            (b"text\n", json!("text")),
            (b"two\n\n", json!("two\n")),
            (b"{\"a\": 1}\n", json!({"a": 1})),
            (b" 42 \n", json!(42)),
            (b"{\"a\": 1}\n{\"a\": 2}\n", json!("{\"a\": 1}\n{\"a\": 2}")),
            (b"null", json!(null)),
            (b"half \xc3", json!("half \u{fffd}")),
            (b"\x1b[31mred\x07", json!("\u{1b}[31mred\u{7}")),
            (b"a\0b", json!({"encoding": "base64", "bytes": 3, "content": "YQBi"})),
        ] {
            assert_eq!(value_of(&captured(bytes, 0)), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_cut_is_marked_and_never_taken_for_json() {
        let value = value_of(&captured(b"[1]", 7));
        assert_eq!(value, json!("[1]\n[output cut here: 7 bytes left out]"));
    }

    #[test]
    fn the_last_lines_are_kept() {
        let long = (0..100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        assert_eq!(last_lines(&long).lines().next(), Some("line 80"));
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        assert_eq!(last_lines(&"ä".repeat(5000)).chars().count(), 2000);
    }
}
