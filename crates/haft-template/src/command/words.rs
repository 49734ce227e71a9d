//! Words: quotes, variables and substitutions.

use super::super::variables::is_variable;
use super::commands::End;
use super::scanner::{ScanError, ScanResult, Scanner, VariableRead};
use super::symbols::SymbolKind;

/// The characters that end an unquoted word, besides `<` and `>`.
pub(super) const BREAKS: [char; 9] = [' ', '\t', '\n', ';', '&', '|', '(', ')', '\r'];

const ESCAPED_REFERENCE: &str = "backslash before `{{`; remove it, values need no escaping";

/// What is known of a word before the shell expands it.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a word")]
pub(super) struct Word {
    pub(super) at: usize,
    /// The text before the first value or variable, without quotes.
    pub(super) prefix: String,
    /// The text before the first quote, value or variable.
    bare: String,
    quoted: bool,
    /// Whether it has variables or substitutions.
    pub(super) computed: bool,
    /// Whether the shell may expand it to another text: patterns, braces, escapes in `$'…'`.
    pub(super) expands: bool,
    /// Whether it has an unquoted `{`, which may expand to several words.
    pub(super) braces: bool,
    /// Whether the shell may split it into several words.
    pub(super) split: bool,
    pub(super) values: Vec<usize>,
}

impl Word {
    /// Returns the text of a word without values and variables.
    pub(super) fn literal(&self) -> Option<&str> {
        (!self.computed && self.values.is_empty()).then_some(self.prefix.as_str())
    }

    /// Returns the text of an unquoted literal word: only such a word can be a keyword.
    pub(super) fn keyword(&self) -> Option<&str> {
        self.literal().filter(|_| !self.quoted)
    }

    /// Returns the variable that the word assigns: `NAME=…` or `NAME+=…`.
    pub(super) fn assigned(&self) -> Option<&str> {
        let (name, _) = self.bare.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        is_variable(name).then_some(name)
    }

    /// Returns whether the word starts like an element of an array.
    pub(super) fn is_element(&self) -> bool {
        self.bare.split_once('[').is_some_and(|(name, _)| is_variable(name))
    }

    /// Returns whether the value or variable in the word starts it, so that its first character decides.
    pub(super) fn starts_with_value(&self) -> bool {
        // After a lone `-` a value that starts with `-` makes a long option.
        self.prefix.is_empty() || self.prefix == "-" || self.braces
    }

    /// Returns whether the word starts with literal text that is not an option.
    pub(super) fn has_text_prefix(&self) -> bool {
        !self.prefix.is_empty() && !self.prefix.starts_with('-')
    }

    pub(super) fn rejection(&self, message: impl Into<String>) -> ScanError {
        ScanError { at: self.at, message: message.into() }
    }

    fn literal_char(&mut self, c: char) {
        if !self.computed && self.values.is_empty() {
            self.prefix.push(c);
        }
    }

    fn bare_char(&mut self, c: char) {
        if !self.quoted && !self.computed && self.values.is_empty() {
            self.bare.push(c);
        }
        self.literal_char(c);
    }
}

/// The quotes around a `$`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    Double,
    HereDocument,
}

impl Scanner<'_> {
    /// Copies a word.
    pub(super) fn word(&mut self) -> ScanResult<Word> {
        let start = self.position();
        let mut word = Word { at: self.at(), ..Word::default() };
        while let Some(symbol) = self.peek() {
            let SymbolKind::Char(c) = symbol else {
                word.values.extend(self.value("\"", "\""));
                continue;
            };
            match c {
                '<' | '>' if self.is(1, '(') => {
                    self.copy_many(2)?;
                    self.substitution()?;
                    // The shell puts a path there, which is never read as an option.
                    "/dev/fd/".chars().for_each(|c| word.literal_char(c));
                    word.computed = true;
                }
                '<' | '>' => break,
                _ if BREAKS.contains(&c) => break,
                '\\' if self.is_value(1) => return self.reject(ESCAPED_REFERENCE),
                '\\' if self.is(1, '\n') => {
                    return self.reject("put a space before the backslash that continues a line");
                }
                '\\' => {
                    self.copy()?;
                    word.quoted = true;
                    let c = self.copy()?;
                    word.literal_char(c);
                }
                '\'' => self.single_quotes(&mut word)?,
                '"' => self.double_quotes(&mut word)?,
                '$' => self.dollar(Quotes::None, &mut word)?,
                '`' => return self.backtick(),
                _ => {
                    word.expands |= matches!(c, '*' | '?' | '[' | '{' | '}');
                    word.braces |= c == '{';
                    self.copy()?;
                    word.bare_char(c);
                }
            }
        }
        if self.position() == start {
            return self.reject("expected a word");
        }
        Ok(word)
    }

    fn single_quotes(&mut self, word: &mut Word) -> ScanResult<()> {
        let start = self.at();
        word.quoted = true;
        self.copy()?;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return unclosed(start, "`'`"),
                Some(SymbolKind::Value(_)) => {
                    text.push(' ');
                    word.values.extend(self.value("'\"", "\"'"));
                }
                Some(SymbolKind::Char(_)) => match self.copy()? {
                    '\'' => break,
                    c => {
                        text.push(c);
                        word.literal_char(c);
                    }
                },
            }
        }
        let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
        self.single_quoted.extend(names.map(|(name, _)| name.to_owned()).filter(|name| is_variable(name)));
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> ScanResult<()> {
        let start = self.at();
        word.quoted = true;
        self.copy()?;
        loop {
            match self.peek() {
                None => return unclosed(start, "`\"`"),
                Some(SymbolKind::Value(_)) => word.values.extend(self.value("", "")),
                Some(SymbolKind::Char('"')) => return self.copy().map(|_| ()),
                Some(SymbolKind::Char('\\')) => self.escaped_in_double_quotes(word)?,
                Some(SymbolKind::Char('$')) => self.dollar(Quotes::Double, word)?,
                Some(SymbolKind::Char('`')) => return self.backtick(),
                Some(SymbolKind::Char(_)) => {
                    let c = self.copy()?;
                    word.literal_char(c);
                }
            }
        }
    }

    pub(super) fn escaped_in_double_quotes(&mut self, word: &mut Word) -> ScanResult<()> {
        if self.is_value(1) {
            return self.reject(ESCAPED_REFERENCE);
        }
        self.copy()?;
        match self.copy()? {
            c @ ('$' | '`' | '"' | '\\') => word.literal_char(c),
            '\n' => {}
            c => ['\\', c].into_iter().for_each(|c| word.literal_char(c)),
        }
        Ok(())
    }

    /// Copies what starts with `$`.
    pub(super) fn dollar(&mut self, quotes: Quotes, word: &mut Word) -> ScanResult<()> {
        // `"$@"` expands to several words.
        let name_at = if self.is(1, '{') { 2 } else { 1 };
        let several = self.is(name_at, '@') || self.is(name_at, '*');
        match self.peek_at(1) {
            Some(SymbolKind::Value(_)) => {
                return self.reject("`$` directly before `{{`; write `\\$` for a dollar sign");
            }
            Some(SymbolKind::Char('\\')) if self.is(2, '\n') => {
                return self.reject("line continuation directly after `$` is unsupported");
            }
            Some(SymbolKind::Char('(')) if self.is(2, '(') => {
                let Some(length) = self.constant_arithmetic() else { return self.arithmetic("$((…))") };
                word.computed = true;
                return self.copy_many(length);
            }
            Some(SymbolKind::Char('[')) => return self.arithmetic("$[…]"),
            Some(SymbolKind::Char('(')) => {
                self.copy_many(2)?;
                self.substitution()?;
            }
            Some(SymbolKind::Char('{')) => self.parameter(quotes)?,
            Some(SymbolKind::Char('\'')) if quotes == Quotes::None => return self.ansi_quotes(word),
            Some(SymbolKind::Char('"')) if quotes == Quotes::None => {
                return self.reject("`$\"…\"` is unsupported; remove the `$`");
            }
            Some(SymbolKind::Char(c)) if c.is_ascii_alphabetic() || c == '_' => {
                let at = self.at();
                self.copy()?;
                let name = self.name()?;
                self.reads.push(VariableRead { at, name, optional: false });
            }
            // Numbers, which no value reaches.
            Some(SymbolKind::Char('#' | '?' | '$' | '!')) => {
                word.computed = true;
                return self.copy_many(2);
            }
            Some(SymbolKind::Char('@' | '*' | '-' | '0'..='9')) => self.copy_many(2)?,
            _ => {
                let c = self.copy()?;
                word.literal_char(c);
                return Ok(());
            }
        }
        word.computed = true;
        word.split |= quotes == Quotes::None || several;
        Ok(())
    }

    /// Returns the length of `$((…))` if it has only numbers and operators: no value and no variable is evaluated.
    fn constant_arithmetic(&self) -> Option<usize> {
        let mut depth = 0_usize;
        let mut offset = 1;
        loop {
            match self.peek_at(offset)? {
                SymbolKind::Char('(') => depth += 1,
                // The two last parentheses belong together.
                SymbolKind::Char(')') if depth == 2 => return self.is(offset + 1, ')').then_some(offset + 2),
                SymbolKind::Char(')') => depth -= 1,
                SymbolKind::Char(c) if c.is_ascii_digit() || " +-*/%<>=!&|^~?:,".contains(c) => {}
                _ => return None,
            }
            offset += 1;
        }
    }

    /// Copies `$'…'`.
    fn ansi_quotes(&mut self, word: &mut Word) -> ScanResult<()> {
        let start = self.at();
        word.quoted = true;
        self.copy_many(2)?;
        loop {
            match self.peek() {
                None => return unclosed(start, "`$'`"),
                Some(SymbolKind::Value(_)) => word.values.extend(self.value("'\"", "\"$'")),
                Some(SymbolKind::Char('\'')) => return self.copy().map(|_| ()),
                Some(SymbolKind::Char('\\')) if self.is_value(1) => return self.reject(ESCAPED_REFERENCE),
                Some(SymbolKind::Char(c)) => {
                    self.copy_many(if c == '\\' { 2 } else { 1 })?;
                    word.expands |= c == '\\';
                    word.literal_char(c);
                }
            }
        }
    }

    /// Copies the commands of `$(…)` or `<(…)` behind its opening.
    fn substitution(&mut self) -> ScanResult<()> {
        self.nested(|scanner| {
            scanner.pending.push(Vec::new());
            scanner.commands(End::Paren)?;
            if !scanner.pending.pop().unwrap_or_default().is_empty() {
                return scanner.reject("here-document in `$(…)` has to end before the `)`");
            }
            scanner.copy().map(|_| ())
        })
    }

    /// Copies `${…}`.
    fn parameter(&mut self, quotes: Quotes) -> ScanResult<()> {
        let at = self.at();
        self.copy_many(2)?;
        if self.is(0, '#') && !self.is(1, '}') {
            self.copy()?;
        }
        let name = match self.peek() {
            Some(SymbolKind::Char(c)) if c.is_ascii_alphanumeric() || c == '_' => self.name()?,
            Some(SymbolKind::Char('@' | '*' | '#' | '?' | '$' | '-')) => {
                self.copy().map(|_| String::new())?
            }
            _ => return self.unsupported_parameter(),
        };
        let colon = self.is(0, ':');
        if colon {
            self.copy()?;
        }
        let optional = match self.peek() {
            Some(SymbolKind::Char('-' | '=' | '+')) => true,
            Some(SymbolKind::Char('?')) => false,
            Some(SymbolKind::Char('}' | '#' | '%' | '/' | '^' | ',')) if !colon => false,
            Some(SymbolKind::Char(' ' | '0'..='9')) if colon => self.substring().map(|()| false)?,
            Some(SymbolKind::Char(_)) if colon => return self.arithmetic("${NAME:offset}"),
            _ => return self.unsupported_parameter(),
        };
        self.nested(|scanner| scanner.parameter_text(quotes))?;
        if is_variable(&name) {
            self.reads.push(VariableRead { at, name, optional });
        }
        Ok(())
    }

    /// Copies the numbers of `${NAME:offset:length}`.
    fn substring(&mut self) -> ScanResult<()> {
        while matches!(self.peek(), Some(SymbolKind::Char(' ' | ':' | '-' | '0'..='9'))) {
            self.copy()?;
        }
        if self.is(0, '}') { Ok(()) } else { self.arithmetic("${NAME:offset}") }
    }

    /// Copies the rest of `${…}` with its `}`.
    fn parameter_text(&mut self, quotes: Quotes) -> ScanResult<()> {
        let mut ignored = Word::default();
        loop {
            match self.peek() {
                Some(SymbolKind::Char('}')) if ignored.values.is_empty() => return self.copy().map(|_| ()),
                Some(SymbolKind::Char('\\')) if !self.is_value(1) => self.copy_many(2)?,
                Some(SymbolKind::Char('$')) => self.dollar(quotes, &mut ignored)?,
                Some(SymbolKind::Char('`')) => return self.backtick(),
                Some(SymbolKind::Char('"')) if quotes != Quotes::HereDocument => {
                    self.double_quotes(&mut ignored)?;
                }
                Some(SymbolKind::Char('\'' | '"' | '{' | '}' | '<' | '>' | '(')) => {
                    return self.unsupported_parameter();
                }
                Some(SymbolKind::Char(_)) => self.copy().map(|_| ())?,
                None | Some(SymbolKind::Value(_)) => return self.unsupported_parameter(),
            }
        }
    }

    fn unsupported_parameter<T>(&self) -> ScanResult<T> {
        if self.is_value(0) {
            return self.reject(
                "reference inside `${…}`; assign it first (`v={{name}}`), or write `{{name | default:…}}`",
            );
        }
        self.reject("this form of `${…}` is unsupported in a command with references; use a script tool")
    }
}

fn unclosed<T>(at: usize, quote: &str) -> ScanResult<T> {
    Err(ScanError { at, message: format!("{quote} is not closed") })
}
