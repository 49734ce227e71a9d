//! Quoting for commands that a hint suggests.

/// Quotes a text for a shell, if needed.
pub(crate) fn quote(text: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '@' | '+' | ',' | '=' | ':')
    };
    let is_safe = !text.is_empty() && text.chars().all(is_plain);
    if is_safe { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn unusual_texts_are_quoted() {
        for (text, expected) in
            [("/a/b", "/a/b"), ("/a b/it's", r"'/a b/it'\''s'"), ("", "''"), ("x=2+2", "x=2+2")]
        {
            assert_eq!(super::quote(text), expected);
        }
    }
}
