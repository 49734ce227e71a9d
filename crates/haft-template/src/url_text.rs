//! Values in URLs and forms.

use haft_core::encode::percent_encode_into;

/// Writes a percent-encoded value; rejects it where it would complete a percent escape of the literal before it.
pub(super) fn encoded_value(text: &str, out: &mut String) -> Result<(), &'static str> {
    let mut last = out.bytes().rev();
    let is_partial = match last.next() {
        Some(b'%') => true,
        Some(byte) if byte.is_ascii_hexdigit() => last.next() == Some(b'%'),
        _ => false,
    };
    if is_partial && !text.is_empty() {
        return Err("it would complete a percent escape of the template");
    }
    percent_encode_into(text, out);
    Ok(())
}

/// The part of a URL that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum UrlPart {
    #[default]
    Scheme,
    Authority,
    Path,
    Query,
    Fragment,
}

#[derive(Debug, Default)]
pub(super) struct UrlState {
    part: UrlPart,
    /// The start of the current path segment.
    segment: usize,
    /// Whether that segment contains a value.
    has_value: bool,
}

impl UrlState {
    pub(super) fn literal(&mut self, text: &str, out: &mut String) -> Result<(), &'static str> {
        for c in text.chars() {
            match (self.part, c) {
                (UrlPart::Scheme, '/') if out.ends_with(":/") => self.part = UrlPart::Authority,
                // Parsers skip further slashes before a host, so none of them starts the path.
                (UrlPart::Authority, '/' | '\\') if !out.ends_with(['/', '\\']) => {
                    self.part = UrlPart::Path;
                }
                (UrlPart::Authority | UrlPart::Path, '?') => self.end_segment(out, UrlPart::Query)?,
                (UrlPart::Path, '/' | '\\') => self.end_segment(out, UrlPart::Path)?,
                (UrlPart::Authority | UrlPart::Path, '#') => self.end_segment(out, UrlPart::Fragment)?,
                (UrlPart::Query, '#') => self.part = UrlPart::Fragment,
                _ => {}
            }
            out.push(c);
            if self.part == UrlPart::Path && matches!(c, '/' | '\\') {
                self.segment = out.len();
                self.has_value = false;
            }
        }
        Ok(())
    }

    pub(super) fn value(&mut self, text: &str, out: &mut String) -> Result<(), &'static str> {
        match self.part {
            UrlPart::Scheme => Err("the scheme has to be literal"),
            UrlPart::Authority => {
                let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                if text.is_empty() || !text.bytes().all(safe) {
                    return Err("a host may contain only letters, digits, `-`, `_` and `.`");
                }
                out.push_str(text);
                Ok(())
            }
            UrlPart::Path => {
                self.has_value |= !text.is_empty();
                encoded_value(text, out)
            }
            UrlPart::Query | UrlPart::Fragment => encoded_value(text, out),
        }
    }

    /// Writes the separator between the items of a value.
    pub(super) fn separator(&mut self, text: &str, out: &mut String) {
        self.has_value = true;
        out.push_str(text);
    }

    pub(super) fn finish(&self, out: &str) -> Result<(), &'static str> {
        if self.part == UrlPart::Path && self.is_dot_segment(out) {
            return Err("path segments `.` and `..` are not allowed");
        }
        Ok(())
    }

    fn end_segment(&mut self, out: &str, next: UrlPart) -> Result<(), &'static str> {
        self.finish(out)?;
        self.part = next;
        Ok(())
    }

    /// Returns whether a value made the current segment `.` or `..`, which URL parsers remove.
    fn is_dot_segment(&self, out: &str) -> bool {
        let segment = out.get(self.segment..).unwrap_or_default();
        self.has_value && matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
    }
}
