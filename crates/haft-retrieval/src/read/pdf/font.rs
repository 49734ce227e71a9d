//! Fonts: which text a code stands for, and how wide it is.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::ReadError;
use super::encoding::{BaseEncoding, glyph};
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
    /// The number of bytes of a code.
    code_length: usize,
    to_unicode: ToUnicode,
    /// The text of each code of a simple font.
    simple: Option<Vec<String>>,
    widths: HashMap<u32, f64>,
    /// Ranges of codes of one width.
    width_ranges: Vec<(u32, u32, f64)>,
    default_width: f64,
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
        let mut font = Self {
            code_length: if is_composite && !to_unicode.has_short_codes { 2 } else { 1 },
            to_unicode,
            simple: (!is_composite).then(|| simple_encoding(file, dictionary)),
            widths: HashMap::new(),
            width_ranges: Vec::new(),
            default_width: DEFAULT_WIDTH,
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

    /// Returns the text of each code of a string and its width in thousandths of the font size.
    pub(super) fn decode(&self, string: &[u8]) -> impl Iterator<Item = (String, f64)> {
        string.chunks(self.code_length).map(|code| {
            let code = code.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            (self.text(code), self.width(code))
        })
    }

    fn text(&self, code: u32) -> String {
        let simple = || self.simple.as_ref()?.get(usize::try_from(code).ok()?).cloned();
        self.to_unicode.get(code).or_else(simple).unwrap_or_default()
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
fn simple_encoding(file: &File<'_>, dictionary: &Dictionary) -> Vec<String> {
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
    let mut texts: Vec<String> = (0..=255).map(|code| base.decode(code)).collect();
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
                        *text = glyph(&name).unwrap_or_default();
                    }
                    code = code.saturating_add(1);
                }
                _ => {}
            }
        }
    }
    texts
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
