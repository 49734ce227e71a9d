//! Finds the secrets that a script reads. The scan is tolerant and rejects nothing.

use super::python::PythonTemplate;
use super::reference::Scope;
use super::variables::{SecretName, add_secret, is_upper_case, is_variable, may_be_secret};
use haft_core::implementation::ScriptRuntime;

/// Commands whose arguments are names of variables that they set.
const SETTERS: [&str; 13] = [
    "read",
    "declare",
    "local",
    "export",
    "typeset",
    "readonly",
    "mapfile",
    "readarray",
    "for",
    "select",
    "getopts",
    "printf",
    "unset",
];
/// Words that may precede a command.
const OPENERS: [&str; 9] = ["then", "do", "else", "if", "elif", "while", "until", "!", "{"];

/// Returns the secrets that a script reads.
///
/// In bash: `$NAME` and `${NAME…}` in capitals, outside of single quotes, comments and quoted here-documents, that
/// is not a declared argument, not set in the body, and not a variable of the shell. In python:
/// `os.environ["NAME"]`, `os.environ.get("NAME")`, `os.getenv("NAME")` and `${NAME}` in string literals.
pub fn script_secrets(runtime: ScriptRuntime, body: &str, scope: &Scope) -> Vec<SecretName> {
    let mut names = match runtime {
        ScriptRuntime::Bash => bash_secrets(body, scope),
        ScriptRuntime::Python => python_secrets(body, scope),
    };
    names.sort();
    names
}

pub(super) fn bash_secrets(body: &str, scope: &Scope) -> Vec<SecretName> {
    let mut names = Vec::new();
    let mut reader = Bash { chars: body.chars().collect(), at: 0, uses: Vec::new() };
    reader.read();
    let sets = bash_sets(body);
    for (name, required) in reader.uses {
        let known = scope.declares(&name) || sets.iter().any(|set| *set == name);
        if !known && is_upper_case(&name) && may_be_secret(&name) {
            add_secret(&mut names, &name, required);
        }
    }
    names
}

/// Finds the variables that a body sets, except from their own values.
fn bash_sets(body: &str) -> Vec<&str> {
    let mut sets = Vec::new();
    for part in body.split(['\n', ';', '|', '&', '(', ')']) {
        let mut first = true;
        let mut setter = false;
        for word in part.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let name = name.split('[').next().unwrap_or_default();
            let name = name.strip_suffix('+').unwrap_or(name);
            let assigns = word.contains('=') && (first || setter);
            let from_itself = value.contains(&format!("${name}")) || value.contains(&format!("${{{name}"));
            if (assigns || setter) && is_variable(name) && !from_itself {
                sets.push(name);
            }
            setter |= first && SETTERS.contains(&word);
            first = first && (assigns || OPENERS.contains(&word));
        }
    }
    sets
}

/// The quotes around the current position.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Code,
    Double,
}

struct Bash {
    chars: Vec<char>,
    at: usize,
    /// The names, and whether they are required.
    uses: Vec<(String, bool)>,
}

impl Bash {
    fn read(&mut self) {
        let mut inside = vec![Inside::Code];
        let mut documents: Vec<(String, bool)> = Vec::new();
        while let Some(c) = self.char(0) {
            let code = inside.last().is_none_or(|inside| *inside == Inside::Code);
            match c {
                '\\' => self.at += 2,
                '$' if self.char(1) == Some('(') => {
                    inside.push(Inside::Code);
                    self.at += 2;
                }
                '$' if code && self.char(1) == Some('\'') => self.skip_ansi(),
                '$' => self.variable(),
                '"' if code => {
                    inside.push(Inside::Double);
                    self.at += 1;
                }
                '"' => {
                    inside.pop();
                    self.at += 1;
                }
                '\'' if code => self.skip_to('\''),
                '#' if code && self.starts_word() => self.skip_line(),
                '<' if code && self.char(1) == Some('<') => documents.extend(self.document()),
                '\n' if code && !documents.is_empty() => {
                    self.at += 1;
                    for (end, raw) in std::mem::take(&mut documents) {
                        self.body(&end, raw);
                    }
                }
                '(' if code => {
                    inside.push(Inside::Code);
                    self.at += 1;
                }
                ')' if code => {
                    if inside.len() > 1 {
                        inside.pop();
                    }
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    fn char(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn starts_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        before.is_none_or(|c| c.is_whitespace() || ";|&()".contains(*c))
    }

    fn skip_line(&mut self) {
        while self.char(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn skip_to(&mut self, end: char) {
        self.at += 1;
        while self.char(0).is_some_and(|c| c != end) {
            self.at += 1;
        }
        self.at += 1;
    }

    fn skip_ansi(&mut self) {
        self.at += 2;
        while let Some(c) = self.char(0) {
            self.at += if c == '\\' { 2 } else { 1 };
            if c == '\'' {
                return;
            }
        }
    }

    /// Reads `$NAME` or the start of `${NAME…}`.
    fn variable(&mut self) {
        self.at += 1;
        let braced = self.char(0) == Some('{');
        if braced {
            self.at += 1;
            if self.char(0) == Some('#') {
                self.at += 1;
            }
        }
        let mut name = String::new();
        while let Some(c) = self.char(0).filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
            self.at += 1;
        }
        let operator = if self.char(0) == Some(':') { self.char(1) } else { self.char(0) };
        let fallback = braced && matches!(operator, Some('-' | '=' | '+'));
        if !name.is_empty() {
            self.uses.push((name, !fallback));
        }
    }

    /// Reads `<<EOF`; returns the delimiter, and whether it is quoted.
    fn document(&mut self) -> Option<(String, bool)> {
        self.at += 2;
        if self.char(0) == Some('<') {
            self.at += 1;
            return None;
        }
        while self.char(0).is_some_and(|c| matches!(c, '-' | ' ' | '\t')) {
            self.at += 1;
        }
        let (mut end, mut raw) = (String::new(), false);
        while let Some(c) = self.char(0).filter(|c| !c.is_whitespace() && !";|&()<>".contains(*c)) {
            if matches!(c, '\'' | '"' | '\\') {
                raw = true;
            } else {
                end.push(c);
            }
            self.at += 1;
        }
        (!end.is_empty() && !end.starts_with(|c: char| c.is_ascii_digit())).then_some((end, raw))
    }

    /// Reads the body of a here-document.
    fn body(&mut self, end: &str, raw: bool) {
        while self.char(0).is_some() {
            let line: String = self.chars.iter().skip(self.at).take_while(|c| **c != '\n').collect();
            let stop = self.at + line.chars().count();
            let closes = line.trim_start_matches('\t') == end;
            while self.at < stop {
                match self.char(0) {
                    Some('$') if !raw && !closes => self.variable(),
                    Some('\\') => self.at += 2,
                    _ => self.at += 1,
                }
            }
            self.at = stop + 1;
            if closes {
                return;
            }
        }
    }
}

fn python_secrets(body: &str, scope: &Scope) -> Vec<SecretName> {
    let mut names = Vec::new();
    for (call, open, required) in
        [("environ", '[', true), ("environ.get", '(', false), ("getenv", '(', false)]
    {
        for (at, _) in body.match_indices(call) {
            let rest = body.get(at + call.len()..).unwrap_or_default().trim_start();
            let Some(rest) = rest.strip_prefix(open).map(str::trim_start) else { continue };
            let Some(mark) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
            let Some((name, after)) = rest.get(1..).and_then(|rest| rest.split_once(mark)) else { continue };
            let after = after.trim_start().trim_start_matches(']').trim_start();
            let sets = required && after.starts_with('=') && !after.starts_with("==");
            if !sets && is_upper_case(name) && may_be_secret(name) && !scope.declares(name) {
                add_secret(&mut names, name, required);
            }
        }
    }
    if let Ok(template) = PythonTemplate::compile(body, scope) {
        template.secrets().for_each(|name| add_secret(&mut names, name, true));
    }
    names
}
