//! Splits a command line into words, as bash does. Variables become references to secrets: `$TOKEN` is `${TOKEN}`.

use std::iter::Peekable;
use std::str::Chars;

use super::CurlError;

/// The words of the first command, and whether more text follows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<String>,
    /// The operator after the command, such as `|`; what follows is not part of it.
    pub(super) ended_by: Option<char>,
}

/// Splits a command.
pub(super) fn split(command: &str) -> Result<Words, CurlError> {
    let mut splitter = Splitter {
        chars: command.chars().peekable(),
        words: Vec::new(),
        word: String::new(),
        in_word: false,
    };
    let ended_by = splitter.run()?;
    splitter.end_word();
    Ok(Words { words: splitter.words, ended_by })
}

struct Splitter<'a> {
    chars: Peekable<Chars<'a>>,
    words: Vec<String>,
    word: String,
    in_word: bool,
}

impl Splitter<'_> {
    fn run(&mut self) -> Result<Option<char>, CurlError> {
        while let Some(c) = self.chars.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                // A second line is another command, unless nothing came before it.
                '\n' if self.words.is_empty() && !self.in_word => {}
                '\n' => return Ok(self.chars.any(|c| !c.is_whitespace()).then_some('\n')),
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '$' if self.chars.peek() == Some(&'\'') => self.ansi_quoted()?,
                '$' => self.variable(),
                '\\' => match self.chars.next() {
                    Some('\r') => drop(self.chars.next_if_eq(&'\n')),
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                '|' | ';' | '>' | '<' | '(' | ')' => return Ok(Some(c)),
                // People forget to quote URLs: only a separate `&` ends the command.
                '&' if self.chars.peek().is_none_or(|next| next.is_whitespace() || *next == '&') => {
                    return Ok(Some(c));
                }
                '#' if !self.in_word => while self.chars.next_if(|c| *c != '\n').is_some() {},
                other => self.push(other),
            }
        }
        Ok(None)
    }

    fn push(&mut self, c: char) {
        self.in_word = true;
        self.word.push(c);
    }

    fn end_word(&mut self) {
        if self.in_word {
            self.words.push(std::mem::take(&mut self.word));
            self.in_word = false;
        }
    }

    fn single_quoted(&mut self) -> Result<(), CurlError> {
        self.in_word = true;
        for c in self.chars.by_ref() {
            if c == '\'' {
                return Ok(());
            }
            self.word.push(c);
        }
        Err(CurlError::Quote("single"))
    }

    fn double_quoted(&mut self) -> Result<(), CurlError> {
        self.in_word = true;
        while let Some(c) = self.chars.next() {
            match c {
                '"' => return Ok(()),
                '$' => self.variable(),
                '\\' => match self.chars.next() {
                    Some('\n') | None => {}
                    Some(c @ ('"' | '\\' | '$' | '`')) => self.word.push(c),
                    Some(other) => self.word.extend(['\\', other]),
                },
                other => self.word.push(other),
            }
        }
        Err(CurlError::Quote("double"))
    }

    /// `$'…'`, as browsers copy requests.
    fn ansi_quoted(&mut self) -> Result<(), CurlError> {
        self.in_word = true;
        self.chars.next();
        while let Some(c) = self.chars.next() {
            match c {
                '\'' => return Ok(()),
                '\\' => match self.chars.next() {
                    Some('n') => self.word.push('\n'),
                    Some('r') => self.word.push('\r'),
                    Some('t') => self.word.push('\t'),
                    Some('u') => self.code_point(4),
                    Some('x') => self.code_point(2),
                    Some(other) => self.word.push(other),
                    None => {}
                },
                other => self.word.push(other),
            }
        }
        Err(CurlError::Quote("single"))
    }

    fn code_point(&mut self, digits: usize) {
        let mut number = 0;
        for _ in 0..digits {
            let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(16)) else { break };
            number = number * 16 + digit;
            self.chars.next();
        }
        self.word.extend(char::from_u32(number));
    }

    /// A variable becomes a reference to a secret of the same name.
    fn variable(&mut self) {
        self.in_word = true;
        let braced = self.chars.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        let closed = !braced || self.chars.next_if_eq(&'}').is_some();
        match (name.is_empty(), closed) {
            (false, true) => self.word.extend(["${", &name, "}"]),
            _ => self.word.extend([if braced { "${" } else { "$" }, &name]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &[&str], ended_by: Option<char>) {
        let words = expected.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(split(command), Ok(Words { words, ended_by }), "{command}");
    }

    #[test]
    fn words_are_split_as_in_bash() {
        check("curl  -H 'a b' \"c d\"e", &["curl", "-H", "a b", "c de"], None);
        check("curl \\\n  https://x.test \\\r\n -s", &["curl", "https://x.test", "-s"], None);
        check("curl '' \"\"", &["curl", "", ""], None);
        check(r#"curl "a\"b\\c\d" $'l\n\u00e4\x41\''"#, &["curl", "a\"b\\c\\d", "l\nä\u{41}'"], None);
        check(
            "curl $TOKEN \"${TOKEN}x\" '$TOKEN' $",
            &["curl", "${TOKEN}", "${TOKEN}x", "$TOKEN", "$"],
            None,
        );
        check("curl https://x.test/?a=1&b=2 & sleep", &["curl", "https://x.test/?a=1&b=2"], Some('&'));
        check("curl x | jq .", &["curl", "x"], Some('|'));
        check("\n# comment\ncurl x # more\n\n", &["curl", "x"], None);
        check("curl x\ncurl y", &["curl", "x"], Some('\n'));
        assert_eq!(split("curl 'x"), Err(CurlError::Quote("single")));
        assert_eq!(split("curl \"x"), Err(CurlError::Quote("double")));
    }
}
