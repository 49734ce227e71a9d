//! The text of a page: its operators place strings, and gaps between them are spaces, lines and paragraphs.

use std::rc::Rc;

use unicode_normalization::UnicodeNormalization as _;

use super::super::ReadError;
use super::encoding::combining_accent;
use super::file::{File, Page};
use super::font::{Font, Fonts};
use super::lexer::{Dictionary, Lexer, Object, Operands};

/// The maximum nesting of forms.
const MAX_FORMS: usize = 8;
/// The maximum number of saved graphics states.
const MAX_STATES: usize = 256;
/// The maximum number of operands of an operator.
const MAX_OPERANDS: usize = 64;
/// The gap that is a space, in thousandths of the font size.
const SPACE: f64 = 130.0;

/// Returns the paragraphs of a page.
pub(super) fn paragraphs(
    file: &mut File<'_>,
    page: &Page,
    fonts: &mut Fonts,
) -> Result<Vec<String>, ReadError> {
    let contents = match page.dictionary.get(b"Contents".as_slice()) {
        Some(object @ Object::Reference(_)) => match file.resolve(object) {
            Object::Array(parts) => parts,
            _ => vec![object.clone()],
        },
        Some(Object::Array(parts)) => parts.clone(),
        _ => Vec::new(),
    };
    let mut data = Vec::new();
    for part in contents {
        if let Some(stream) = file.stream(&part) {
            data.extend(file.decode(&stream)?);
            data.push(b'\n');
        }
        file.check_work()?;
    }
    let is_reference = matches!(*page.resources, Object::Reference(_));
    let resolved = if is_reference { file.resolve(&page.resources) } else { Object::Null };
    let none = Dictionary::new();
    let resources = match (&*page.resources, &resolved) {
        (Object::Dictionary(resources), _) | (_, Object::Dictionary(resources)) => resources,
        _ => &none,
    };
    let mut interpreter = Interpreter {
        file,
        fonts,
        state: State {
            transform: IDENTITY,
            font: None,
            size: 0.0,
            leading: 0.0,
            scale: 1.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
        },
        saved: Vec::new(),
        matrix: IDENTITY,
        line: IDENTITY,
        layout: Layout::default(),
        forms: 0,
    };
    interpreter.run(&data, resources)?;
    Ok(interpreter.layout.finish())
}

/// An affine transformation: a, b, c, d, e, f.
type Matrix = [f64; 6];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// Returns the transformation that applies the first one, then the second one.
fn multiply(first: &Matrix, second: &Matrix) -> Matrix {
    let [a1, b1, c1, d1, e1, f1] = first;
    let [a2, b2, c2, d2, e2, f2] = second;
    [
        a1 * a2 + b1 * c2,
        a1 * b2 + b1 * d2,
        c1 * a2 + d1 * c2,
        c1 * b2 + d1 * d2,
        e1 * a2 + f1 * c2 + e2,
        e1 * b2 + f1 * d2 + f2,
    ]
}

#[derive(Clone)]
struct State {
    transform: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    leading: f64,
    /// The horizontal scale.
    scale: f64,
    /// What is added to the width of each character, and of each space.
    character_spacing: f64,
    word_spacing: f64,
}

struct Interpreter<'f, 'a> {
    file: &'f mut File<'a>,
    fonts: &'f mut Fonts,
    state: State,
    saved: Vec<State>,
    matrix: Matrix,
    line: Matrix,
    layout: Layout,
    forms: usize,
}

impl Interpreter<'_, '_> {
    fn run(&mut self, data: &[u8], resources: &Dictionary) -> Result<(), ReadError> {
        let mut lexer = Lexer::new(data, 0);
        let mut operands = Operands::default();
        while let Some(object) = lexer.next() {
            self.file.step()?;
            match object {
                Object::Keyword(operator) if operator == b"BI" => {
                    skip_image(data, &mut lexer);
                    operands.clear();
                }
                Object::Keyword(operator) => {
                    self.operator(&operator, operands.as_slice(), resources)?;
                    operands.clear();
                }
                operand => operands.push(operand, MAX_OPERANDS),
            }
        }
        Ok(())
    }

    fn operator(
        &mut self,
        operator: &[u8],
        operands: &[Object],
        resources: &Dictionary,
    ) -> Result<(), ReadError> {
        let number = |index: usize| operands.get(index).and_then(Object::as_number).unwrap_or_default();
        let matrix = || [number(0), number(1), number(2), number(3), number(4), number(5)];
        match operator {
            b"q" if self.saved.len() < MAX_STATES => self.saved.push(self.state.clone()),
            b"Q" => self.state = self.saved.pop().unwrap_or_else(|| self.state.clone()),
            b"cm" => self.state.transform = multiply(&matrix(), &self.state.transform),
            b"BT" => self.set_line(IDENTITY),
            b"Tm" => self.set_line(matrix()),
            b"Td" => self.move_line(number(0), number(1)),
            b"TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            b"T*" => self.move_line(0.0, -self.state.leading),
            b"TL" => self.state.leading = number(0),
            b"Tc" => self.state.character_spacing = number(0),
            b"Tw" => self.state.word_spacing = number(0),
            b"Tz" => self.state.scale = number(0) / 100.0,
            b"Tf" => {
                self.state.size = number(1);
                self.state.font = self.font(operands.first(), resources)?;
            }
            b"Tj" => self.show(operands.first())?,
            b"'" => {
                self.move_line(0.0, -self.state.leading);
                self.show(operands.first())?;
            }
            b"\"" => {
                self.state.word_spacing = number(0);
                self.state.character_spacing = number(1);
                self.move_line(0.0, -self.state.leading);
                self.show(operands.get(2))?;
            }
            b"TJ" => {
                if let Some(Object::Array(parts)) = operands.first() {
                    for part in parts {
                        if let Some(adjustment) = part.as_number() {
                            self.advance(-adjustment);
                        } else {
                            self.show(Some(part))?;
                        }
                    }
                }
            }
            b"Do" => self.form(operands.first(), resources)?,
            _ => {}
        }
        Ok(())
    }

    fn set_line(&mut self, matrix: Matrix) {
        self.line = matrix;
        self.matrix = matrix;
    }

    fn move_line(&mut self, x: f64, y: f64) {
        self.set_line(multiply(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line));
    }

    /// Moves right by thousandths of the font size.
    fn advance(&mut self, thousandths: f64) {
        self.move_right(thousandths / 1000.0 * self.state.size);
    }

    fn move_right(&mut self, x: f64) {
        let x = x * self.state.scale;
        self.matrix = multiply(&[1.0, 0.0, 0.0, 1.0, x, 0.0], &self.matrix);
    }

    fn font(&mut self, name: Option<&Object>, resources: &Dictionary) -> Result<Option<Rc<Font>>, ReadError> {
        let font = name.and_then(|name| self.file.resource(resources, b"Font", name));
        self.file.check_work()?;
        font.map_or(Ok(None), |font| self.fonts.get(self.file, &font))
    }

    fn show(&mut self, object: Option<&Object>) -> Result<(), ReadError> {
        let (Some(Object::String(string)), Some(font)) = (object, self.state.font.clone()) else {
            return Ok(());
        };
        for character in font.decode(string) {
            let matrix = multiply(&self.matrix, &self.state.transform);
            let [right, right_y, up_x, up, ..] = matrix;
            let size = self.state.size.abs() * font.em();
            let height = size * up_x.hypot(up);
            let em = size * self.state.scale.abs() * right.hypot(right_y);
            self.file.step()?;
            self.layout.place(&character.text, along_line(&matrix), (em, height));
            let limit = self.file.max_text();
            if self.layout.length > limit {
                return Err(ReadError::TextTooLarge { limit });
            }
            self.advance(character.width);
            let word_spacing = if character.is_space { self.state.word_spacing } else { 0.0 };
            self.move_right(self.state.character_spacing + word_spacing);
            let (end, _) = along_line(&multiply(&self.matrix, &self.state.transform));
            if !character.text.is_empty() {
                self.layout.end = end;
            }
        }
        Ok(())
    }

    /// Runs a form: a content stream that a page includes.
    fn form(&mut self, name: Option<&Object>, resources: &Dictionary) -> Result<(), ReadError> {
        let object = name.and_then(|name| self.file.resource(resources, b"XObject", name));
        self.file.check_work()?;
        let Some(stream) = object.and_then(|object| self.file.stream(&object)) else { return Ok(()) };
        if self.forms >= MAX_FORMS || self.file.get(&stream.dictionary, b"Subtype").as_name() != Some(b"Form")
        {
            return Ok(());
        }
        let data = self.file.decode(&stream)?;
        let own = self.file.dictionary(&stream.dictionary, b"Resources");
        let saved = self.state.clone();
        if let Object::Array(matrix) = self.file.get(&stream.dictionary, b"Matrix") {
            let number = |index: usize| matrix.get(index).and_then(Object::as_number).unwrap_or_default();
            let matrix = [number(0), number(1), number(2), number(3), number(4), number(5)];
            self.state.transform = multiply(&matrix, &self.state.transform);
        }
        self.forms += 1;
        let result = self.run(&data, own.as_ref().unwrap_or(resources));
        self.forms -= 1;
        self.state = saved;
        result
    }
}

/// Returns where a matrix places the origin: along the direction of the text, and upwards from there.
fn along_line([right, right_y, _, _, x, y]: &Matrix) -> (f64, f64) {
    let length = right.hypot(*right_y);
    if length == 0.0 {
        return (*x, *y);
    }
    let (cos, sin) = (right / length, right_y / length);
    (x * cos + y * sin, y * cos - x * sin)
}

/// Moves behind an inline image, whose data is no syntax.
fn skip_image(data: &[u8], lexer: &mut Lexer<'_>) {
    let rest = data.get(lexer.position()..).unwrap_or_default();
    let is_end = |window: &[u8]| matches!(window, [before, b'E', b'I', after] if before.is_ascii_whitespace() && after.is_ascii_whitespace());
    let length = rest.windows(4).position(is_end).map_or(rest.len(), |at| at + 3);
    lexer.set_position(lexer.position() + length);
}

/// Text that is put together from placed characters.
#[derive(Debug, Default)]
struct Layout {
    paragraphs: Vec<String>,
    text: String,
    /// The bytes of all text that was placed.
    length: usize,
    baseline: f64,
    /// Where the last character ends.
    end: f64,
    height: f64,
}

impl Layout {
    fn place(&mut self, text: &str, (x, y): (f64, f64), (em, height): (f64, f64)) {
        if text.is_empty() {
            return;
        }
        if self.combine_accent(text, x, y, height) {
            return;
        }
        if !self.text.is_empty() {
            let down = self.baseline - y;
            let size = self.height.max(height).max(f64::MIN_POSITIVE);
            if down.abs() > size * 0.5 {
                // Line spacing is about 1.2; more is a new paragraph, and upwards is a new column.
                if down > size * 1.75 || down < 0.0 {
                    self.end_paragraph();
                } else {
                    self.end_line(text);
                }
            } else if (x - self.end > em * SPACE / 1000.0 || x < self.end - em) && !self.text.ends_with(' ') {
                self.text.push(' ');
            }
        }
        self.text.push_str(text);
        self.length += text.len();
        self.baseline = y;
        self.height = height;
    }

    /// Puts a letter under the accent before it, which TeX and others draw as a character of its own.
    fn combine_accent(&mut self, text: &str, x: f64, y: f64, height: f64) -> bool {
        let is_below = x < self.end && (self.baseline - y).abs() <= height.max(self.height);
        let accent = self.text.chars().next_back().filter(|_| is_below).and_then(combining_accent);
        let (Some(accent), Some(letter)) = (accent, text.chars().next()) else { return false };
        let letter = if letter == 'ı' { 'i' } else { letter };
        if !letter.is_alphabetic() {
            return false;
        }
        self.text.pop();
        self.text.extend([letter, accent].into_iter().nfc());
        self.text.extend(text.chars().skip(1));
        self.length += text.len();
        self.baseline = y;
        self.height = height;
        true
    }

    /// Ends a line; a word that is hyphenated over two lines becomes one.
    fn end_line(&mut self, next: &str) {
        let line = self.text.trim_end();
        let is_hyphenated =
            line.strip_suffix(['-', '\u{ad}']).is_some_and(|word| word.ends_with(char::is_alphabetic))
                && next.starts_with(char::is_lowercase);
        self.text.truncate(line.len());
        if is_hyphenated {
            self.text.pop();
        } else {
            self.text.push(' ');
        }
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.paragraphs.push(text);
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.end_paragraph();
        self.paragraphs
    }
}
