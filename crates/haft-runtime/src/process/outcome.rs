//! From what a process left to the outcome of the call.

use std::time::Duration;

use base64::Engine as _;
use haft_core::call::ProcessRecord;
use haft_core::duration;
use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::secret::{Secret, halved_at_end, halved_at_start, scrub_text};
use haft_sandbox::{Captured, Ending, Limit};
use serde_json::{Value, json};

/// How much of each stream is kept with a call.
const KEPT: usize = 16 * 1024;
/// How many of the last lines say why a process failed.
const LAST_LINES: usize = 20;
/// What the mark of a cut and the quotes of a text take at most.
const MARK: usize = 80;
/// What the names and numbers around bytes in base64 take at most.
const AROUND_BYTES: usize = 128;

/// How a process ended, and what it said.
pub(crate) struct End<'a> {
    pub(crate) ending: Ending,
    pub(crate) stdout: &'a Captured,
    pub(crate) stderr: &'a Captured,
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
        Ending::Exited(0) => String::new(),
        _ => told(end.stdout, end.files, &secrets),
    };
    call.report_process(record(end, &stdout, &stderr));
    match end.ending {
        Ending::Exited(0) if spoken == Spoken::Apart => Ok(Value::Null),
        Ending::Exited(0) => Ok(value_of(end.stdout, end.most, &secrets)),
        Ending::Exited(code) => {
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
        Ending::Signalled(signal) => {
            let message = format!("the process was ended by signal {signal}");
            Err(failed(message, end).with_details(json!({"signal": signal, "stderr": last_lines(&stderr)})))
        }
        Ending::Stopped(limit) => Err(stopped(limit, allowed(call))),
    }
}

/// Returns how long the call was allowed to take, whoever said so.
fn allowed(call: &CallContext) -> Duration {
    let time = call.deadline.saturating_duration_since(call.started);
    let millis = time.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// Returns a stream for people: without our paths, and without any secret, also not half of one where it was cut.
fn told(stream: &Captured, files: &str, secrets: &[Secret]) -> String {
    let mut text = stream.text().replace(&format!("{files}/"), "");
    scrub_text(&mut text, secrets);
    if stream.left_out > 0 {
        text.truncate(text.len() - halved_at_end(&text, secrets));
        text.drain(..halved_at_start(&text, secrets));
    }
    text
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
        Ending::Exited(code) => record.exit_code = Some(code),
        Ending::Signalled(signal) => record.signal = Some(signal),
        Ending::Stopped(limit) => record.limit = Some(limit.as_str().to_owned()),
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

/// Returns the bytes without the secrets that stand in them.
fn without(bytes: &[u8], secrets: &[Secret]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for secret in secrets.iter().map(|secret| secret.expose().as_bytes()).filter(|secret| secret.len() >= 4) {
        let mut from = 0;
        while let Some(found) =
            bytes.get(from..).and_then(|rest| rest.windows(secret.len()).position(|window| window == secret))
        {
            let start = from + found;
            bytes.splice(start..start + secret.len(), *b"***");
            from = start + 3;
        }
    }
    bytes
}

/// Returns the value that an output means: JSON where it is one document, else text. What is no text at all is
/// spelled in base64. It has at most so many bytes; a cut is marked.
fn value_of(stdout: &Captured, most: u64, secrets: &[Secret]) -> Value {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if stdout.left_out == 0
        && let Some(value) = document(&stdout.bytes)
    {
        return value;
    }
    if stdout.bytes.contains(&0) {
        // In base64 no one would find a secret any more.
        let masked = Captured { bytes: without(&stdout.bytes, secrets), left_out: stdout.left_out };
        return in_base64(&masked, most);
    }
    if stdout.left_out == 0 {
        let text = stdout.text();
        let text = text.strip_suffix('\n').unwrap_or(&text);
        if text.len() + 2 <= most {
            return Value::String(text.to_owned());
        }
    }
    let (mut text, taken) = beginning(&stdout.bytes, most.saturating_sub(MARK));
    scrub_text(&mut text, secrets);
    let halved = halved_at_end(&text, secrets);
    text.truncate(text.len() - halved);
    let left_out = stdout.left_out + (stdout.bytes.len() - taken + halved) as u64;
    Value::String(format!("{text}\n[output cut here: {left_out} bytes left out]"))
}

/// Reads one JSON document. A number that JSON would spell in another way stays what the tool has printed: `1.10`
/// may be a price or a version, and a long number would lose its last digits.
fn document(bytes: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let changes = value.is_number() && value.to_string().as_bytes() != bytes.trim_ascii();
    (!changes).then_some(value)
}

fn in_base64(stdout: &Captured, most: usize) -> Value {
    let room = most.saturating_sub(AROUND_BYTES) / 4 * 3;
    let kept = stdout.bytes.get(..room).unwrap_or(&stdout.bytes);
    let content = base64::engine::general_purpose::STANDARD.encode(kept);
    match stdout.left_out + (stdout.bytes.len() - kept.len()) as u64 {
        0 => json!({"encoding": "base64", "bytes": kept.len(), "content": content}),
        left_out => {
            json!({"encoding": "base64", "bytes": kept.len(), "content": content, "left_out": left_out})
        }
    }
}

/// Returns at most so many bytes of text, and of how many bytes they were made: what is no text is replaced, which
/// takes more room than it had.
fn beginning(bytes: &[u8], most: usize) -> (String, usize) {
    let (mut text, mut taken) = (String::with_capacity(bytes.len().min(most)), 0);
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if text.len() + letter.len_utf8() > most {
                return (text, taken);
            }
            text.push(letter);
            taken += letter.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            if text.len() + char::REPLACEMENT_CHARACTER.len_utf8() > most {
                return (text, taken);
            }
            text.push(char::REPLACEMENT_CHARACTER);
            taken += chunk.invalid().len();
        }
    }
    (text, taken)
}

/// Returns the last lines of a stream, harmless to show.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let start = lines.len().saturating_sub(LAST_LINES);
    let text = lines.get(start..).unwrap_or_default().join("\n");
    // The end says more than the beginning.
    let surplus = text.chars().count().saturating_sub(2000);
    text.chars().skip(surplus).map(harmless).collect()
}

fn harmless(letter: char) -> char {
    if letter.is_control() && !matches!(letter, '\n' | '\t') { char::REPLACEMENT_CHARACTER } else { letter }
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
            (b"-1.5\n", json!(-1.5)),
            (b"1.10\n", json!("1.10")),
            (b"1e3\n", json!("1e3")),
            (b"98765432109876543210\n", json!("98765432109876543210")),
            (b"18446744073709551615", json!(u64::MAX)),
            (b"{\"a\": 1}\n{\"a\": 2}\n", json!("{\"a\": 1}\n{\"a\": 2}")),
            (b"null", json!(null)),
            (b"half \xc3", json!("half \u{fffd}")),
            (b"\x1b[31mred\x07", json!("\u{1b}[31mred\u{7}")),
            (b"a\0b", json!({"encoding": "base64", "bytes": 3, "content": "YQBi"})),
        ] {
            let value = value_of(&captured(bytes, 0), 1000, &[]);
            assert_eq!(value, expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_cut_is_marked_and_never_taken_for_json() {
        let value = value_of(&captured(b"[1]", 7), 1000, &[]);
        assert_eq!(value, json!("[1]\n[output cut here: 7 bytes left out]"));
        let value = value_of(&captured(b"a\0b", 7), 1000, &[]);
        assert_eq!(value, json!({"encoding": "base64", "bytes": 3, "content": "YQBi", "left_out": 7}));
    }

    #[test]
    fn a_value_never_has_more_than_it_may() {
        for (bytes, left_out) in [
            (vec![b'x'; 1000], u64::MAX / 2),
            (vec![b'x'; 1000], 0),
            (vec![0xff; 1000], 1),
            (vec![0xff; 400], 0),
            ("ä".repeat(500).into_bytes(), 1),
            (vec![0; 1000], 1),
            (vec![0; 900], 0),
            (vec![b'9'; 1000], 0),
        ] {
            let value = value_of(&captured(&bytes, left_out), 1000, &[]);
            let size = value.to_string().len();
            assert!((700..=1000).contains(&size), "{size}: {value}");
        }
        let value = value_of(&captured(&[0xff; 400], 0), 1000, &[]);
        let expected = format!("{}\n[output cut here: 94 bytes left out]", "\u{fffd}".repeat(306));
        assert_eq!(value, json!(expected));
    }

    #[test]
    fn a_cut_leaves_no_half_of_a_secret() {
        let secrets = [Secret::new("hunter2-key".to_owned())];
        let value = value_of(&captured(b"\0hunter2-key\0", 0), 1000, &secrets);
        assert_eq!(value["content"], "ACoqKgA=", "{value}");
        let value = value_of(&captured(b"key: hunter2-key hunter2-k", 2), 1000, &secrets);
        assert_eq!(value, json!("key: *** \n[output cut here: 11 bytes left out]"));
        assert_eq!(told(&captured(b"ter2-key: hunter2-key hun", 9), "/f", &secrets), ": *** ");
        assert_eq!(told(&captured(b"ter2-key: hunter2-key hun", 0), "/f", &secrets), "ter2-key: *** hun");
    }

    #[test]
    fn the_last_lines_are_kept() {
        let long = (0..100).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        assert_eq!(last_lines(&long).lines().next(), Some("line 80"));
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        assert_eq!(last_lines("a\tb\r\n\x1b[31mred\0\u{9b}"), "a\tb\n\u{fffd}[31mred\u{fffd}\u{fffd}");
        assert_eq!(last_lines(&"ä".repeat(5000)).chars().count(), 2000);
    }
}
