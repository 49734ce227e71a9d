//! The syntax of PDF: objects and the tokens of content streams.

use std::collections::HashMap;

/// The maximum nesting of arrays and dictionaries.
const MAX_DEPTH: usize = 32;
/// The maximum number of elements of an object, those of the arrays and dictionaries within it included.
const MAX_ELEMENTS: usize = 1 << 20;
/// The maximum size of the operands of an operator in memory.
const MAX_OPERANDS_WEIGHT: usize = 64 << 20;

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
    /// How many elements the object that is being read may still have.
    elements: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, elements: MAX_ELEMENTS }
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
        self.elements = MAX_ELEMENTS;
        self.object(0)
    }

    /// Counts an element; tells whether the object may have it.
    fn count_element(&mut self) -> bool {
        let is_within = self.elements > 0;
        self.elements = self.elements.saturating_sub(1);
        is_within
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
                other if self.count_element() => elements.push(other),
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
                        Some(value) if self.count_element() => {
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

/// The operands of an operator, within limits.
#[derive(Debug, Default)]
pub(super) struct Operands {
    objects: Vec<Object>,
    weight: usize,
}

impl Operands {
    /// Adds an operand unless there are `most` already, or they are too large.
    pub(super) fn push(&mut self, operand: Object, most: usize) {
        if self.objects.len() < most {
            let weight = self.weight + operand.weight();
            if weight <= MAX_OPERANDS_WEIGHT {
                self.weight = weight;
                self.objects.push(operand);
            }
        }
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.objects.clear();
        self.weight = 0;
    }

    /// Returns the operands.
    pub(super) fn as_slice(&self) -> &[Object] {
        &self.objects
    }
}

impl Object {
    /// Returns the size in memory, roughly.
    pub(super) fn weight(&self) -> usize {
        let content = match self {
            Self::Name(bytes) | Self::String(bytes) | Self::Keyword(bytes) => bytes.len(),
            Self::Array(elements) => elements.iter().map(Self::weight).sum(),
            Self::Dictionary(dictionary) => dictionary.values().map(Self::weight).sum(),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Reference(_) => 0,
        };
        content + 64
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_of_an_object_count_together() {
        let inner = format!("[{}]", "1 ".repeat(MAX_ELEMENTS / 4));
        let bytes = format!("[{}] [2 3]", inner.repeat(5));
        let mut lexer = Lexer::new(bytes.as_bytes(), 0);
        let Some(Object::Array(arrays)) = lexer.next() else { panic!("no array") };
        let length = |object: &Object| if let Object::Array(elements) = object { elements.len() } else { 0 };
        assert!(arrays.len() + arrays.iter().map(length).sum::<usize>() <= MAX_ELEMENTS);
        assert_eq!(length(&arrays[0]), MAX_ELEMENTS / 4);
        // The next object has elements of its own.
        assert_eq!(lexer.next(), Some(Object::Array(vec![Object::Number(2.0), Object::Number(3.0)])));
    }

    #[test]
    fn operands_are_bounded_by_number_and_size() {
        let mut operands = Operands::default();
        let large = Object::String(vec![0; MAX_OPERANDS_WEIGHT / 2]);
        (0..4).for_each(|_| operands.push(large.clone(), 10));
        assert_eq!(operands.as_slice().len(), 1);
        (0..20).for_each(|_| operands.push(Object::Null, 10));
        assert_eq!(operands.as_slice().len(), 10);
        operands.clear();
        operands.push(large, 10);
        assert_eq!(operands.as_slice().len(), 1);
    }
}
