//! The scanner of shell text: reads symbols, writes what the shell will read, and knows where it stands.

use super::heredoc::HereDocument;
use super::pieces::{Symbol, SymbolKind};

/// How deep substitutions, groups and quotes may nest.
const MAX_DEPTH: usize = 24;

/// Why a command is refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: String,
}

pub(super) type Scan<T> = Result<T, Fault>;

/// A variable that the command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) at: usize,
    pub(super) name: String,
    /// Whether the command says what to do without it.
    pub(super) optional: bool,
}

/// The state of a scan.
pub(super) struct Shell<'a> {
    symbols: &'a [Symbol],
    next: usize,
    depth: usize,
    /// How many constructs that end with their line are open.
    pub(super) one_line: usize,
    /// The here-documents that wait for the end of their line, per substitution.
    pub(super) waiting: Vec<Vec<HereDocument>>,
    /// The text for the shell.
    pub(super) out: String,
    /// The variables that are read.
    pub(super) uses: Vec<Use>,
    /// The variables that the command sets.
    pub(super) sets: Vec<String>,
    /// The values that must not start with `-`, as a program would take them for an option.
    pub(super) guarded: Vec<usize>,
    /// The values that variables may carry to a program as a word of its own.
    pub(super) carried: Vec<usize>,
    /// Whether a program gets a variable as a word, and could take what is in it for an option.
    pub(super) open: bool,
    /// The names of `${NAME}` that stand in single quotes.
    pub(super) unfilled: Vec<String>,
}

impl<'a> Shell<'a> {
    pub(super) fn new(symbols: &'a [Symbol]) -> Self {
        Self {
            symbols,
            next: 0,
            depth: 0,
            one_line: 0,
            waiting: vec![Vec::new()],
            out: String::new(),
            uses: Vec::new(),
            sets: Vec::new(),
            guarded: Vec::new(),
            carried: Vec::new(),
            open: false,
            unfilled: Vec::new(),
        }
    }

    /// Returns the symbol that is `ahead` symbols away.
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

    /// Returns how many symbols have been read.
    pub(super) fn position(&self) -> usize {
        self.next
    }

    /// Returns where the next symbol stands in the command.
    pub(super) fn at(&self) -> usize {
        let last = self.symbols.last().map_or(0, |symbol| symbol.at);
        self.symbols.get(self.next).map_or(last, |symbol| symbol.at)
    }

    pub(super) fn fault<T>(&self, message: impl Into<String>) -> Scan<T> {
        Err(Fault { at: self.at(), message: message.into() })
    }

    /// Copies the next symbol, which is a character.
    pub(super) fn copy(&mut self) -> Scan<char> {
        let Some(SymbolKind::Char(c)) = self.peek() else {
            return self.fault("the command ends in the middle of something");
        };
        if c == '\n' {
            if self.one_line > 0 {
                return self.fault(
                    "a line break inside `$(…)` in a here-document is not supported; write it on one line",
                );
            }
            if self.waiting.iter().any(|level| !level.is_empty()) {
                return self.fault("a line break inside of quotes or `$(…)`, or an escaped one, after `<<` is not supported; start the here-document on the last line of the command");
            }
        }
        if c == '\0' {
            return self.fault("a NUL character cannot stand in a command");
        }
        self.out.push(c);
        self.next += 1;
        Ok(c)
    }

    /// Copies that many characters.
    pub(super) fn copy_many(&mut self, count: usize) -> Scan<()> {
        (0..count).try_for_each(|_| self.copy().map(|_| ()))
    }

    /// Copies the line break that ends a command; the here-documents of the line follow it.
    pub(super) fn line_break(&mut self) -> Scan<()> {
        let documents = self.waiting.last_mut().map(std::mem::take).unwrap_or_default();
        self.copy()?;
        documents.into_iter().try_for_each(|document| self.here_document(&document))
    }

    /// Writes a value between `before` and `after`.
    pub(super) fn value(&mut self, before: &str, after: &str) -> Option<usize> {
        let Some(SymbolKind::Value(number)) = self.peek() else { return None };
        for text in [before, "${", &variable(number), "}", after] {
            self.out.push_str(text);
        }
        self.next += 1;
        Some(number)
    }

    /// Copies spaces, tabs and escaped line breaks.
    pub(super) fn blanks(&mut self) -> Scan<()> {
        loop {
            match self.peek() {
                Some(SymbolKind::Char(' ' | '\t')) => self.copy().map(|_| ())?,
                // Elsewhere the shell would join what stands on both sides to another symbol: `$` and `(`.
                Some(SymbolKind::Char('\\')) if self.is(1, '\n') && self.out.ends_with([' ', '\t']) => {
                    self.copy_many(2)?;
                }
                Some(SymbolKind::Char('\r')) => {
                    return self.fault("a carriage return; end lines with a line feed only");
                }
                _ => return Ok(()),
            }
        }
    }

    /// Runs what is nested one level deeper.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Scan<T>) -> Scan<T> {
        if self.depth >= MAX_DEPTH {
            return self.fault(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Remembers that a variable is read.
    pub(super) fn reads(&mut self, at: usize, name: String, optional: bool) {
        self.uses.push(Use { at, name, optional });
    }
}

/// Returns the name of the variable that carries a value.
pub(super) fn variable(number: usize) -> String {
    format!("HAFT_V{}", number + 1)
}
