//! Sanitizes texts of a document.

/// Removes control characters except line breaks and tabs, and truncates the text to `max_bytes`.
pub(super) fn clean(text: &str, max_bytes: usize) -> String {
    let text = text.trim();
    let mut out = String::with_capacity(text.len().min(max_bytes));
    for c in text.chars() {
        if c == '\r' || (c.is_control() && !matches!(c, '\n' | '\t')) {
            continue;
        }
        if out.len() + c.len_utf8() > max_bytes {
            out.truncate(out.trim_end().len());
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// Returns the first line of a text, truncated to `max_chars`.
pub(super) fn line(text: &str, max_chars: usize) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    let plain: Vec<char> = first.chars().filter(|c| !c.is_control()).take(max_chars + 1).collect();
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
            ("  <b>bold</b>\r\nand *more*\u{7}\u{0} ", 100, "<b>bold</b>\nand *more*"),
            ("a\tb", 100, "a\tb"),
            ("ééé", 4, "éé…"),
            ("one two", 4, "one…"),
            ("", 4, ""),
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
