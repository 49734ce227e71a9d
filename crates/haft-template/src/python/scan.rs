//! Finds the string literals of a Python body, and the `${name}` in them.
//!
//! The scanner reads only what decides where literals start and end. Where Python 3.11 and 3.12 differ (quotes inside
//! the fields of f-strings) it follows 3.12; 3.11 rejects such a text as a whole.

use super::super::error::SyntaxError;
use super::super::reference::{Reference, Scope, Source};
use super::super::variables::{is_upper_case, may_be_secret};
use super::escape::Literal;
use super::template::Slot;
use haft_core::problem::excerpt;
use haft_core::secret::ExternalReference;

/// The maximum nesting of f-string fields.
const MAX_DEPTH: usize = 16;
/// The maximum length of a name between the braces; references to secrets outside of haft have a limit of their own.
const MAX_NAME: usize = 256;

const PREFIXES: [&str; 11] = ["r", "b", "u", "f", "t", "br", "rb", "fr", "rf", "tr", "rt"];

/// Returns the slots of a body in their order.
pub(super) fn slots(body: &str, scope: &Scope) -> Result<Vec<Slot>, Vec<SyntaxError>> {
    if !body.contains("${") {
        return Ok(Vec::new());
    }
    let mut scanner = Scanner { body, at: 0, scope, fields: 0, slots: Vec::new(), errors: Vec::new() };
    let read = scanner.code();
    let Scanner { slots, mut errors, .. } = scanner;
    if let Err(error) = read
        && (mentions_argument(body, scope) || !slots.is_empty())
    {
        errors.push(error);
    }
    if errors.is_empty() { Ok(slots) } else { Err(errors) }
}

/// Returns whether a body refers to an argument. Syntax errors of other bodies are left to Python.
fn mentions_argument(body: &str, scope: &Scope) -> bool {
    body.match_indices("${")
        .any(|(at, _)| name_at(body, at).is_some_and(|(name, _)| scope.argument(name).is_some()))
}

/// The literal at the current position.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the letters of a prefix are independent")]
struct Quote {
    mark: u8,
    triple: bool,
    raw: bool,
    bytes: bool,
    format: bool,
    start: usize,
}

struct Scanner<'a> {
    body: &'a str,
    at: usize,
    scope: &'a Scope,
    /// The number of open f-string fields.
    fields: usize,
    slots: Vec<Slot>,
    errors: Vec<SyntaxError>,
}

type ScanResult = Result<(), SyntaxError>;

impl Scanner<'_> {
    fn code(&mut self) -> ScanResult {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'$' => self.outside("outside of a string literal; write it in quotes, as in \"${name}\""),
                _ => self.token(byte)?,
            }
        }
        Ok(())
    }

    /// Reads a comment, a literal, a name, or one other byte.
    fn token(&mut self, byte: u8) -> ScanResult {
        match byte {
            b'#' => {
                let rest = self.rest();
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            b'"' | b'\'' => self.literal("")?,
            _ if is_name(byte) => {
                let rest = self.rest();
                let end = rest.bytes().position(|byte| !is_name(byte)).unwrap_or(rest.len());
                let name = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
                self.at += end;
                if PREFIXES.contains(&name.as_str()) && matches!(self.byte(0), Some(b'"' | b'\'')) {
                    self.literal(&name)?;
                }
            }
            _ => self.at += 1,
        }
        Ok(())
    }

    fn literal(&mut self, prefix: &str) -> ScanResult {
        let start = self.at;
        let mark = self.byte(0).unwrap_or(b'"');
        let triple = self.byte(1) == Some(mark) && self.byte(2) == Some(mark);
        let quote = Quote {
            mark,
            triple,
            raw: prefix.contains('r'),
            bytes: prefix.contains('b'),
            format: prefix.contains(['f', 't']),
            start,
        };
        self.at += if triple { 3 } else { 1 };
        while let Some(byte) = self.byte(0) {
            match byte {
                _ if self.closes(quote) => {
                    self.at += if triple { 3 } else { 1 };
                    return Ok(());
                }
                b'\n' if !triple => break,
                b'\\' => self.backslash(quote),
                b'$' => self.dollar(quote),
                b'{' | b'}' if quote.format && self.byte(1) == Some(byte) => self.at += 2,
                b'{' if quote.format => self.field(quote)?,
                _ => self.at += 1,
            }
        }
        Err(self.error(start, "unclosed string literal".to_owned()))
    }

    fn closes(&self, quote: Quote) -> bool {
        let same = |ahead| self.byte(ahead) == Some(quote.mark);
        same(0) && (!quote.triple || (same(1) && same(2)))
    }

    /// Reads a backslash and what it belongs to.
    fn backslash(&mut self, quote: Quote) {
        let start = self.at;
        let extent = match self.byte(1) {
            Some(b'x') if !quote.raw => 4,
            Some(b'u') if !quote.raw && !quote.bytes => 6,
            Some(b'U') if !quote.raw && !quote.bytes => 10,
            Some(b'N') if !quote.raw && !quote.bytes && self.byte(2) == Some(b'{') => {
                self.rest().find(['}', '\n']).map_or(3, |end| end + 1)
            }
            _ => 2,
        };
        for ahead in 1..extent {
            if let Some((reference, _)) = self.slot(start + ahead, quote) {
                let message = format!(
                    "`${{{}}}` directly after a backslash or inside an escape sequence",
                    reference.display_name()
                );
                self.reject(start + ahead, message);
            }
        }
        // A slot or the end of the literal may precede the end of the escape.
        let whole = matches!(self.byte(1), Some(b'N')) && extent > 2;
        let step = if whole { extent } else { 1 + self.rest().chars().nth(1).map_or(0, char::len_utf8) };
        self.at += step;
    }

    fn dollar(&mut self, quote: Quote) {
        let Some((reference, end)) = self.slot(self.at, quote) else {
            self.at += 1;
            return;
        };
        let written = reference.display_name();
        if self.fields > 0 {
            let why = "inside an expression of an f-string; assign it to a variable first";
            self.reject(self.at, format!("`${{{written}}}` {why}"));
        } else if quote.raw {
            let why = "in a raw string literal, which has no escapes; remove the `r`";
            self.reject(self.at, format!("`${{{written}}}` {why}"));
        } else {
            let literal = if quote.bytes { Literal::Bytes } else { Literal::Text };
            self.slots.push(Slot { start: self.at, end, literal, reference });
        }
        self.at = end;
    }

    /// Reads a field of an f-string, from its `{` to its `}`.
    fn field(&mut self, quote: Quote) -> ScanResult {
        if self.fields >= MAX_DEPTH {
            return Err(
                self.error(self.at, format!("nesting limit of f-string fields ({MAX_DEPTH}) exceeded"))
            );
        }
        self.fields += 1;
        self.at += 1;
        let mut depth = 0_usize;
        while let Some(byte) = self.byte(0) {
            match byte {
                b'}' if depth == 0 => {
                    self.close_field();
                    return Ok(());
                }
                b':' if depth == 0 => return self.format(quote),
                b'(' | b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b')' | b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b'$' => self.outside("inside an expression of an f-string; assign it to a variable first"),
                _ => self.token(byte)?,
            }
        }
        Err(self.error(quote.start, "unclosed string literal".to_owned()))
    }

    /// Reads the format after the `:` of a field.
    fn format(&mut self, quote: Quote) -> ScanResult {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'}' => {
                    self.close_field();
                    return Ok(());
                }
                b'{' => self.field(quote)?,
                b'\n' if !quote.triple => break,
                _ if self.closes(quote) => break,
                b'$' => self.outside("inside the format of an f-string field; assign it to a variable first"),
                _ => self.at += 1,
            }
        }
        Err(self.error(quote.start, "unclosed string literal".to_owned()))
    }

    fn close_field(&mut self) {
        self.fields -= 1;
        self.at += 1;
    }

    /// Rejects an argument outside of a literal.
    fn outside(&mut self, why: &str) {
        if let Some((name, end)) = name_at(self.body, self.at)
            && self.scope.argument(name).is_some()
        {
            self.reject(self.at, format!("`${{{}}}` {why}", excerpt(name, 40)));
            self.at = end;
        } else {
            self.at += 1;
        }
    }

    /// Returns the reference of the `${…}` at an offset, and its end.
    fn slot(&self, at: usize, quote: Quote) -> Option<(Reference, usize)> {
        let (name, end) = name_at(self.body, at)?;
        let secret = || {
            let own = quote.raw || quote.format || self.fields > 0;
            let is_stored = is_upper_case(name) && may_be_secret(name);
            let is_external = || matches!(ExternalReference::parse(name), Some(Ok(_)));
            (!own && (is_stored || is_external())).then(|| Reference::new(Source::Secret, name, ""))
        };
        self.scope.argument(name).or_else(secret).map(|reference| (reference, end))
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.body.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &str {
        self.body.get(self.at..).unwrap_or_default()
    }

    fn reject(&mut self, at: usize, message: String) {
        let error = self.error(at, message);
        self.errors.push(error);
    }

    fn error(&self, at: usize, message: String) -> SyntaxError {
        super::super::error::at(self.body, at, message)
    }
}

/// Returns the name of the `${name}` at an offset, and its end.
fn name_at(body: &str, at: usize) -> Option<(&str, usize)> {
    let inner = body.get(at..)?.strip_prefix("${")?;
    let end = inner.find(['}', '{', '"', '\'', '\\', '\n'])?;
    let name = inner.get(..end).filter(|_| inner.as_bytes().get(end) == Some(&b'}'))?;
    let is_short = end <= MAX_NAME || matches!(ExternalReference::parse(name), Some(Ok(_)));
    (is_short && !name.is_empty()).then_some((name, at + 2 + end + 1))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
