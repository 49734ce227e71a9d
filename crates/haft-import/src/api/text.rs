//! Sanitizes texts of a document.

use super::html;

/// Removes HTML, control characters except line breaks and tabs, and invisible characters; truncates the text to
/// `max_bytes`.
pub(crate) fn clean(text: &str, max_bytes: usize) -> String {
    clean_and_cut(text, max_bytes).0
}

/// As [`clean`]; returns also whether the text was truncated.
pub(crate) fn clean_and_cut(text: &str, max_bytes: usize) -> (String, bool) {
    let text = html::to_text(text);
    let text = text.trim();
    let mut out = String::with_capacity(text.len().min(max_bytes));
    for c in text.chars() {
        if c == '\r' || is_invisible(c) || (c.is_control() && !matches!(c, '\n' | '\t')) {
            continue;
        }
        if out.len() + c.len_utf8() > max_bytes {
            out.truncate(out.trim_end().len());
            out.push('…');
            return (out, true);
        }
        out.push(c);
    }
    (out, false)
}

/// Returns whether a character is invisible and could hide text from a person: zero-width spaces, direction marks, tags.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Returns the first line of a text, truncated to `max_chars`.
pub(crate) fn line(text: &str, max_chars: usize) -> String {
    let text = html::to_text(text);
    let first = text.trim().lines().next().unwrap_or_default();
    let plain: Vec<char> =
        first.chars().filter(|c| !c.is_control() && !is_invisible(*c)).take(max_chars + 1).collect();
    if plain.len() <= max_chars {
        return plain.into_iter().collect::<String>().trim().to_owned();
    }
    let mut out: String = plain.into_iter().take(max_chars.saturating_sub(1)).collect();
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cleaned_and_cut() {
        for (text, most, expected) in [
            ("  <b>bold</b>\r\nand *more*\u{7}\u{0} ", 100, "bold\nand *more*"),
            ("a\tb", 100, "a\tb"),
            ("ééé", 4, "éé…"),
            ("one two", 4, "one…"),
            ("", 4, ""),
            ("a\u{200b}b\u{202e}c\u{e0041}", 9, "abc"),
        ] {
            assert_eq!(clean(text, most), expected, "{text:?}");
        }
        for (text, most, expected) in [
            ("first\nsecond", 100, "first"),
            ("12345", 5, "12345"),
            ("123456", 5, "1234…"),
            ("a\u{1b}b", 5, "ab"),
        ] {
            assert_eq!(line(text, most), expected, "{text:?}");
        }
    }
}
