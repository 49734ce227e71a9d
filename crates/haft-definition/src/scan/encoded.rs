//! Text that is encoded so that a person does not read it: base64, hexadecimal, percent and other escapes.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use haft_core::finding::Severity;
use regex::Regex;

use super::report::Report;
use super::{fold, phrases};

/// The minimum number of characters of decoded text.
const MIN_TEXT: usize = 12;
/// The maximum number of encoded parts that are decoded in one text.
const MAX_PARTS: usize = 200;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
static STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
static URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        (?P<spaced>(?-u:\b)[0-9A-Fa-f]{2}(?:[\ :,][0-9A-Fa-f]{2}){11,})
        | (?P<escaped>(?:(?:%|\\x|\\u00|&\#x|0x)[0-9A-Fa-f]{2};?[,\ ]?){12,})
        | (?P<decimal>(?:&\#[0-9]{2,3};){12,})
        | (?P<word>[A-Za-z0-9+/_-]{20,}={0,2})",
    )
    .ok()
});

/// Text that runs a program.
static COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"(?:curl|wget|nc|bash|powershell|iwr|python3?) +[-a-z/]*.{0,80}(?:https?://|\| *(?:sh|bash)|-c|-enc|/dev/tcp)|https?://.{0,80}\| *(?:ba)?sh|chmod +[+0-9a-z]+ +/|rm +-rf|/bin/(?:ba)?sh|base64 +-d|/dev/tcp/|eval *\(|invoke-expression";
    Regex::new(pattern).ok()
});

pub(super) fn scan(report: &mut Report, path: &str, text: &str) {
    let Some(parts) = PARTS.as_ref() else { return };
    for part in parts.captures_iter(text).take(MAX_PARTS) {
        let decoded = if let Some(word) = part.name("word") {
            decode_word(word.as_str())
        } else if let Some(numbers) = part.name("decimal") {
            decimal(numbers.as_str())
        } else {
            part.get(0).and_then(|part| hexadecimal(part.as_str()))
        };
        if let Some(decoded) = decoded.filter(|decoded| decoded.chars().count() >= MIN_TEXT) {
            judge(report, path, &decoded);
        }
    }
}

fn judge(report: &mut Report, path: &str, decoded: &str) {
    let folded = fold::fold(decoded);
    let is_command = COMMAND.as_ref().is_some_and(|command| command.is_match(&folded));
    if is_command || phrases::is_suspicious(&folded) {
        let message = "encoded text with instructions or a command";
        report.add(("hidden.encoded_instructions", Severity::Hard), path, decoded, message);
    } else if decoded.split_whitespace().filter(|word| word.len() > 1).count() >= 4 {
        report.add(("hidden.encoded_text", Severity::Soft), path, decoded, "encoded text");
    }
}

fn decode_word(word: &str) -> Option<String> {
    let is_hex = word.len().is_multiple_of(2) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && let Some(text) = hexadecimal(word) {
        return Some(text);
    }
    let engine = if word.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    // A word of another length ends in characters that belong to no byte.
    let bytes = engine.decode(word.trim_end_matches('=')).ok()?;
    printable(bytes)
}

fn hexadecimal(text: &str) -> Option<String> {
    let digits: Vec<u8> = text
        .replace("\\x", "")
        .replace("\\u00", "")
        .replace("&#x", "")
        .replace("0x", "")
        .bytes()
        .filter(u8::is_ascii_hexdigit)
        .collect();
    let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((value(high)? << 4) | value(low)?),
        _ => None,
    };
    printable(digits.chunks(2).map(byte).collect::<Option<_>>()?)
}

fn decimal(text: &str) -> Option<String> {
    let numbers = text.split(';').filter_map(|part| part.trim_start_matches("&#").parse::<u8>().ok());
    printable(numbers.collect())
}

/// Returns the text if it is printable.
fn printable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t' | '\r')).then_some(text)
}
