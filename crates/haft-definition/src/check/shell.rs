//! Finds the commands, pipes and single-quoted texts of a shell script, for warnings.
//!
//! This is not a parser of bash: it follows quotes, comments, substitutions and here-documents, and nothing else.

use std::iter::Peekable;
use std::str::Chars;

/// What a script contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScannedScript {
    /// The words in the position of a command.
    pub(super) commands: Vec<String>,
    pub(super) single_quoted: Vec<SingleQuoted>,
}

/// A text in single quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SingleQuoted {
    pub(super) text: String,
    /// The command that it is an argument of.
    pub(super) command: String,
    /// The line on which it starts, counted from 1.
    pub(super) line: usize,
}

/// Words after which a command follows.
const BEFORE_COMMAND: [&str; 15] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "time", "exec", "sudo", "env", "command",
    "nohup", "{",
];

/// What surrounds the current character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nesting {
    DoubleQuotes,
    Substitution,
    /// `{{…}}`, in which a pipe is a filter.
    Template,
}

struct Scanner<'t> {
    rest: Peekable<Chars<'t>>,
    found: ScannedScript,
    nesting: Vec<Nesting>,
    word: String,
    /// Whether the next word is a command.
    at_command: bool,
    command: String,
    line: usize,
    /// The ends of the here-documents that start after this line.
    pending: Vec<String>,
}

/// Scans a script.
pub(super) fn scan(text: &str) -> ScannedScript {
    let mut scanner = Scanner {
        rest: text.chars().peekable(),
        found: ScannedScript::default(),
        nesting: Vec::new(),
        word: String::new(),
        at_command: true,
        command: String::new(),
        line: 1,
        pending: Vec::new(),
    };
    let mut before = '\n';
    while let Some(c) = scanner.next() {
        scanner.step(c, before);
        before = c;
    }
    scanner.end_word();
    scanner.found
}

/// Returns whether a text has `$name` or `${name}`.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    text.split('$').skip(1).any(|after| {
        let plain = after.strip_prefix(name).is_some_and(is_end);
        plain || after.strip_prefix('{').and_then(|after| after.strip_prefix(name)).is_some_and(is_end)
    })
}

impl Scanner<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn takes(&mut self, expected: char) -> bool {
        self.rest.next_if_eq(&expected).is_some()
    }

    fn step(&mut self, c: char, before: char) {
        let inside = self.nesting.last().copied();
        match (c, inside) {
            ('\\', _) => {
                let _ = self.next();
                self.word.push(c);
            }
            ('{', _) if self.takes('{') => self.nesting.push(Nesting::Template),
            ('}', Some(Nesting::Template)) if self.takes('}') => drop(self.nesting.pop()),
            (_, Some(Nesting::Template)) => {}
            ('"', Some(Nesting::DoubleQuotes)) => drop(self.nesting.pop()),
            ('"', _) => self.nesting.push(Nesting::DoubleQuotes),
            ('$', _) if self.takes('(') => {
                self.nesting.push(Nesting::Substitution);
                self.start_command();
            }
            (')', Some(Nesting::Substitution)) => {
                self.end_word();
                self.nesting.pop();
                self.at_command = false;
            }
            ('`', _) => self.start_command(),
            (_, Some(Nesting::DoubleQuotes)) => self.word.push(c),
            ('\'', _) => self.single_quoted(),
            ('#', _) if self.word.is_empty() && before.is_whitespace() => self.skip_line(),
            ('<', _) if self.takes('<') => self.here_document(),
            ('|', _) => {
                self.takes('|');
                self.start_command();
            }
            ('\n', _) => {
                self.start_command();
                self.skip_here_documents();
            }
            (';' | '&' | '(', _) => self.start_command(),
            (c, _) if c.is_whitespace() => self.end_word(),
            (c, _) => self.word.push(c),
        }
    }

    fn start_command(&mut self) {
        self.end_word();
        self.at_command = true;
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| !name.is_empty());
        let is_prefix = is_assignment || BEFORE_COMMAND.contains(&word.as_str());
        if word.is_empty() || !self.at_command || is_prefix {
            return;
        }
        self.at_command = false;
        self.command.clone_from(&word);
        self.found.commands.push(word);
    }

    fn single_quoted(&mut self) {
        let line = self.line;
        let mut text = String::new();
        while let Some(c) = self.next().filter(|c| *c != '\'') {
            text.push(c);
        }
        self.word.push('\'');
        let command = if self.at_command { String::new() } else { self.command.clone() };
        self.found.single_quoted.push(SingleQuoted { text, command, line });
    }

    fn skip_line(&mut self) {
        while self.rest.next_if(|c| *c != '\n').is_some() {}
    }

    /// Reads the end of a here-document; `<<<` has none.
    fn here_document(&mut self) {
        if self.takes('<') {
            return;
        }
        while self.rest.next_if(|c| *c == '-' || *c == ' ').is_some() {}
        let mut end = String::new();
        while let Some(c) = self.rest.next_if(|c| !c.is_whitespace() && !";|&<>()".contains(*c)) {
            if !"'\"\\".contains(c) {
                end.push(c);
            }
        }
        if !end.is_empty() {
            self.pending.push(end);
        }
    }

    fn skip_here_documents(&mut self) {
        for end in std::mem::take(&mut self.pending) {
            let mut line = String::new();
            while let Some(c) = self.next() {
                if c != '\n' {
                    line.push(c);
                } else if std::mem::take(&mut line).trim_start_matches('\t') == end {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> String {
        scan(text).commands.join(" ")
    }

    #[test]
    fn commands_are_found_where_the_shell_runs_them() {
        for (text, expected) in [
            ("curl -s x", "curl"),
            ("echo curl # wget", "echo"),
            ("a=1 curl x; if grep y; then wget z; fi", "curl grep wget fi"),
            ("x=$(curl -s y) && echo \"$(wget z)\"", "curl echo wget"),
            ("echo 'curl x' \"wget y\"", "echo"),
            ("cat <<EOF\ncurl x\nEOF\nls", "cat ls"),
            ("jq . <<< \"$x\"\nls", "jq ls"),
            ("# don't\ncurl x", "curl"),
            ("echo `curl x`", "echo curl"),
            ("sudo env A=1 /usr/bin/curl x", "/usr/bin/curl"),
        ] {
            assert_eq!(commands(text), expected, "{text}");
        }
    }

    #[test]
    fn names_in_single_quotes_are_found() {
        let scanned = scan("ls\ncurl -s 'https://a.example?city=$city' \"it's $x\"");
        let expected = SingleQuoted {
            text: "https://a.example?city=$city".to_owned(),
            command: "curl".to_owned(),
            line: 2,
        };
        assert_eq!(scanned.single_quoted, [expected]);
        for (text, expected) in
            [("$city", true), ("a${city}b", true), ("$city2", false), ("city", false), ("${city:-x}", true)]
        {
            assert_eq!(mentions(text, "city"), expected, "{text}");
        }
    }

    #[test]
    fn a_hostile_script_costs_little() {
        for part in ["'", "\"", "$(", "<<a\n", "{{", "|", "`", "\\"] {
            scan(&part.repeat(200_000));
        }
    }
}
