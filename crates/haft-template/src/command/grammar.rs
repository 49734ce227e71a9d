//! Lists of commands, compound commands and redirections.

use super::super::variables::is_variable;
use super::pieces::SymbolKind;
use super::rules::{check_target, refuse};
use super::shell::{Scan, Shell};
use super::word::{BREAKS, Word};

/// What a list of commands ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Text,
    Paren,
    Words(&'static [&'static str]),
    /// `;;` or `esac`.
    Case,
}

/// What a list has ended with. Words and `;;` are copied, a `)` is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    Text,
    Paren,
    Word(String),
    Case,
}

/// Words that start or divide compound commands, or that no template may have.
const KEYWORDS: [&str; 24] = [
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "case", "esac", "in", "{",
    "}", "!", "time", "select", "function", "coproc", "[[", "]]", "((", "))",
];

impl Shell<'_> {
    /// Copies commands up to an end.
    pub(super) fn list(&mut self, end: End) -> Scan<Stop> {
        loop {
            self.blanks()?;
            let Some(symbol) = self.peek() else {
                return if end == End::Text { self.end_of_text() } else { self.fault(missing(end)) };
            };
            match symbol {
                SymbolKind::Char('#') => self.comment()?,
                SymbolKind::Char('\n') => self.line_break()?,
                SymbolKind::Char(';') if self.is(1, ';') || self.is(1, '&') => {
                    if end != End::Case {
                        return self.fault("`;;` outside of `case`");
                    }
                    let three = self.is(1, ';') && self.is(2, '&');
                    self.copy_many(if three { 3 } else { 2 })?;
                    return Ok(Stop::Case);
                }
                SymbolKind::Char('&') if self.is(1, '>') => self.simple(Vec::new())?,
                SymbolKind::Char(';' | '&' | '|') => self.copy().map(|_| ())?,
                SymbolKind::Char(')') if end == End::Paren => return Ok(Stop::Paren),
                SymbolKind::Char(')') => return self.fault("`)` without `(`"),
                SymbolKind::Char('(') if self.is(1, '(') => return self.arithmetic("((…))"),
                SymbolKind::Char('(') => self.subshell()?,
                SymbolKind::Char('<' | '>') if !self.is(1, '(') => self.simple(Vec::new())?,
                _ => {
                    if let Some(stop) = self.command(end)? {
                        return Ok(stop);
                    }
                }
            }
        }
    }

    fn end_of_text(&self) -> Scan<Stop> {
        if self.waiting.iter().any(|level| !level.is_empty()) {
            return self.fault("the here-document has no text");
        }
        Ok(Stop::Text)
    }

    pub(super) fn comment(&mut self) -> Scan<()> {
        while !matches!(self.peek(), None | Some(SymbolKind::Char('\n'))) {
            if self.value("", "").is_none() {
                self.copy()?;
            }
        }
        Ok(())
    }

    fn subshell(&mut self) -> Scan<()> {
        self.copy()?;
        self.nested(|shell| shell.list(End::Paren))?;
        self.copy()?;
        self.redirections()
    }

    /// Copies one command, or the word that ends the list.
    fn command(&mut self, end: End) -> Scan<Option<Stop>> {
        let word = self.word()?;
        let Some(keyword) = word.keyword().filter(|text| KEYWORDS.contains(text)).map(str::to_owned) else {
            self.simple(vec![word])?;
            return Ok(None);
        };
        let ends = match end {
            End::Words(words) => words.contains(&keyword.as_str()),
            End::Case => keyword == "esac",
            End::Text | End::Paren => false,
        };
        if ends {
            return Ok(Some(Stop::Word(keyword)));
        }
        let refused =
            |why: &str| Err(super::shell::Fault { at: word.at, message: format!("`{keyword}` {why}") });
        match keyword.as_str() {
            "!" => {}
            "time" => self.time_options()?,
            "if" => self.nested(Self::condition)?,
            "while" | "until" => self.nested(Self::repetition)?,
            "for" => self.nested(Self::each)?,
            "case" => self.nested(Self::choice)?,
            "{" => {
                self.nested(|shell| shell.list(End::Words(&["}"])))?;
                self.redirections()?;
            }
            "[[" => {
                return refused(
                    "is not supported in a command template, as it reads values as patterns and arithmetic; write `[ … ]`",
                );
            }
            "select" | "function" | "coproc" => {
                return refused("is not supported in a command template; write a script");
            }
            _ => return refused("is out of place"),
        }
        Ok(None)
    }

    /// Copies `-p` and `--` behind `time`; the command follows.
    fn time_options(&mut self) -> Scan<()> {
        for known in [&["-p", "--"][..], &["--"]] {
            self.blanks()?;
            if !self.is(0, '-') {
                return Ok(());
            }
            let word = self.word()?;
            match word.keyword() {
                Some("--") => return Ok(()),
                Some(text) if known.contains(&text) => {}
                _ => return refuse(&word, "`time` takes no option but `-p` in a command template"),
            }
        }
        Ok(())
    }

    fn condition(&mut self) -> Scan<()> {
        self.list(End::Words(&["then"]))?;
        loop {
            match self.list(End::Words(&["elif", "else", "fi"]))? {
                Stop::Word(word) if word == "elif" => self.list(End::Words(&["then"])).map(|_| ())?,
                Stop::Word(word) if word == "else" => {
                    self.list(End::Words(&["fi"]))?;
                    return self.redirections();
                }
                _ => return self.redirections(),
            }
        }
    }

    fn repetition(&mut self) -> Scan<()> {
        self.list(End::Words(&["do"]))?;
        self.list(End::Words(&["done"]))?;
        self.redirections()
    }

    fn each(&mut self) -> Scan<()> {
        self.blanks()?;
        if self.is(0, '(') {
            return self.arithmetic("for ((…))");
        }
        let name = self.word()?;
        match name.keyword() {
            Some(text) if is_variable(text) => self.set_by_shell(&name, text)?,
            _ => return self.fault("`for` needs the name of a variable"),
        }
        self.blanks()?;
        if !self.is(0, ';') && !self.is(0, '\n') {
            let word = self.word()?;
            match word.keyword() {
                Some("in") => self.words()?,
                Some("do") => {
                    self.list(End::Words(&["done"]))?;
                    return self.redirections();
                }
                _ => return self.fault("expected `in` behind the variable of `for`"),
            }
        }
        self.repetition()
    }

    /// Copies words up to the end of the line or a `;`.
    fn words(&mut self) -> Scan<()> {
        loop {
            self.blanks()?;
            match self.peek() {
                None | Some(SymbolKind::Char(';' | '\n')) => return Ok(()),
                Some(SymbolKind::Char('#')) => self.comment()?,
                Some(SymbolKind::Char('&' | '|' | '(' | ')')) => {
                    return self.fault("expected `;` behind the words of `for`");
                }
                Some(SymbolKind::Char('<' | '>')) if !self.is(1, '(') => {
                    return self.fault("expected `;` behind the words of `for`");
                }
                _ => {
                    let word = self.word()?;
                    self.carry(&word);
                }
            }
        }
    }

    fn choice(&mut self) -> Scan<()> {
        self.blanks()?;
        self.word()?;
        self.gap()?;
        if self.word()?.keyword() != Some("in") {
            return self.fault("expected `in` behind the word of `case`");
        }
        loop {
            self.gap()?;
            if self.is(0, '(') {
                self.copy()?;
                self.blanks()?;
            }
            if self.patterns()? || self.list(End::Case)? != Stop::Case {
                return self.redirections();
            }
        }
    }

    /// Copies the patterns of one branch and their `)`; tells whether it was `esac`.
    fn patterns(&mut self) -> Scan<bool> {
        loop {
            let word = self.word()?;
            if word.keyword() == Some("esac") {
                return Ok(true);
            }
            self.blanks()?;
            match self.peek() {
                Some(SymbolKind::Char('|')) if !self.is(1, '|') => self.copy().map(|_| ())?,
                Some(SymbolKind::Char(')')) => return self.copy().map(|_| false),
                _ => return self.fault("expected `)` behind the pattern of `case`"),
            }
            self.blanks()?;
        }
    }

    /// Copies blanks, line breaks and comments.
    fn gap(&mut self) -> Scan<()> {
        loop {
            self.blanks()?;
            match self.peek() {
                Some(SymbolKind::Char('\n')) => self.line_break()?,
                Some(SymbolKind::Char('#')) => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// Copies a simple command whose first word may have been read.
    fn simple(&mut self, mut words: Vec<Word>) -> Scan<()> {
        self.descriptor(&mut words)?;
        loop {
            self.blanks()?;
            match self.peek() {
                Some(SymbolKind::Char('&')) if self.is(1, '>') => self.redirection()?,
                Some(SymbolKind::Char('<' | '>')) if !self.is(1, '(') => self.redirection()?,
                Some(SymbolKind::Char('(')) => {
                    return self.fault("`(` here: functions and arrays are not supported in a command template; write a script");
                }
                Some(SymbolKind::Char('#')) => self.comment()?,
                None => break,
                Some(SymbolKind::Char(c)) if BREAKS.contains(&c) => break,
                _ => {
                    words.push(self.word()?);
                    self.descriptor(&mut words)?;
                }
            }
        }
        self.check_command(&words)
    }

    /// Takes back a word that is the number of a file descriptor, as in `2>`.
    fn descriptor(&self, words: &mut Vec<Word>) -> Scan<()> {
        let redirects = (self.is(0, '<') || self.is(0, '>')) && !self.is(1, '(');
        let Some(word) = words.last().and_then(Word::keyword).filter(|_| redirects) else { return Ok(()) };
        if word.starts_with('{') {
            return self.fault("`{name}>` is not supported in a command template");
        }
        if word.chars().all(|c| c.is_ascii_digit()) {
            words.pop();
        }
        Ok(())
    }

    fn redirections(&mut self) -> Scan<()> {
        loop {
            self.blanks()?;
            let mut digits = 0;
            while matches!(self.peek_at(digits), Some(SymbolKind::Char('0'..='9'))) {
                digits += 1;
            }
            let both = digits == 0 && self.is(0, '&') && self.is(1, '>');
            if !both && !self.is(digits, '<') && !self.is(digits, '>') {
                return Ok(());
            }
            self.copy_many(digits)?;
            self.redirection()?;
        }
    }

    /// Copies `> file` and its kin.
    fn redirection(&mut self) -> Scan<()> {
        let mut operator = String::new();
        while let Some(SymbolKind::Char(c @ ('<' | '>' | '&' | '|'))) = self.peek() {
            let longer = format!("{operator}{c}");
            if !["<", ">", "&", "&>", "&>>", ">>", ">|", "<>", ">&", "<&", "<<", "<<<"]
                .contains(&longer.as_str())
            {
                break;
            }
            operator.push(self.copy()?);
        }
        if operator == "<<" {
            let tabs = self.is(0, '-');
            if tabs {
                self.copy()?;
            }
            return self.here_delimiter(tabs);
        }
        self.blanks()?;
        if self
            .peek()
            .is_none_or(|symbol| matches!(symbol, SymbolKind::Char(c) if BREAKS.contains(&c) || c == '#'))
        {
            return self.fault(format!("expected a file behind `{operator}`"));
        }
        let target = self.word()?;
        check_target(&operator, &target)
    }
}

fn missing(end: End) -> String {
    match end {
        End::Text => "unexpected end".to_owned(),
        End::Paren => "`(` has no `)`".to_owned(),
        End::Words(words) => format!("expected `{}` before the end", words.join("` or `")),
        End::Case => "`case` has no `esac`".to_owned(),
    }
}
