//! Here-documents.

use super::builtins::SHELL_INPUT;
use super::scanner::{ScanResult, Scanner};
use super::symbols::SymbolKind;
use super::words::{Quotes, Word};

/// A here-document whose body follows the current line.
#[derive(Debug, Clone)]
pub(super) struct HereDocument {
    delimiter: String,
    /// `<<-`: tabs at the start of lines are ignored.
    strips_tabs: bool,
    /// Whether the delimiter is quoted, so that the shell expands nothing in the body.
    quoted: bool,
    /// Whether a shell reads the body as code.
    is_code: bool,
}

impl Scanner<'_> {
    /// Copies the delimiter behind `<<` or `<<-`.
    pub(super) fn here_delimiter(&mut self, is_code: bool) -> ScanResult<()> {
        const MESSAGE: &str = "the delimiter of a here-document has to be one plain word, such as `<<EOF`";
        let strips_tabs = self.is(0, '-');
        if strips_tabs {
            self.copy()?;
        }
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
            return self.reject(MESSAGE);
        }
        if quote.is_some() {
            self.copy()?;
        }
        if !matches!(
            self.peek(),
            None | Some(SymbolKind::Char(' ' | '\t' | '\n' | ';' | '|' | '&' | ')' | '<' | '>'))
        ) {
            return self.reject(MESSAGE);
        }
        let document = HereDocument { delimiter, strips_tabs, quoted: quote.is_some(), is_code };
        if let Some(level) = self.pending.last_mut() {
            level.push(document);
        }
        Ok(())
    }

    /// Copies a body and the line that ends it.
    pub(super) fn here_document(&mut self, document: &HereDocument) -> ScanResult<()> {
        loop {
            if self.ends(document) {
                while !matches!(self.peek(), None | Some(SymbolKind::Char('\n'))) {
                    self.copy()?;
                }
                return if self.is(0, '\n') { self.copy().map(|_| ()) } else { Ok(()) };
            }
            if self.starts(document).is_some() {
                // Inside `$(…)` bash may end the document there.
                return self.reject(format!(
                    "a line of the here-document starts with its delimiter `{}`; use another delimiter",
                    document.delimiter
                ));
            }
            if self.peek().is_none() {
                return self.reject(format!("here-document has no closing line `{}`", document.delimiter));
            }
            self.here_line(document)?;
        }
    }

    fn here_line(&mut self, document: &HereDocument) -> ScanResult<()> {
        let mut ignored = Word::default();
        loop {
            match self.peek() {
                None => return Ok(()),
                Some(SymbolKind::Char('\n')) => return self.copy().map(|_| ()),
                Some(SymbolKind::Value(_)) if document.quoted => {
                    return self.reject(format!(
                        "a reference in a here-document with a quoted delimiter is not replaced; write `<<{}` without quotes",
                        document.delimiter
                    ));
                }
                Some(SymbolKind::Value(_) | SymbolKind::Char('$')) if document.is_code => {
                    return self.reject(SHELL_INPUT);
                }
                Some(SymbolKind::Value(_)) => {
                    self.value("", "");
                }
                Some(SymbolKind::Char(_)) if document.quoted => self.copy().map(|_| ())?,
                Some(SymbolKind::Char('\\')) if self.is(1, '\n') => {
                    return self.reject("escaped line break in a here-document is unsupported");
                }
                Some(SymbolKind::Char('\\')) => self.escaped_in_double_quotes(&mut ignored)?,
                Some(SymbolKind::Char('`')) => return self.backtick(),
                Some(SymbolKind::Char('$')) => {
                    self.single_line += 1;
                    let copied = self.dollar(Quotes::HereDocument, &mut ignored);
                    self.single_line -= 1;
                    copied?;
                }
                Some(SymbolKind::Char(_)) => self.copy().map(|_| ())?,
            }
        }
    }

    /// Returns whether the line that starts here closes the document.
    fn ends(&self, document: &HereDocument) -> bool {
        self.starts(document)
            .is_some_and(|behind| matches!(self.peek_at(behind), None | Some(SymbolKind::Char('\n'))))
    }

    /// Returns the length of the delimiter at the start of the line.
    fn starts(&self, document: &HereDocument) -> Option<usize> {
        let mut ahead = 0;
        while document.strips_tabs && self.is(ahead, '\t') {
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
