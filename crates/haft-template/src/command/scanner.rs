//! The state of the command scanner: it reads symbols and writes the text for the shell.

use super::heredoc::HereDocument;
use super::symbols::{Symbol, SymbolKind};

/// The maximum nesting of substitutions, subshells and quotes.
const MAX_DEPTH: usize = 24;

/// Why a command is rejected, and the byte offset of the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScanError {
    pub(super) at: usize,
    pub(super) message: String,
}

pub(super) type ScanResult<T> = Result<T, ScanError>;

/// A variable that the command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VariableRead {
    pub(super) at: usize,
    pub(super) name: String,
    /// Whether the command has a fallback for a missing variable.
    pub(super) optional: bool,
}

/// Scans one text of a command.
#[derive(Default)]
pub(super) struct Scanner<'a> {
    symbols: &'a [Symbol],
    next: usize,
    depth: usize,
    /// How many open constructs have to end on their line.
    pub(super) single_line: usize,
    /// The here-documents whose bodies follow the current line, per substitution.
    pub(super) pending: Vec<Vec<HereDocument>>,
    /// The text for the shell.
    pub(super) script: String,
    pub(super) reads: Vec<VariableRead>,
    /// The variables that the command sets.
    pub(super) assigned: Vec<String>,
    /// The values that a program could read as an option.
    pub(super) guarded: Vec<usize>,
    /// The values that shell variables may pass on as whole words.
    pub(super) carried: Vec<usize>,
    /// Whether a program receives a shell variable as a whole word.
    pub(super) passes_variables: bool,
    /// The names of `${NAME}` in single quotes.
    pub(super) single_quoted: Vec<String>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(symbols: &'a [Symbol]) -> Self {
        Self { symbols, pending: vec![Vec::new()], ..Self::default() }
    }

    /// Returns the symbol `ahead` symbols from here.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<SymbolKind> {
        self.symbols.get(self.next + ahead).map(|symbol| symbol.kind)
    }

    pub(super) fn peek(&self) -> Option<SymbolKind> {
        self.peek_at(0)
    }

    pub(super) fn is(&self, ahead: usize, c: char) -> bool {
        self.peek_at(ahead) == Some(SymbolKind::Char(c))
    }

    pub(super) fn is_value(&self, ahead: usize) -> bool {
        matches!(self.peek_at(ahead), Some(SymbolKind::Value(_)))
    }

    /// Returns the number of symbols read.
    pub(super) fn position(&self) -> usize {
        self.next
    }

    /// Returns the byte offset of the next symbol in the command.
    pub(super) fn at(&self) -> usize {
        let last = self.symbols.last().map_or(0, |symbol| symbol.at);
        self.symbols.get(self.next).map_or(last, |symbol| symbol.at)
    }

    pub(super) fn reject<T>(&self, message: impl Into<String>) -> ScanResult<T> {
        Err(ScanError { at: self.at(), message: message.into() })
    }

    /// Copies the next symbol, which has to be a character.
    pub(super) fn copy(&mut self) -> ScanResult<char> {
        let Some(SymbolKind::Char(c)) = self.peek() else {
            return self.reject("unexpected end of the command");
        };
        if c == '\n' && self.single_line > 0 {
            return self.reject("line break in `$(…)` inside a here-document is unsupported; use one line");
        }
        if c == '\n' && self.pending.iter().any(|level| !level.is_empty()) {
            return self.reject("line break in quotes, in `$(…)` or after a backslash is unsupported on a line with `<<`; finish the command on that line");
        }
        if c == '\0' {
            return self.reject("NUL character in the command");
        }
        self.script.push(c);
        self.next += 1;
        Ok(c)
    }

    pub(super) fn copy_many(&mut self, count: usize) -> ScanResult<()> {
        (0..count).try_for_each(|_| self.copy().map(|_| ()))
    }

    /// Copies the line break that ends a command, and the here-documents that follow it.
    pub(super) fn line_break(&mut self) -> ScanResult<()> {
        let documents = self.pending.last_mut().map(std::mem::take).unwrap_or_default();
        self.copy()?;
        documents.into_iter().try_for_each(|document| self.here_document(&document))
    }

    /// Writes the variable of a value between `before` and `after`.
    pub(super) fn value(&mut self, before: &str, after: &str) -> Option<usize> {
        let Some(SymbolKind::Value(number)) = self.peek() else { return None };
        for text in [before, "${", &variable(number), "}", after] {
            self.script.push_str(text);
        }
        self.next += 1;
        Some(number)
    }

    /// Copies spaces, tabs and escaped line breaks.
    pub(super) fn blanks(&mut self) -> ScanResult<()> {
        loop {
            match self.peek() {
                Some(SymbolKind::Char(' ' | '\t')) => self.copy().map(|_| ())?,
                // Elsewhere the shell would join both sides to another token, such as `$` and `(`.
                Some(SymbolKind::Char('\\')) if self.is(1, '\n') && self.script.ends_with([' ', '\t']) => {
                    self.copy_many(2)?;
                }
                Some(SymbolKind::Char('\r')) => {
                    return self.reject("carriage return in the command; end lines with a line feed");
                }
                _ => return Ok(()),
            }
        }
    }

    /// Copies blanks, line breaks and comments.
    pub(super) fn line_gap(&mut self) -> ScanResult<()> {
        loop {
            self.blanks()?;
            match self.peek() {
                Some(SymbolKind::Char('\n')) => self.line_break()?,
                Some(SymbolKind::Char('#')) => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// Copies a comment and leaves its values out.
    pub(super) fn comment(&mut self) -> ScanResult<()> {
        loop {
            match self.peek() {
                None | Some(SymbolKind::Char('\n')) => return Ok(()),
                Some(SymbolKind::Value(_)) => self.next += 1,
                Some(SymbolKind::Char(_)) => self.copy().map(|_| ())?,
            }
        }
    }

    /// Copies a name of letters, digits and `_`.
    pub(super) fn name(&mut self) -> ScanResult<String> {
        let mut name = String::new();
        while let Some(SymbolKind::Char(c)) = self.peek() {
            if !c.is_ascii_alphanumeric() && c != '_' {
                break;
            }
            name.push(self.copy()?);
        }
        Ok(name)
    }

    /// Runs `inner` one nesting level deeper.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> ScanResult<T>) -> ScanResult<T> {
        if self.depth >= MAX_DEPTH {
            return self.reject(format!("nesting limit ({MAX_DEPTH}) exceeded"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn backtick<T>(&self) -> ScanResult<T> {
        self.reject("backticks are unsupported in a command with references; write `$(…)`")
    }

    pub(super) fn arithmetic<T>(&self, construct: &str) -> ScanResult<T> {
        self.reject(format!(
            "`{construct}` evaluates values as code; use `expr`, `awk -v n={{{{name}}}}` or a script tool"
        ))
    }
}

/// Returns the name of the variable that carries a value.
pub(super) fn variable(number: usize) -> String {
    format!("HAFT_V{}", number + 1)
}
