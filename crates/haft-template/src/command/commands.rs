//! Command lists, compound commands and redirections.
//!
//! Only as much grammar as the rules need: where a command word is expected, where `case` patterns end in `)`, and
//! where here-documents begin. Keywords such as `then` and `done` are not matched; bash reports those errors.

use super::super::variables::is_variable;
use super::builtins::{SHELL_INPUT, reads_code};
use super::scanner::{ScanResult, Scanner};
use super::symbols::SymbolKind;
use super::words::{BREAKS, Word};

/// What ends a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Text,
    Paren,
    /// `;;` or `esac`.
    Case,
}

impl Scanner<'_> {
    /// Copies commands up to `end`; returns `true` where `esac` was the end. A closing `)` is not copied.
    pub(super) fn commands(&mut self, end: End) -> ScanResult<bool> {
        loop {
            self.blanks()?;
            let Some(symbol) = self.peek() else { return self.end_of_text(end) };
            match symbol {
                SymbolKind::Char('#') => self.comment()?,
                SymbolKind::Char('\n') => self.line_break()?,
                SymbolKind::Char(';') if end == End::Case && (self.is(1, ';') || self.is(1, '&')) => {
                    let length = if self.is(1, ';') && self.is(2, '&') { 3 } else { 2 };
                    self.copy_many(length)?;
                    return Ok(false);
                }
                SymbolKind::Char('&') if self.is(1, '>') => self.simple_command(None)?,
                SymbolKind::Char('<' | '>') if !self.is(1, '(') => self.simple_command(None)?,
                SymbolKind::Char(';' | '&' | '|') => self.copy().map(|_| ())?,
                SymbolKind::Char(')') if end == End::Paren => return Ok(false),
                SymbolKind::Char(')') => return self.reject("unexpected `)`"),
                SymbolKind::Char('(') if self.is(1, '(') => return self.arithmetic("((…))"),
                SymbolKind::Char('(') => {
                    self.copy()?;
                    self.nested(|scanner| scanner.commands(End::Paren))?;
                    self.copy()?;
                }
                _ => {
                    if self.command(end)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn end_of_text(&self, end: End) -> ScanResult<bool> {
        match end {
            End::Paren => self.reject("`(` is not closed"),
            End::Case => self.reject("`case` has no `esac`"),
            End::Text if self.pending.iter().any(|level| !level.is_empty()) => {
                self.reject("here-document has no text")
            }
            End::Text => Ok(false),
        }
    }

    /// Copies a keyword or a command; returns `true` for the `esac` that ends the list.
    fn command(&mut self, end: End) -> ScanResult<bool> {
        let word = self.word()?;
        match word.keyword() {
            Some(
                "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "{" | "}" | "!"
                | "time",
            ) => {}
            Some("esac") => return Ok(end == End::Case),
            Some("case") => self.nested(Self::case_command)?,
            Some("for" | "select") => self.loop_header()?,
            Some("function") => {
                self.blanks()?;
                let name = self.word()?;
                self.empty_parens()?;
                if name.literal().is_none() {
                    return Err(name.rejection("the name of a function has to be literal"));
                }
            }
            Some("[[") => self.conditional()?,
            Some("coproc") => return Err(word.rejection("`coproc` is unsupported; use a script tool")),
            _ => self.simple_command(Some(word))?,
        }
        Ok(false)
    }

    /// Copies the `()` of a function definition; returns whether there was one.
    fn empty_parens(&mut self) -> ScanResult<bool> {
        self.blanks()?;
        let found = self.is(0, '(') && self.is(1, ')');
        if found {
            self.copy_many(2)?;
        }
        Ok(found)
    }

    /// Copies `NAME in WORDS` of `for` and `select`.
    fn loop_header(&mut self) -> ScanResult<()> {
        self.blanks()?;
        if self.is(0, '(') {
            return self.arithmetic("for ((…))");
        }
        let name = self.word()?;
        match name.keyword() {
            Some(text) if is_variable(text) => self.set_variable(&name, text)?,
            _ => return Err(name.rejection("`for` needs a literal variable name")),
        }
        loop {
            self.blanks()?;
            match self.peek() {
                None | Some(SymbolKind::Char(';' | '\n')) => return Ok(()),
                Some(SymbolKind::Char('#')) => self.comment()?,
                Some(SymbolKind::Char('&' | '|' | '(' | ')' | '<' | '>')) if !self.is(1, '(') => {
                    return self.reject("expected `;` after the words of `for`");
                }
                _ => {
                    let word = self.word()?;
                    if word.keyword() == Some("do") {
                        return Ok(());
                    }
                    self.carry(&word);
                }
            }
        }
    }

    fn case_command(&mut self) -> ScanResult<()> {
        self.blanks()?;
        self.word()?;
        self.line_gap()?;
        if self.word()?.keyword() != Some("in") {
            return self.reject("expected `in` after the word of `case`");
        }
        loop {
            self.line_gap()?;
            if self.case_patterns()? || self.commands(End::Case)? {
                return Ok(());
            }
        }
    }

    /// Copies the patterns of one branch and their `)`; returns `true` for `esac`.
    fn case_patterns(&mut self) -> ScanResult<bool> {
        let mut first = !self.is(0, '(');
        if !first {
            self.copy()?;
            self.blanks()?;
        }
        loop {
            let word = self.word()?;
            match word.keyword() {
                Some("esac") if first => return Ok(true),
                Some("esac") => return Err(word.rejection("`esac` as a pattern is unsupported; quote it")),
                _ => first = false,
            }
            self.blanks()?;
            match self.peek() {
                Some(SymbolKind::Char('|')) if !self.is(1, '|') => self.copy().map(|_| ())?,
                Some(SymbolKind::Char(')')) => return self.copy().map(|_| false),
                _ => return self.reject("expected `)` after the pattern of `case`"),
            }
            self.blanks()?;
        }
    }

    /// Copies `[[ … ]]` behind its opening.
    fn conditional(&mut self) -> ScanResult<()> {
        let mut words: Vec<Word> = Vec::new();
        let mut parens = 0_usize;
        loop {
            self.blanks()?;
            match self.peek() {
                None => return self.reject("`[[` has no `]]`"),
                Some(SymbolKind::Char('\n')) => self.line_break()?,
                Some(SymbolKind::Char(c @ ('#' | ';' | '<' | '>')))
                    if self.is(1, '(') || "#;".contains(c) =>
                {
                    return self.reject(format!("`{c}` here is unsupported inside `[[ … ]]`; quote it"));
                }
                Some(SymbolKind::Char(c @ ('(' | ')' | '<' | '>' | '|' | '&'))) => {
                    parens = if c == ')' { parens.saturating_sub(1) } else { parens + usize::from(c == '(') };
                    self.copy()?;
                }
                Some(_) => {
                    let word = self.word()?;
                    if parens == 0 && word.keyword() == Some("]]") {
                        return check_conditional(&words);
                    }
                    words.push(word);
                }
            }
        }
    }

    /// Copies a simple command whose first word may have been read.
    fn simple_command(&mut self, first: Option<Word>) -> ScanResult<()> {
        let mut words: Vec<Word> = Vec::new();
        let mut next = first;
        loop {
            if let Some(word) = next.take() {
                let redirects = (self.is(0, '<') || self.is(0, '>')) && !self.is(1, '(');
                let is_descriptor = |text: &str| text.chars().all(|c| c.is_ascii_digit());
                if !(redirects && word.keyword().is_some_and(is_descriptor)) {
                    words.push(word);
                }
            }
            self.blanks()?;
            match self.peek() {
                Some(SymbolKind::Char('&')) if self.is(1, '>') => self.redirection(&words)?,
                Some(SymbolKind::Char('<' | '>')) if !self.is(1, '(') => self.redirection(&words)?,
                Some(SymbolKind::Char('(')) => return self.function_definition(&words),
                Some(SymbolKind::Char('#')) => self.comment()?,
                None => break,
                Some(SymbolKind::Char(c)) if BREAKS.contains(&c) => break,
                _ => next = Some(self.word()?),
            }
        }
        self.check_command(&words)
    }

    fn function_definition(&mut self, words: &[Word]) -> ScanResult<()> {
        match words {
            [name] if name.literal().is_some_and(|name| !name.contains('=')) && self.empty_parens()? => Ok(()),
            _ => self.reject("unexpected `(`: arrays and extended patterns are unsupported in a command with references; quote it, or use a script tool"),
        }
    }

    /// Copies a redirection.
    fn redirection(&mut self, words: &[Word]) -> ScanResult<()> {
        const OPERATORS: [&str; 12] = ["<", ">", "&", "&>", "&>>", ">>", ">|", "<>", ">&", "<&", "<<", "<<<"];
        let mut operator = String::new();
        while let Some(SymbolKind::Char(c @ ('<' | '>' | '&' | '|'))) = self.peek() {
            if !OPERATORS.contains(&format!("{operator}{c}").as_str()) {
                break;
            }
            operator.push(self.copy()?);
        }
        if operator == "<<" {
            return self.here_delimiter(reads_code(words));
        }
        self.blanks()?;
        let target = self.word()?;
        match operator.as_str() {
            // Bash expands the word behind `>&` twice.
            ">&" | "<&" if target.literal().is_none() => {
                let message =
                    format!("a value after `{operator}` is evaluated as code; write `> {{{{name}}}} 2>&1`");
                Err(target.rejection(message))
            }
            "<<<" if target.literal().is_none() && reads_code(words) => Err(target.rejection(SHELL_INPUT)),
            _ => Ok(()),
        }
    }
}

/// Rejects the operators of `[[ … ]]` that evaluate their operands.
fn check_conditional(words: &[Word]) -> ScanResult<()> {
    const EVALUATING: [&str; 7] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"];
    match words.iter().find(|word| word.keyword().is_some_and(|text| EVALUATING.contains(&text))) {
        Some(word) => {
            Err(word
                .rejection(format!("`{}` in `[[ … ]]` evaluates values as code; use `[ … ]`", word.prefix)))
        }
        None => Ok(()),
    }
}
