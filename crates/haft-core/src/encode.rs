//! Encodings that several crates share: percent-encoding and XML escapes.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Characters that end a query value or are not allowed in one.
const ENDING: &AsciiSet = &RESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b'=');

/// Percent-encodes everything but letters, digits, `-`, `.`, `_` and `~`.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    percent_encode_into(text, &mut out);
    out
}

/// Like [`percent_encode`], appended to `out`.
pub fn percent_encode_into(text: &str, out: &mut String) {
    out.extend(utf8_percent_encode(text, RESERVED));
}

/// Like [`percent_encode_into`], but keeps the reserved characters that cannot end a query value.
pub fn percent_encode_reserved_into(text: &str, out: &mut String) {
    out.extend(utf8_percent_encode(text, ENDING));
}

/// Decodes percent-encoding; what is not UTF-8 is replaced.
pub fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Appends one character, escaped for XML content and attributes.
pub fn xml_escape_into(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        // Written literally, these would be normalised by the receiver.
        '\r' => out.push_str("&#13;"),
        '\n' => out.push_str("&#10;"),
        '\t' => out.push_str("&#9;"),
        _ => out.push(c),
    }
}
