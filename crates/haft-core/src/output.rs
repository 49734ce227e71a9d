//! The output of a program: its value, and its last lines for error messages.

use std::borrow::Cow;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::secret::{Secret, partial_secret_at_end, partial_secret_at_start, scrub_bytes, scrub_text};

/// The number of last lines in an error message.
const LAST_LINES: usize = 20;
/// Bytes reserved for the truncation note and the quotes of a string.
const TRUNCATION_NOTE_SIZE: usize = 80;
/// Bytes reserved for the JSON around base64 content.
const BASE64_OVERHEAD: usize = 128;

/// The captured part of an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOutput<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// How many bytes were dropped.
    pub left_out: u64,
}

impl StreamOutput<'_> {
    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes)
    }

    /// Returns the text with all secrets redacted, including partial secrets at a truncated end.
    pub fn redacted(&self, secrets: &[Secret]) -> String {
        let mut text = self.text().into_owned();
        scrub_text(&mut text, secrets);
        if self.left_out > 0 {
            text.truncate(text.len() - partial_secret_at_end(&text, secrets));
            text.drain(..partial_secret_at_start(&text, secrets));
        }
        text
    }

    /// Returns the output as JSON, if all of it is one document.
    pub fn json(&self) -> Option<Value> {
        if self.left_out == 0 { document(self.bytes) } else { None }
    }

    /// Returns the output as a value of at most `max_bytes`: JSON if it is one document, otherwise as
    /// [`StreamOutput::text_value`].
    pub fn value(&self, max_bytes: u64, secrets: &[Secret]) -> Value {
        self.json().unwrap_or_else(|| self.text_value(max_bytes, secrets))
    }

    /// Returns the output as text of at most `max_bytes`, or base64 if it is binary. Truncated text ends with a note.
    pub fn text_value(&self, max_bytes: u64, secrets: &[Secret]) -> Value {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        if !is_text(self.bytes) {
            // Secrets must be removed before encoding.
            return base64_value(&scrub_bytes(self.bytes, secrets), self.left_out, max_bytes);
        }
        if self.left_out == 0 {
            let text = self.text();
            let text = text.strip_suffix('\n').unwrap_or(&text);
            if text.len() + 2 <= max_bytes {
                return Value::String(text.to_owned());
            }
        }
        let (mut text, taken) = text_prefix(self.bytes, max_bytes.saturating_sub(TRUNCATION_NOTE_SIZE));
        scrub_text(&mut text, secrets);
        let halved = partial_secret_at_end(&text, secrets);
        text.truncate(text.len() - halved);
        let left_out = self.left_out + (self.bytes.len() - taken + halved) as u64;
        Value::String(format!("{text}\n[output cut here: {left_out} bytes left out]"))
    }
}

/// Returns whether the bytes are text. An incomplete character at the end is allowed, and so are a few bytes in another
/// encoding.
fn is_text(bytes: &[u8]) -> bool {
    let (mut foreign, mut half) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        half = chunk.invalid().len();
        foreign += half;
    }
    let whole = bytes.len() - half;
    (whole > 0 || bytes.is_empty()) && (foreign - half) * 10 <= whole && !bytes.contains(&0)
}

/// Parses one JSON document. Returns `None` for a number that JSON would write differently: `1.10` may be a price or a
/// version, and a long number would lose digits.
fn document(bytes: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let changes = value.is_number() && value.to_string().as_bytes() != bytes.trim_ascii();
    (!changes).then_some(value)
}

fn base64_value(bytes: &[u8], left_out: u64, max_bytes: usize) -> Value {
    let room = max_bytes.saturating_sub(BASE64_OVERHEAD) / 4 * 3;
    let kept = bytes.get(..room).unwrap_or(bytes);
    let content = base64::engine::general_purpose::STANDARD.encode(kept);
    match left_out + (bytes.len() - kept.len()) as u64 {
        0 => json!({"encoding": "base64", "bytes": kept.len(), "content": content}),
        left_out => {
            json!({"encoding": "base64", "bytes": kept.len(), "content": content, "left_out": left_out})
        }
    }
}

/// Returns at most `max_bytes` of text and how many input bytes it covers; invalid bytes are replaced, which takes more
/// space.
fn text_prefix(bytes: &[u8], max_bytes: usize) -> (String, usize) {
    let (mut text, mut taken) = (String::with_capacity(bytes.len().min(max_bytes)), 0);
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if text.len() + letter.len_utf8() > max_bytes {
                return (text, taken);
            }
            text.push(letter);
            taken += letter.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            if text.len() + char::REPLACEMENT_CHARACTER.len_utf8() > max_bytes {
                return (text, taken);
            }
            text.push(char::REPLACEMENT_CHARACTER);
            taken += chunk.invalid().len();
        }
    }
    (text, taken)
}

/// Returns the last lines of an output, with control characters replaced.
pub fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let start = lines.len().saturating_sub(LAST_LINES);
    let text = lines.get(start..).unwrap_or_default().join("\n");
    // The end is more useful than the beginning.
    let surplus = text.chars().count().saturating_sub(2000);
    text.chars().skip(surplus).map(harmless).collect()
}

fn harmless(letter: char) -> char {
    if letter.is_control() && !matches!(letter, '\n' | '\t') { char::REPLACEMENT_CHARACTER } else { letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(bytes: &[u8], left_out: u64) -> StreamOutput<'_> {
        StreamOutput { bytes, left_out }
    }

    #[test]
    fn output_is_json_if_it_is_one_document() {
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
            (b"caf\xe9 au lait", json!("caf\u{fffd} au lait")),
            (b"a\0b", json!({"encoding": "base64", "bytes": 3, "content": "YQBi"})),
            (b"\xff\xd8\xff\xe0JFIF", json!({"encoding": "base64", "bytes": 8, "content": "/9j/4EpGSUY="})),
            (b"\xfe", json!({"encoding": "base64", "bytes": 1, "content": "/g=="})),
        ] {
            let value = printed(bytes, 0).value(1000, &[]);
            assert_eq!(value, expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn truncated_output_is_marked_and_never_parsed() {
        let value = printed(b"[1]", 7).value(1000, &[]);
        assert_eq!(value, json!("[1]\n[output cut here: 7 bytes left out]"));
        let value = printed(b"a\0b", 7).value(1000, &[]);
        assert_eq!(value, json!({"encoding": "base64", "bytes": 3, "content": "YQBi", "left_out": 7}));
    }

    #[test]
    fn values_never_exceed_the_limit() {
        for (bytes, left_out) in [
            (vec![b'x'; 1000], u64::MAX / 2),
            (vec![b'x'; 1000], 0),
            (vec![0xff; 1000], 1),
            (vec![0xff; 700], 0),
            (b"xxxxxxxxxxx\xe9".repeat(90), 0),
            ("ä".repeat(500).into_bytes(), 1),
            (vec![0; 1000], 1),
            (vec![0; 900], 0),
            (vec![b'9'; 1000], 0),
        ] {
            let value = printed(&bytes, left_out).value(1000, &[]);
            let size = value.to_string().len();
            assert!((700..=1000).contains(&size), "{size}: {value}");
        }
    }

    #[test]
    fn truncation_leaves_no_partial_secret() {
        let secrets = [Secret::new("hunter2-key".to_owned())];
        let value = printed(b"\0hunter2-key\0", 0).value(1000, &secrets);
        assert_eq!(value["content"], "ACoqKgA=", "{value}");
        let value = printed(b"key: hunter2-key hunter2-k", 2).value(1000, &secrets);
        assert_eq!(value, json!("key: *** \n[output cut here: 11 bytes left out]"));
        assert_eq!(printed(b"ter2-key: hunter2-key hun", 9).redacted(&secrets), ": *** ");
        assert_eq!(printed(b"ter2-key: hunter2-key hun", 0).redacted(&secrets), "ter2-key: *** hun");
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
