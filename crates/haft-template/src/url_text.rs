//! Values in URLs and forms.

use haft_core::encode::percent_encode_into;

/// Writes a percent-encoded value, unless the literal before it is half an escape that it would complete.
pub(super) fn encoded_value(text: &str, out: &mut String) -> Result<(), &'static str> {
    let mut last = out.bytes().rev();
    let half = match last.next() {
        Some(b'%') => true,
        Some(byte) if byte.is_ascii_hexdigit() => last.next() == Some(b'%'),
        _ => false,
    };
    if half && !text.is_empty() {
        return Err("it would complete a percent escape of the template");
    }
    percent_encode_into(text, out);
    Ok(())
}

/// Where in a URL the writer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Position {
    #[default]
    Scheme,
    Authority,
    Path,
    Query,
    Fragment,
}

#[derive(Debug, Default)]
pub(super) struct UrlState {
    position: Position,
    /// Where the present path segment starts.
    segment: usize,
    /// Whether a value went into that segment.
    filled: bool,
}

impl UrlState {
    pub(super) fn literal(&mut self, text: &str, out: &mut String) -> Result<(), &'static str> {
        for c in text.chars() {
            match (self.position, c) {
                (Position::Scheme, '/') if out.ends_with(":/") => self.position = Position::Authority,
                // Parsers skip further slashes before a host, so none of them begins the path.
                (Position::Authority, '/' | '\\') if !out.ends_with(['/', '\\']) => {
                    self.position = Position::Path;
                }
                (Position::Authority | Position::Path, '?') => self.leave_segment(out, Position::Query)?,
                (Position::Path, '/' | '\\') => self.leave_segment(out, Position::Path)?,
                (Position::Authority | Position::Path, '#') => self.leave_segment(out, Position::Fragment)?,
                (Position::Query, '#') => self.position = Position::Fragment,
                _ => {}
            }
            out.push(c);
            if self.position == Position::Path && matches!(c, '/' | '\\') {
                self.segment = out.len();
                self.filled = false;
            }
        }
        Ok(())
    }

    pub(super) fn value(&mut self, text: &str, out: &mut String) -> Result<(), &'static str> {
        match self.position {
            Position::Scheme => Err("the scheme must stand in the template itself"),
            Position::Authority => {
                let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                if text.is_empty() || !text.bytes().all(safe) {
                    return Err("a host takes letters, digits, `-`, `_` and `.` only");
                }
                out.push_str(text);
                Ok(())
            }
            Position::Path => {
                self.filled |= !text.is_empty();
                encoded_value(text, out)
            }
            Position::Query | Position::Fragment => encoded_value(text, out),
        }
    }

    /// Writes what separates the items of one value.
    pub(super) fn separator(&mut self, text: &str, out: &mut String) {
        self.filled = true;
        out.push_str(text);
    }

    pub(super) fn finish(&self, out: &str) -> Result<(), &'static str> {
        if self.position == Position::Path && self.makes_dots(out) {
            return Err("a path segment `.` or `..` would lead to another path");
        }
        Ok(())
    }

    fn leave_segment(&mut self, out: &str, next: Position) -> Result<(), &'static str> {
        self.finish(out)?;
        self.position = next;
        Ok(())
    }

    /// Tells whether a value made the present segment one that URL parsers remove.
    fn makes_dots(&self, out: &str) -> bool {
        let segment = out.get(self.segment..).unwrap_or_default();
        self.filled && matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
    }
}
