//! Here-documents.

use super::pieces::SymbolKind;
use super::shell::{Scan, Shell};
use super::word::{Quotes, Word};

/// A here-document whose body is still to come.
#[derive(Debug, Clone)]
pub(super) struct HereDocument {
    delimiter: String,
    /// `<<-`: tabs at the start of lines do not count.
    tabs: bool,
    /// The delimiter was quoted: nothing in the body is filled in.
    raw: bool,
}

impl Shell<'_> {
    /// Copies the delimiter behind `<<` or `<<-`.
    pub(super) fn here_delimiter(&mut self, tabs: bool) -> Scan<()> {
        self.blanks()?;
        let quote = match self.peek() {
            Some(SymbolKind::Char(c @ ('\'' | '"'))) => Some(c),
            _ => None,
        };
        if quote.is_some() {
            self.copy()?;
        }
        let delimiter = self.name()?;
        let closed = quote.is_none_or(|quote| self.is(0, quote));
        if delimiter.is_empty() || !closed {
            return self.fault("the delimiter of a here-document has to be one plain word, such as `<<EOF`");
        }
        if quote.is_some() {
            self.copy()?;
        }
        if !matches!(
            self.peek(),
            None | Some(SymbolKind::Char(' ' | '\t' | '\n' | ';' | '|' | '&' | ')' | '<' | '>'))
        ) {
            return self.fault("the delimiter of a here-document has to be one plain word, such as `<<EOF`");
        }
        let document = HereDocument { delimiter, tabs, raw: quote.is_some() };
        if let Some(level) = self.waiting.last_mut() {
            level.push(document);
        }
        Ok(())
    }

    /// Copies a body and the line that ends it.
    pub(super) fn here_document(&mut self, document: &HereDocument) -> Scan<()> {
        loop {
            if self.ends(document) {
                while !matches!(self.peek(), None | Some(SymbolKind::Char('\n'))) {
                    self.copy()?;
                }
                // The line break behind it ends nothing else.
                return if self.is(0, '\n') { self.copy().map(|_| ()) } else { Ok(()) };
            }
            if self.starts(document).is_some() {
                // Inside of `$(…)` bash may end the document there.
                return self.fault(format!(
                    "a line of the here-document starts with its delimiter; choose another one than `{}`",
                    document.delimiter
                ));
            }
            if self.peek().is_none() {
                return self.fault(format!("the here-document has no closing line `{}`", document.delimiter));
            }
            self.here_line(document)?;
        }
    }

    fn here_line(&mut self, document: &HereDocument) -> Scan<()> {
        let mut ignored = Word::default();
        loop {
            match self.peek() {
                None => return Ok(()),
                Some(SymbolKind::Char('\n')) => return self.copy().map(|_| ()),
                Some(SymbolKind::Value(_)) if document.raw => {
                    return self.fault(format!(
                        "a value in a here-document with a quoted delimiter is not filled in; write `<<{}` without quotes",
                        document.delimiter
                    ));
                }
                Some(SymbolKind::Value(_)) => {
                    self.value("", "");
                }
                Some(SymbolKind::Char(_)) if document.raw => self.copy().map(|_| ())?,
                Some(SymbolKind::Char('\\')) if self.is(1, '\n') => {
                    return self.fault("an escaped line break in a here-document is not supported");
                }
                Some(SymbolKind::Char('\\')) => self.escaped_in_double_quotes(&mut ignored)?,
                Some(SymbolKind::Char('`')) => return self.backtick(),
                Some(SymbolKind::Char('$')) => {
                    self.one_line += 1;
                    let copied = self.dollar(Quotes::Double, &mut ignored);
                    self.one_line -= 1;
                    copied?;
                }
                Some(SymbolKind::Char(_)) => self.copy().map(|_| ())?,
            }
        }
    }

    /// Tells whether the line that starts here closes the document.
    fn ends(&self, document: &HereDocument) -> bool {
        self.starts(document)
            .is_some_and(|behind| matches!(self.peek_at(behind), None | Some(SymbolKind::Char('\n'))))
    }

    /// Returns where the delimiter ends that the line starts with.
    fn starts(&self, document: &HereDocument) -> Option<usize> {
        let mut ahead = 0;
        while document.tabs && self.is(ahead, '\t') {
            ahead += 1;
        }
        for c in document.delimiter.chars() {
            if !self.is(ahead, c) {
                return None;
            }
            ahead += 1;
        }
        Some(ahead)
    }
}
