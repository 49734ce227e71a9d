//! What a program printed: the value that it means, and its last lines for people.

use std::borrow::Cow;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::secret::{Secret, halved_at_end, halved_at_start, scrub_text};

/// How many of the last lines say why a program failed.
const LAST_LINES: usize = 20;
/// What the mark of a cut and the quotes of a text take at most.
const MARK: usize = 80;
/// What the names and numbers around bytes in base64 take at most.
const AROUND_BYTES: usize = 128;

/// What is kept of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOutput<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// How many bytes were left out.
    pub left_out: u64,
}

impl StreamOutput<'_> {
    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes)
    }

    /// Returns it for people: without any secret, also not half of one where it was cut.
    pub fn told(&self, secrets: &[Secret]) -> String {
        let mut text = self.text().into_owned();
        scrub_text(&mut text, secrets);
        if self.left_out > 0 {
            text.truncate(text.len() - halved_at_end(&text, secrets));
            text.drain(..halved_at_start(&text, secrets));
        }
        text
    }

    /// Returns the value that it means: JSON where it is one document, else text. What is no text at all is
    /// spelled in base64. It has at most so many bytes; a cut is marked.
    pub fn value(&self, most: u64, secrets: &[Secret]) -> Value {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if self.left_out == 0
            && let Some(value) = document(self.bytes)
        {
            return value;
        }
        if !is_text(self.bytes) {
            // In base64 no one would find a secret any more.
            return in_base64(&without(self.bytes, secrets), self.left_out, most);
        }
        if self.left_out == 0 {
            let text = self.text();
            let text = text.strip_suffix('\n').unwrap_or(&text);
            if text.len() + 2 <= most {
                return Value::String(text.to_owned());
            }
        }
        let (mut text, taken) = beginning(self.bytes, most.saturating_sub(MARK));
        scrub_text(&mut text, secrets);
        let halved = halved_at_end(&text, secrets);
        text.truncate(text.len() - halved);
        let left_out = self.left_out + (self.bytes.len() - taken + halved) as u64;
        Value::String(format!("{text}\n[output cut here: {left_out} bytes left out]"))
    }
}

/// Tells text from other bytes: half a character at the end leaves it text, and so does here and there a byte in
/// another encoding.
fn is_text(bytes: &[u8]) -> bool {
    let (mut foreign, mut half) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        half = chunk.invalid().len();
        foreign += half;
    }
    let whole = bytes.len() - half;
    (whole > 0 || bytes.is_empty()) && (foreign - half) * 10 <= whole && !bytes.contains(&0)
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

/// Reads one JSON document. A number that JSON would spell in another way stays what the tool has printed: `1.10`
/// may be a price or a version, and a long number would lose its last digits.
fn document(bytes: &[u8]) -> Option<Value> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let changes = value.is_number() && value.to_string().as_bytes() != bytes.trim_ascii();
    (!changes).then_some(value)
}

fn in_base64(bytes: &[u8], left_out: u64, most: usize) -> Value {
    let room = most.saturating_sub(AROUND_BYTES) / 4 * 3;
    let kept = bytes.get(..room).unwrap_or(bytes);
    let content = base64::engine::general_purpose::STANDARD.encode(kept);
    match left_out + (bytes.len() - kept.len()) as u64 {
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
pub fn last_lines(text: &str) -> String {
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

    fn printed(bytes: &[u8], left_out: u64) -> StreamOutput<'_> {
        StreamOutput { bytes, left_out }
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
    fn a_cut_is_marked_and_never_taken_for_json() {
        let value = printed(b"[1]", 7).value(1000, &[]);
        assert_eq!(value, json!("[1]\n[output cut here: 7 bytes left out]"));
        let value = printed(b"a\0b", 7).value(1000, &[]);
        assert_eq!(value, json!({"encoding": "base64", "bytes": 3, "content": "YQBi", "left_out": 7}));
    }

    #[test]
    fn a_value_never_has_more_than_it_may() {
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
    fn a_cut_leaves_no_half_of_a_secret() {
        let secrets = [Secret::new("hunter2-key".to_owned())];
        let value = printed(b"\0hunter2-key\0", 0).value(1000, &secrets);
        assert_eq!(value["content"], "ACoqKgA=", "{value}");
        let value = printed(b"key: hunter2-key hunter2-k", 2).value(1000, &secrets);
        assert_eq!(value, json!("key: *** \n[output cut here: 11 bytes left out]"));
        assert_eq!(printed(b"ter2-key: hunter2-key hun", 9).told(&secrets), ": *** ");
        assert_eq!(printed(b"ter2-key: hunter2-key hun", 0).told(&secrets), "ter2-key: *** hun");
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
