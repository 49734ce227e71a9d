//! Words: quotes, variables and substitutions.

use super::super::variables::is_variable;
use super::grammar::{End, Stop};
use super::pieces::SymbolKind;
use super::shell::{Scan, Shell};

/// Characters that end a word where they stand outside of quotes.
pub(super) const BREAKS: [char; 9] = [' ', '\t', '\n', ';', '&', '|', '(', ')', '\r'];

/// A word of a command, as far as it is known before the shell runs it.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a word, each set where it is seen"
)]
pub(super) struct Word {
    pub(super) at: usize,
    /// The text before the first value or variable, without its quotes.
    pub(super) prefix: String,
    /// The text before the first quote, value or variable.
    bare: String,
    quoted: bool,
    /// Whether the shell computes some of it: variables, substitutions, patterns.
    pub(super) computed: bool,
    /// Whether it has characters of a file name pattern or of a brace expansion.
    pub(super) pattern: bool,
    /// Whether it has a `{` outside of quotes, which may make several words of it.
    pub(super) braces: bool,
    /// Whether it reads anything but `PATH` and `HOME`.
    pub(super) foreign: bool,
    /// Whether the shell splits what it computes into several words.
    pub(super) split: bool,
    /// The values in it.
    pub(super) values: Vec<usize>,
}

impl Word {
    /// Returns the text of a word that has nothing else.
    pub(super) fn literal(&self) -> Option<&str> {
        (!self.computed && self.values.is_empty()).then_some(self.prefix.as_str())
    }

    /// Returns the text of a word without quotes: only such a word can be a keyword of the shell.
    pub(super) fn keyword(&self) -> Option<&str> {
        self.literal().filter(|_| !self.quoted)
    }

    /// Returns the variable that the word sets, if it is an assignment.
    pub(super) fn assigned(&self) -> Option<&str> {
        let (name, _) = self.bare.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        is_variable(name).then_some(name)
    }

    /// Tells whether the word starts like an element of an array, whose index is arithmetic.
    pub(super) fn is_element(&self) -> bool {
        self.bare.split_once('[').is_some_and(|(name, _)| is_variable(name))
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

/// In which quotes something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    /// Double quotes, or a here-document.
    Double,
}

impl Shell<'_> {
    /// Copies a word; there is one.
    pub(super) fn word(&mut self) -> Scan<Word> {
        let start = self.position();
        let mut word = Word { at: self.at(), ..Word::default() };
        while let Some(symbol) = self.peek() {
            let SymbolKind::Char(c) = symbol else {
                word.values.extend(self.value("\"", "\""));
                continue;
            };
            match c {
                '(' => return self.fault("`(` here: functions, arrays and extended patterns are not supported in a command template; write a script"),
                '<' | '>' if self.is(1, '(') => {
                    self.copy_many(2)?;
                    self.substitution()?;
                    // What the shell puts there never looks like an option.
                    "/dev/fd/".chars().for_each(|c| word.literal_char(c));
                    word.computed = true;
                    word.foreign = true;
                }
                '<' | '>' => break,
                _ if BREAKS.contains(&c) => break,
                '\\' => self.escaped(&mut word)?,
                '\'' => self.single_quotes(&mut word)?,
                '"' => self.double_quotes(&mut word)?,
                '$' => self.dollar(Quotes::None, &mut word)?,
                '`' => return self.backtick(),
                _ => {
                    word.pattern |= matches!(c, '*' | '?' | '[' | '{' | '}');
                    word.braces |= c == '{';
                    self.copy()?;
                    word.bare_char(c);
                }
            }
        }
        if self.position() == start {
            return self.fault("expected a word");
        }
        Ok(word)
    }

    fn escaped(&mut self, word: &mut Word) -> Scan<()> {
        if self.is_value(1) {
            return self.fault("a backslash before `{{`; leave it out, values need no escaping");
        }
        if self.is(1, '\n') {
            return self.fault("put a space before the backslash that continues a line");
        }
        self.copy()?;
        word.quoted = true;
        let c = self.copy()?;
        word.literal_char(c);
        Ok(())
    }

    fn single_quotes(&mut self, word: &mut Word) -> Scan<()> {
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
        self.unfilled.extend(braced_names(&text).map(str::to_owned));
        Ok(())
    }

    fn double_quotes(&mut self, word: &mut Word) -> Scan<()> {
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

    pub(super) fn escaped_in_double_quotes(&mut self, word: &mut Word) -> Scan<()> {
        if self.is_value(1) {
            return self.fault("a backslash before `{{`; leave it out, values need no escaping");
        }
        self.copy()?;
        match self.copy()? {
            c @ ('$' | '`' | '"' | '\\') => word.literal_char(c),
            '\n' => {}
            c => {
                word.literal_char('\\');
                word.literal_char(c);
            }
        }
        Ok(())
    }

    /// Copies what starts with `$`.
    pub(super) fn dollar(&mut self, quotes: Quotes, word: &mut Word) -> Scan<()> {
        // `"$@"` is as many words as there are arguments, `"${@}"` too.
        let name_at = if self.is(1, '{') { 2 } else { 1 };
        let several = self.is(name_at, '@') || self.is(name_at, '*');
        let read = self.uses.len();
        match self.peek_at(1) {
            Some(SymbolKind::Value(_)) => {
                return self.fault("`$` directly before `{{`; write `\\$` for a dollar sign");
            }
            Some(SymbolKind::Char('\\')) if self.is(2, '\n') => {
                return self.fault("a line continued directly behind `$`");
            }
            Some(SymbolKind::Char('(')) if self.is(2, '(') => return self.arithmetic("$((…))"),
            Some(SymbolKind::Char('[')) => return self.arithmetic("$[…]"),
            Some(SymbolKind::Char('(')) => {
                self.copy_many(2)?;
                self.substitution()?;
            }
            Some(SymbolKind::Char('{')) => self.parameter()?,
            Some(SymbolKind::Char('\'')) if quotes == Quotes::None => self.ansi_quotes(word)?,
            Some(SymbolKind::Char('"')) if quotes == Quotes::None => {
                return self.fault("`$\"…\"` is not supported; leave the `$` out");
            }
            Some(SymbolKind::Char(c)) if c.is_ascii_alphabetic() || c == '_' => {
                let at = self.at();
                self.copy()?;
                let name = self.name()?;
                self.reads(at, name, false);
            }
            Some(SymbolKind::Char('@' | '*' | '#' | '?' | '$' | '!' | '-' | '0'..='9')) => {
                self.copy_many(2)?;
            }
            _ => {
                let c = self.copy()?;
                word.literal_char(c);
                return Ok(());
            }
        }
        word.computed = true;
        word.split |= quotes == Quotes::None || several;
        let known = |name: &str| name == "PATH" || name == "HOME";
        word.foreign |= !matches!(self.uses.get(read..), Some([used]) if known(&used.name));
        Ok(())
    }

    /// Copies `$'…'`.
    fn ansi_quotes(&mut self, word: &mut Word) -> Scan<()> {
        let start = self.at();
        word.quoted = true;
        self.copy_many(2)?;
        loop {
            match self.peek() {
                None => return unclosed(start, "`$'`"),
                Some(SymbolKind::Value(_)) => word.values.extend(self.value("'\"", "\"$'")),
                Some(SymbolKind::Char('\'')) => return self.copy().map(|_| ()),
                Some(SymbolKind::Char('\\')) if self.is_value(1) => {
                    return self.fault("a backslash before `{{`; leave it out, values need no escaping");
                }
                Some(SymbolKind::Char('\\')) => self.copy_many(2)?,
                Some(SymbolKind::Char(_)) => self.copy().map(|_| ())?,
            }
        }
    }

    /// Copies the commands of `$(…)` or `<(…)` behind its opening.
    fn substitution(&mut self) -> Scan<()> {
        self.nested(|shell| {
            shell.waiting.push(Vec::new());
            let stop = shell.list(End::Paren)?;
            let level = shell.waiting.pop().unwrap_or_default();
            if stop != Stop::Paren || !level.is_empty() {
                return shell.fault("a here-document inside `$(…)` has to end inside of it");
            }
            shell.copy().map(|_| ())
        })
    }

    /// Copies `${…}`, of which only the simple forms are known.
    fn parameter(&mut self) -> Scan<()> {
        const FORMS: &str = "is not supported in a command template; write `${NAME}` or `${NAME:-text}`";
        let at = self.at();
        self.copy_many(2)?;
        if self.is(0, '#') && !self.is(1, '}') {
            self.copy()?;
        }
        let name = match self.peek() {
            Some(SymbolKind::Char(c)) if c.is_ascii_alphabetic() || c == '_' => self.name()?,
            Some(SymbolKind::Char('0'..='9' | '@' | '*' | '#' | '?' | '$' | '-')) => {
                self.copy()?;
                String::new()
            }
            Some(SymbolKind::Value(_)) => return self.in_parameter(),
            _ => return self.fault(format!("this form of `${{…}}` {FORMS}")),
        };
        let colon = self.is(0, ':');
        if colon {
            self.copy()?;
        }
        let optional = match self.peek() {
            Some(SymbolKind::Char('-' | '=' | '+')) => true,
            Some(SymbolKind::Char('?')) => false,
            Some(SymbolKind::Char('}' | '#' | '%' | '/' | '^' | ',')) if !colon => false,
            Some(SymbolKind::Value(_)) => return self.in_parameter(),
            _ => return self.fault(format!("this form of `${{…}}` {FORMS}")),
        };
        loop {
            match self.peek() {
                Some(SymbolKind::Char('}')) => break,
                Some(SymbolKind::Value(_)) => return self.in_parameter(),
                Some(SymbolKind::Char('\'' | '"' | '`' | '$' | '\\' | '{' | '\n')) | None => {
                    return self.fault("quotes, variables and line breaks inside `${…}` are not supported in a command template");
                }
                Some(SymbolKind::Char(_)) => self.copy().map(|_| ())?,
            }
        }
        self.copy()?;
        if !name.is_empty() {
            self.reads(at, name, optional);
        }
        Ok(())
    }

    fn in_parameter<T>(&self) -> Scan<T> {
        self.fault("a value inside `${…}` would be read as a pattern or as arithmetic; write `{{x | default:…}}` instead")
    }

    pub(super) fn name(&mut self) -> Scan<String> {
        let mut name = String::new();
        while let Some(SymbolKind::Char(c)) = self.peek() {
            if !c.is_ascii_alphanumeric() && c != '_' {
                break;
            }
            name.push(self.copy()?);
        }
        Ok(name)
    }

    pub(super) fn backtick<T>(&self) -> Scan<T> {
        self.fault("backticks are not supported in a command template; write `$(…)`")
    }

    pub(super) fn arithmetic<T>(&self, what: &str) -> Scan<T> {
        self.fault(format!("`{what}` is not supported in a command template, as the shell runs commands that stand in the values of arithmetic; write a script"))
    }
}

fn unclosed<T>(at: usize, what: &str) -> Scan<T> {
    Err(super::shell::Fault { at, message: format!("{what} is not closed") })
}

/// Returns the names of all `${NAME}` in a text.
fn braced_names(text: &str) -> impl Iterator<Item = &str> {
    text.split("${")
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| name)
        .filter(|name| is_variable(name))
}
