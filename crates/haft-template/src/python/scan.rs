//! Finds the string literals of a Python body, and the `${name}` in them.
//!
//! Only what decides where literals start and end is read. Where Python 3.11 and 3.12 disagree (quotes inside
//! the fields of f-strings) the newer reading is taken: the older one refuses such a text as a whole.

use super::super::error::SyntaxError;
use super::super::reference::{Reference, Scope, Source};
use super::super::variables::{is_capital, may_be_secret};
use super::escape::Literal;
use super::template::Slot;
use haft_core::problem::excerpt;

/// How deep the fields of f-strings may nest.
const MAX_DEPTH: usize = 16;
/// The longest text between the braces that is looked at.
const MAX_NAME: usize = 256;

const PREFIXES: [&str; 11] = ["r", "b", "u", "f", "t", "br", "rb", "fr", "rf", "tr", "rt"];

/// Returns the slots of a body in their order.
pub(super) fn slots(body: &str, scope: &Scope) -> Result<Vec<Slot>, Vec<SyntaxError>> {
    if !body.contains("${") {
        return Ok(Vec::new());
    }
    let mut scanner = Scanner { body, at: 0, scope, fields: 0, slots: Vec::new(), faults: Vec::new() };
    let read = scanner.code();
    let Scanner { slots, mut faults, .. } = scanner;
    if let Err(fault) = read
        && (mentions_argument(body, scope) || !slots.is_empty())
    {
        faults.push(fault);
    }
    if faults.is_empty() { Ok(slots) } else { Err(faults) }
}

/// A body that Python itself will refuse matters only where a value could have gone into it.
fn mentions_argument(body: &str, scope: &Scope) -> bool {
    body.match_indices("${")
        .any(|(at, _)| named(body, at).is_some_and(|(name, _)| scope.argument(name).is_some()))
}

/// A literal that is being read.
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
    /// How many fields of f-strings are open.
    fields: usize,
    slots: Vec<Slot>,
    faults: Vec<SyntaxError>,
}

type Scan = Result<(), SyntaxError>;

impl Scanner<'_> {
    fn code(&mut self) -> Scan {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'$' => self.outside("outside of a string literal; write it in quotes, as in \"${name}\""),
                _ => self.token(byte)?,
            }
        }
        Ok(())
    }

    /// Reads a comment, a literal, a name, or one other byte.
    fn token(&mut self, byte: u8) -> Scan {
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

    fn literal(&mut self, prefix: &str) -> Scan {
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
        Err(self.error(start, "the string literal that starts here is not closed".to_owned()))
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
                let what =
                    format!("`${{{}}}` directly behind a backslash or inside an escape", reference.written());
                self.fault(start + ahead, what);
            }
        }
        // A slot or the end of the literal may come before the escape is complete.
        let whole = matches!(self.byte(1), Some(b'N')) && extent > 2;
        let step = if whole { extent } else { 1 + self.rest().chars().nth(1).map_or(0, char::len_utf8) };
        self.at += step;
    }

    fn dollar(&mut self, quote: Quote) {
        let Some((reference, end)) = self.slot(self.at, quote) else {
            self.at += 1;
            return;
        };
        let written = reference.written();
        if self.fields > 0 {
            let why = "inside an expression of an f-string; assign it to a variable first";
            self.fault(self.at, format!("`${{{written}}}` {why}"));
        } else if quote.raw {
            let why = "in a raw string literal, which has no escapes; leave the `r` out";
            self.fault(self.at, format!("`${{{written}}}` {why}"));
        } else {
            let literal = if quote.bytes { Literal::Bytes } else { Literal::Text };
            self.slots.push(Slot { start: self.at, end, literal, reference });
        }
        self.at = end;
    }

    /// Reads a field of an f-string, from its `{` to its `}`.
    fn field(&mut self, quote: Quote) -> Scan {
        if self.fields >= MAX_DEPTH {
            return Err(self.error(self.at, format!("fields nested deeper than {MAX_DEPTH} levels")));
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
        Err(self.error(quote.start, "the string literal that starts here is not closed".to_owned()))
    }

    /// Reads what stands behind the `:` of a field.
    fn format(&mut self, quote: Quote) -> Scan {
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
        Err(self.error(quote.start, "the string literal that starts here is not closed".to_owned()))
    }

    fn close_field(&mut self) {
        self.fields -= 1;
        self.at += 1;
    }

    /// Refuses an argument where no literal is.
    fn outside(&mut self, why: &str) {
        if let Some((name, end)) = named(self.body, self.at)
            && self.scope.argument(name).is_some()
        {
            self.fault(self.at, format!("`${{{}}}` {why}", excerpt(name, 40)));
            self.at = end;
        } else {
            self.at += 1;
        }
    }

    /// Returns what `${…}` at a place names, and where it ends.
    fn slot(&self, at: usize, quote: Quote) -> Option<(Reference, usize)> {
        let (name, end) = named(self.body, at)?;
        let secret = || {
            let own = quote.raw || quote.format || self.fields > 0;
            (!own && is_capital(name) && may_be_secret(name))
                .then(|| Reference::new(Source::Secret, name, ""))
        };
        self.scope.argument(name).or_else(secret).map(|reference| (reference, end))
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.body.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &str {
        self.body.get(self.at..).unwrap_or_default()
    }

    fn fault(&mut self, at: usize, message: String) {
        let error = self.error(at, message);
        self.faults.push(error);
    }

    fn error(&self, at: usize, message: String) -> SyntaxError {
        super::super::error::at(self.body, at, message)
    }
}

/// Returns the name in `${name}` at a place, and where it ends.
fn named(body: &str, at: usize) -> Option<(&str, usize)> {
    let inner = body.get(at..)?.strip_prefix("${")?;
    let end = inner.find(['}', '{', '"', '\'', '\\', '\n'])?;
    let name = inner.get(..end).filter(|_| end <= MAX_NAME && inner.as_bytes().get(end) == Some(&b'}'))?;
    (!name.is_empty()).then_some((name, at + 2 + end + 1))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
