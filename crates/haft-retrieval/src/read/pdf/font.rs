//! Fonts: which text a code stands for, and how wide it is.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::ReadError;
use super::encoding::{BaseEncoding, Codes, bitmap_glyph, glyph};
use super::file::File;
use super::lexer::{Dictionary, Lexer, Object, Operands, integer};
use super::pages::damaged;

/// The maximum number of mappings of a font.
const MAX_MAPPINGS: usize = 200_000;
/// The maximum number of mappings and widths of all fonts that are kept.
const MAX_KEPT: usize = 4_000_000;
/// The number of mappings of a font that is defined where it is used; more count as if it was kept.
const SMALL_FONT: usize = 1024;
/// What reading a font costs besides its objects.
const FONT_COST: usize = 1024;
/// The width of a code that declares none, in thousandths of the font size.
const DEFAULT_WIDTH: f64 = 500.0;

/// The fonts of a file.
#[derive(Debug, Default)]
pub(super) struct Fonts {
    by_number: HashMap<u32, Rc<Font>>,
    /// The number of their mappings and widths.
    kept: usize,
}

impl Fonts {
    /// Returns a font; it is read once.
    pub(super) fn get(
        &mut self,
        file: &mut File<'_>,
        object: &Object,
    ) -> Result<Option<Rc<Font>>, ReadError> {
        if let Object::Reference(number) = object
            && let Some(font) = self.by_number.get(number)
        {
            return Ok(Some(Rc::clone(font)));
        }
        let Object::Dictionary(dictionary) = file.resolve(object) else { return Ok(None) };
        file.charge(FONT_COST);
        let font = Rc::new(Font::read(file, &dictionary)?);
        if let Object::Reference(number) = object {
            self.by_number.insert(*number, Rc::clone(&font));
            self.kept += font.size();
        } else {
            self.kept += font.size().saturating_sub(SMALL_FONT);
        }
        if self.kept > MAX_KEPT {
            return Err(damaged("its fonts are too large"));
        }
        Ok(Some(font))
    }
}

/// A font.
#[derive(Debug)]
pub(super) struct Font {
    /// How a string is divided into codes.
    codes: Codes,
    to_unicode: ToUnicode,
    /// The text of each code of a simple font.
    simple: Option<Vec<String>>,
    widths: HashMap<u32, f64>,
    /// Ranges of codes of one width.
    width_ranges: Vec<(u32, u32, f64)>,
    default_width: f64,
    /// The thousandths of the font size that a unit of a width is.
    width_unit: f64,
    /// The size of its letters, in font sizes.
    em: f64,
}

/// A character that a code of a string stands for.
#[derive(Debug)]
pub(super) struct Character {
    pub(super) text: String,
    /// The width in thousandths of the font size.
    pub(super) width: f64,
    /// Whether the code is one byte of 32, which the word spacing widens.
    pub(super) is_space: bool,
}

/// The mapping of codes to text that a file carries for copying.
#[derive(Debug, Default)]
struct ToUnicode {
    characters: HashMap<u32, String>,
    /// First code, last code, text of the first.
    ranges: Vec<(u32, u32, Vec<u16>)>,
    has_short_codes: bool,
}

impl Font {
    fn read(file: &mut File<'_>, dictionary: &Dictionary) -> Result<Self, ReadError> {
        let is_composite = file.get(dictionary, b"Subtype").as_name() == Some(b"Type0");
        let mut to_unicode = ToUnicode::default();
        if let Some(stream) = dictionary.get(b"ToUnicode".as_slice()).and_then(|object| file.stream(object)) {
            to_unicode = ToUnicode::parse(&file.decode(&stream)?);
        }
        let simple = if is_composite {
            None
        } else {
            let has_map = !to_unicode.characters.is_empty() || !to_unicode.ranges.is_empty();
            Some(simple_encoding(file, dictionary, has_map)?)
        };
        let mut font = Self {
            codes: match file.get(dictionary, b"Encoding").as_name() {
                _ if !is_composite => Codes::Single,
                Some(name) => Codes::by_cmap(name),
                None if to_unicode.has_short_codes => Codes::Single,
                None => Codes::Double,
            },
            to_unicode,
            simple,
            widths: HashMap::new(),
            width_ranges: Vec::new(),
            default_width: DEFAULT_WIDTH,
            width_unit: 1.0,
            em: 1.0,
        };
        if is_composite {
            font.read_composite_widths(file, dictionary);
        } else {
            font.read_simple_widths(file, dictionary);
        }
        Ok(font)
    }

    /// Returns the number of mappings and widths.
    fn size(&self) -> usize {
        self.simple.as_ref().map_or(0, Vec::len)
            + self.to_unicode.characters.len()
            + self.to_unicode.ranges.len()
            + self.widths.len()
            + self.width_ranges.len()
    }

    fn read_simple_widths(&mut self, file: &File<'_>, dictionary: &Dictionary) {
        let first = file.integer(dictionary, b"FirstChar").unwrap_or_default();
        if let Object::Array(widths) = file.get(dictionary, b"Widths") {
            let codes = first..first.saturating_add(256);
            self.widths =
                codes.zip(widths).filter_map(|(code, width)| Some((code, width.as_number()?))).collect();
        }
        // Widths of fonts that are drawn by operators are in units of their own.
        if let Object::Array(matrix) = file.get(dictionary, b"FontMatrix")
            && let Some(scale) = matrix.first().and_then(Object::as_number)
        {
            self.width_unit = scale.abs() * 1000.0;
            self.default_width = 0.0;
            // The size of such a font says nothing, but its widest letters are about as wide as high.
            let widest = self.widths.values().copied().fold(0.0, f64::max) * self.width_unit / 1000.0;
            if widest > 0.0 {
                self.em = widest;
            }
        }
    }

    fn read_composite_widths(&mut self, file: &File<'_>, dictionary: &Dictionary) {
        let Object::Array(descendants) = file.get(dictionary, b"DescendantFonts") else { return };
        let Some(Object::Dictionary(descendant)) = descendants.first().map(|object| file.resolve(object))
        else {
            return;
        };
        self.default_width = file.get(&descendant, b"DW").as_number().unwrap_or(1000.0);
        let Object::Array(entries) = file.get(&descendant, b"W") else { return };
        let mut entries = entries.into_iter();
        while let (Some(first), Some(second)) = (entries.next(), entries.next()) {
            let Some(first) = first.as_integer() else { return };
            match second {
                Object::Array(widths) => {
                    for (code, width) in (first..).zip(widths) {
                        if let Some(width) = width.as_number()
                            && self.widths.len() < MAX_MAPPINGS
                        {
                            self.widths.insert(code, width);
                        }
                    }
                }
                last => {
                    let width = entries.next().and_then(|width| width.as_number());
                    let Some((last, width)) = last.as_integer().zip(width) else { return };
                    self.width_ranges.push((first, last, width));
                }
            }
        }
        self.width_ranges.sort_by_key(|(first, _, _)| *first);
    }

    /// Returns the size of its letters, in font sizes.
    pub(super) fn em(&self) -> f64 {
        self.em
    }

    /// Returns the characters that the codes of a string stand for.
    pub(super) fn decode<'s>(&'s self, string: &'s [u8]) -> impl Iterator<Item = Character> + 's {
        self.codes.split(string).map(|bytes| {
            let code = code(bytes);
            Character {
                text: self.text(code, bytes),
                width: self.width(code) * self.width_unit,
                is_space: bytes == b" ",
            }
        })
    }

    fn text(&self, code: u32, bytes: &[u8]) -> String {
        if let Some(text) = self.to_unicode.get(code) {
            return text;
        }
        match &self.simple {
            Some(texts) => {
                usize::try_from(code).ok().and_then(|code| texts.get(code)).cloned().unwrap_or_default()
            }
            None => self.codes.text(bytes),
        }
    }

    fn width(&self, code: u32) -> f64 {
        if let Some(width) = self.widths.get(&code) {
            return *width;
        }
        let before = self.width_ranges.partition_point(|(first, _, _)| *first <= code);
        let range = before.checked_sub(1).and_then(|index| self.width_ranges.get(index));
        range.filter(|(_, last, _)| code <= *last).map_or(self.default_width, |(_, _, width)| *width)
    }
}

/// Returns the text of each of the 256 codes.
fn simple_encoding(
    file: &mut File<'_>,
    dictionary: &Dictionary,
    has_map: bool,
) -> Result<Vec<String>, ReadError> {
    let encoding = file.get(dictionary, b"Encoding");
    let base_name = match &encoding {
        Object::Name(name) => Some(name.clone()),
        Object::Dictionary(encoding) => file.get(encoding, b"BaseEncoding").as_name().map(<[u8]>::to_vec),
        _ => None,
    };
    let base = match base_name.as_deref() {
        Some(b"WinAnsiEncoding") => BaseEncoding::WinAnsi,
        Some(b"MacRomanEncoding") => BaseEncoding::MacRoman,
        _ => BaseEncoding::Standard,
    };
    let is_drawn = file.get(dictionary, b"Subtype").as_name() == Some(b"Type3");
    let mut texts: Vec<String> = (0..=255).map(|code| base.decode(code)).collect();
    if base_name.is_none() && !has_map {
        for (code, text) in embedded_encoding(file, dictionary)? {
            if let Some(target) = texts.get_mut(code) {
                *target = text;
            }
        }
    }
    if let Object::Dictionary(encoding) = &encoding
        && let Object::Array(differences) = file.get(encoding, b"Differences")
    {
        let mut code = 0_usize;
        for difference in differences {
            match difference {
                Object::Number(number) => {
                    code = integer(number).and_then(|code| usize::try_from(code).ok()).unwrap_or(usize::MAX);
                }
                Object::Name(name) => {
                    if let Some(text) = texts.get_mut(code) {
                        let drawn = || if is_drawn { bitmap_glyph(&name) } else { None };
                        *text = glyph(&name).or_else(drawn).unwrap_or_default();
                    }
                    code = code.saturating_add(1);
                }
                _ => {}
            }
        }
    }
    Ok(texts)
}

/// Returns the encoding that a Type 1 font program in the file has.
fn embedded_encoding(
    file: &mut File<'_>,
    dictionary: &Dictionary,
) -> Result<Vec<(usize, String)>, ReadError> {
    let Some(descriptor) = file.dictionary(dictionary, b"FontDescriptor") else { return Ok(Vec::new()) };
    let Some(stream) = descriptor.get(b"FontFile".as_slice()).and_then(|object| file.stream(object)) else {
        return Ok(Vec::new());
    };
    Ok(type1_encoding(&file.decode(&stream)?))
}

/// Returns the entries `dup 12 /fi put` of the encoding of a Type 1 font, which is in its readable part.
fn type1_encoding(program: &[u8]) -> Vec<(usize, String)> {
    let mut entries = Vec::new();
    let key = b"/Encoding";
    let Some(start) = program.windows(key.len()).position(|window| window == key) else { return entries };
    let mut lexer = Lexer::new(program, start + key.len());
    let mut code = None;
    // 256 entries of four words, and the loop before them.
    for _ in 0..2_000 {
        match lexer.next() {
            Some(Object::Number(number)) => {
                code = integer(number).and_then(|code| usize::try_from(code).ok());
            }
            Some(Object::Name(name)) => {
                if let Some(code) = code.take().filter(|code| *code < 256) {
                    entries.push((code, glyph(&name).unwrap_or_default()));
                }
            }
            None => break,
            Some(Object::Keyword(word)) if matches!(word.as_slice(), b"def" | b"readonly" | b"eexec") => {
                break;
            }
            Some(_) => {}
        }
    }
    entries
}

impl ToUnicode {
    fn parse(data: &[u8]) -> Self {
        let mut map = Self::default();
        let mut lexer = Lexer::new(data, 0);
        let mut collected = Operands::default();
        while let Some(object) = lexer.next() {
            let Object::Keyword(word) = object else {
                collected.push(object, MAX_MAPPINGS);
                continue;
            };
            let operands = collected.as_slice();
            match word.as_slice() {
                b"endcodespacerange" => {
                    let is_short =
                        |object: &Object| matches!(object, Object::String(code) if code.len() == 1);
                    map.has_short_codes = !operands.is_empty() && operands.iter().all(is_short);
                }
                b"endbfchar" => map.add_characters(operands),
                b"endbfrange" => map.add_ranges(operands),
                _ => {}
            }
            collected.clear();
        }
        map.ranges.sort_by_key(|(first, _, _)| *first);
        map
    }

    fn add_characters(&mut self, operands: &[Object]) {
        for pair in operands.chunks_exact(2) {
            if let [Object::String(from), Object::String(to)] = pair
                && self.characters.len() < MAX_MAPPINGS
            {
                self.characters.insert(code(from), String::from_utf16_lossy(&units(to)));
            }
        }
    }

    fn add_ranges(&mut self, operands: &[Object]) {
        for triple in operands.chunks_exact(3) {
            let [Object::String(first), Object::String(last), to] = triple else { continue };
            match to {
                Object::String(text) if self.ranges.len() < MAX_MAPPINGS => {
                    self.ranges.push((code(first), code(last), units(text)));
                }
                Object::Array(texts) => {
                    for (from, text) in (code(first)..=code(last)).zip(texts) {
                        if let Object::String(text) = text
                            && self.characters.len() < MAX_MAPPINGS
                        {
                            self.characters.insert(from, String::from_utf16_lossy(&units(text)));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn get(&self, code: u32) -> Option<String> {
        if let Some(text) = self.characters.get(&code) {
            return Some(text.clone());
        }
        let before = self.ranges.partition_point(|(first, _, _)| *first <= code);
        let (first, last, text) = self.ranges.get(before.checked_sub(1)?)?;
        if code > *last {
            return None;
        }
        let mut text = text.clone();
        // The last unit counts up with the code.
        let unit = text.last_mut()?;
        *unit = unit.wrapping_add(u16::try_from(code - first).ok()?);
        Some(String::from_utf16_lossy(&text))
    }
}

fn code(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, byte| code << 8 | u32::from(*byte))
}

/// Returns UTF-16 code units; a text longer than a ligature is cut.
fn units(bytes: &[u8]) -> Vec<u16> {
    let unit = |pair: &[u8]| pair.iter().fold(0_u16, |unit, byte| unit << 8 | u16::from(*byte));
    bytes.chunks(2).take(16).map(unit).collect()
}
