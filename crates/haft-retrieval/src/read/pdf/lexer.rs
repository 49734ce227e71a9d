//! The syntax of PDF: objects and the tokens of content streams.

use std::collections::HashMap;

/// The maximum nesting of arrays and dictionaries.
const MAX_DEPTH: usize = 32;
/// The maximum number of elements of an array or dictionary.
const MAX_ELEMENTS: usize = 1 << 20;

/// A dictionary; names are without the slash.
pub(super) type Dictionary = HashMap<Vec<u8>, Object>;

/// An object, or an operator of a content stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Null,
    Bool(bool),
    Number(f64),
    Name(Vec<u8>),
    String(Vec<u8>),
    Array(Vec<Object>),
    Dictionary(Dictionary),
    Reference(u32),
    /// A bare word: an operator, or a keyword such as `stream`.
    Keyword(Vec<u8>),
}

/// Reads tokens and objects from bytes.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn set_position(&mut self, at: usize) {
        self.at = at;
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'%' {
                while self.peek().is_some_and(|byte| byte != b'\n' && byte != b'\r') {
                    self.at += 1;
                }
            } else if is_space(byte) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    /// Returns the next object, or `None` at the end. Broken syntax becomes `Null`; the lexer always moves on.
    pub(super) fn next(&mut self) -> Option<Object> {
        self.object(0)
    }

    fn object(&mut self, depth: usize) -> Option<Object> {
        self.skip_space();
        let byte = self.peek()?;
        match byte {
            b'/' => {
                self.at += 1;
                Some(Object::Name(self.name()))
            }
            b'(' => {
                self.at += 1;
                Some(Object::String(self.literal_string()))
            }
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Some(self.dictionary(depth))
            }
            b'<' => {
                self.at += 1;
                Some(Object::String(self.hex_string()))
            }
            b'[' => {
                self.at += 1;
                Some(self.array(depth))
            }
            b']' | b'}' | b'{' | b')' => {
                self.at += 1;
                Some(Object::Keyword(vec![byte]))
            }
            b'>' => {
                self.at += if self.bytes.get(self.at + 1) == Some(&b'>') { 2 } else { 1 };
                Some(Object::Keyword(b">>".to_vec()))
            }
            b'0'..=b'9' | b'+' | b'-' | b'.' => Some(self.number_or_reference()),
            _ => {
                let start = self.at;
                while self.peek().is_some_and(is_regular) {
                    self.at += 1;
                }
                let word = self.bytes.get(start..self.at).unwrap_or_default();
                Some(match word {
                    b"true" => Object::Bool(true),
                    b"false" => Object::Bool(false),
                    b"null" => Object::Null,
                    _ => Object::Keyword(word.to_vec()),
                })
            }
        }
    }

    fn name(&mut self) -> Vec<u8> {
        let mut name = Vec::new();
        while let Some(byte) = self.peek().filter(|byte| is_regular(*byte)) {
            self.at += 1;
            let hex = |at| self.bytes.get(at).and_then(|byte| hex_digit(*byte));
            if byte == b'#'
                && let Some((high, low)) = hex(self.at).zip(hex(self.at + 1))
            {
                name.push(high << 4 | low);
                self.at += 2;
            } else {
                name.push(byte);
            }
        }
        name
    }

    fn literal_string(&mut self) -> Vec<u8> {
        let mut string = Vec::new();
        let mut open = 1_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut string);
                    continue;
                }
                _ => {}
            }
            string.push(byte);
        }
        string
    }

    fn escape(&mut self, string: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => string.push(b'\n'),
            b'r' => string.push(b'\r'),
            b't' => string.push(b'\t'),
            b'b' => string.push(8),
            b'f' => string.push(12),
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit) = self.peek().filter(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                string.push(u8::try_from(code & 0xff).unwrap_or_default());
            }
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
            }
            b'\n' => {}
            other => string.push(other),
        }
    }

    fn hex_string(&mut self) -> Vec<u8> {
        let mut string = Vec::new();
        let mut high: Option<u8> = None;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'>' {
                break;
            }
            let Some(digit) = hex_digit(byte) else { continue };
            match high.take() {
                Some(high) => string.push(high << 4 | digit),
                None => high = Some(digit),
            }
        }
        string.extend(high.map(|high| high << 4));
        string
    }

    fn array(&mut self, depth: usize) -> Object {
        let mut elements = Vec::new();
        if depth >= MAX_DEPTH {
            return Object::Null;
        }
        while let Some(element) = self.object(depth + 1) {
            match element {
                Object::Keyword(word) if word == b"]" => break,
                // A missing bracket: what follows is no longer the array.
                Object::Keyword(word) if matches!(word.as_slice(), b"endobj" | b"stream" | b">>") => break,
                Object::Keyword(_) => {}
                other if elements.len() < MAX_ELEMENTS => elements.push(other),
                _ => {}
            }
        }
        Object::Array(elements)
    }

    fn dictionary(&mut self, depth: usize) -> Object {
        let mut dictionary = Dictionary::new();
        if depth >= MAX_DEPTH {
            return Object::Null;
        }
        while let Some(key) = self.object(depth + 1) {
            match key {
                Object::Name(key) => {
                    let before = self.at;
                    match self.object(depth + 1) {
                        Some(Object::Keyword(word)) if word == b">>" => break,
                        Some(Object::Keyword(_)) => self.at = before.max(self.at),
                        Some(value) if dictionary.len() < MAX_ELEMENTS => {
                            dictionary.insert(key, value);
                        }
                        Some(_) => {}
                        None => break,
                    }
                }
                Object::Keyword(word) if matches!(word.as_slice(), b">>" | b"endobj" | b"stream") => break,
                _ => {}
            }
        }
        Object::Dictionary(dictionary)
    }

    fn number(&mut self) -> f64 {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte)) {
            self.at += 1;
        }
        let text = self.bytes.get(start..self.at.min(start + 40)).unwrap_or_default();
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Reads a number, or a reference such as `12 0 R`.
    fn number_or_reference(&mut self) -> Object {
        let number = self.number();
        let after = self.at;
        if let Some(id) = integer(number) {
            self.skip_space();
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.number();
                self.skip_space();
                let next = self.bytes.get(self.at + 1).copied();
                if self.peek() == Some(b'R') && !next.is_some_and(is_regular) {
                    self.at += 1;
                    return Object::Reference(id);
                }
            }
            self.at = after;
        }
        Object::Number(number)
    }
}

impl Object {
    pub(super) fn as_name(&self) -> Option<&[u8]> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub(super) fn as_number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn as_integer(&self) -> Option<u32> {
        self.as_number().and_then(integer)
    }
}

/// Returns a number as an object number or count.
pub(super) fn integer(number: f64) -> Option<u32> {
    let is_integer = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
    is_integer.then_some(number as u32)
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !b"()<>[]{}/%".contains(&byte)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
