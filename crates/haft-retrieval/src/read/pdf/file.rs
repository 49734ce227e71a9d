//! The objects of a file: found by scanning, decompressed within a budget.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::deadline::Deadline;
use super::super::{Format, ReadError, ReadLimits};
use super::decrypt::{Decryption, ObjectId};
use super::filters;
use super::lexer::{Dictionary, Lexer, Object, integer};
use super::pages::damaged;

/// The maximum number of objects.
const MAX_OBJECTS: usize = 2_000_000;
/// The maximum nesting of the page tree, and of references to references.
const MAX_DEPTH: usize = 64;
/// The maximum number of filters of a stream.
const MAX_FILTERS: usize = 4;

/// What decoding a stream costs besides its bytes.
const STREAM_COST: usize = 1024;
/// How many steps are between two looks at the clock.
const STEPS: u32 = 4096;

/// Where an object is.
#[derive(Debug, Clone, Copy)]
enum ObjectLocation {
    /// In the file, after `obj`.
    File(usize),
    /// In a decompressed object stream.
    Stream { stream: usize, at: usize },
}

/// A file.
#[derive(Debug)]
pub(super) struct File<'a> {
    bytes: &'a [u8],
    limits: &'a ReadLimits,
    places: HashMap<u32, ObjectLocation>,
    object_streams: Vec<Rc<Vec<u8>>>,
    /// How many bytes may still be decompressed.
    budget: usize,
    /// How many bytes of objects may still be read: an object is read again whenever it is used.
    work: Cell<usize>,
    deadline: Deadline,
    /// The steps since the last look at the clock.
    steps: Cell<u32>,
    /// Where the last `endstream` is.
    last_end: usize,
    trailer: Dictionary,
    decryption: Option<Decryption>,
}

/// A stream: its dictionary and raw bytes.
pub(super) struct Stream<'a> {
    pub(super) dictionary: Dictionary,
    raw: &'a [u8],
    id: ObjectId,
}

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) dictionary: Dictionary,
    /// Its resources; pages that inherit them share them.
    pub(super) resources: Rc<Object>,
}

impl<'a> File<'a> {
    /// Finds all objects. A later definition of a number replaces an earlier one, as in a file with updates.
    pub(super) fn open(
        bytes: &'a [u8],
        limits: &'a ReadLimits,
        deadline: Deadline,
    ) -> Result<Self, ReadError> {
        let mut file = Self {
            bytes,
            limits,
            places: HashMap::new(),
            object_streams: Vec::new(),
            budget: limits.max_decompressed,
            work: Cell::new(limits.max_decompressed.saturating_mul(2)),
            deadline,
            steps: Cell::new(0),
            last_end: bytes.windows(9).rposition(|window| window == b"endstream").unwrap_or_default(),
            trailer: Dictionary::new(),
            decryption: None,
        };
        let starts = file.scan()?;
        if file.places.is_empty() {
            return Err(damaged("it has no objects"));
        }
        if file.trailer.contains_key(b"Encrypt".as_slice()) {
            let decryption = file.open_decryption().ok_or(ReadError::Encrypted { format: Format::Pdf })?;
            file.decryption = Some(decryption);
        }
        for start in starts {
            file.open_object_stream(start)?;
        }
        Ok(file)
    }

    /// Finds `obj` and `trailer` keywords; returns where object streams are.
    fn scan(&mut self) -> Result<Vec<usize>, ReadError> {
        let mut object_streams = Vec::new();
        let mut at = 0;
        while let Some(found) = find(self.bytes, at, b"obj") {
            at = found + 3;
            let Some((number, _)) = object_id(self.bytes, found) else { continue };
            if self.places.len() >= MAX_OBJECTS {
                return Err(damaged("it has too many objects"));
            }
            self.places.insert(number, ObjectLocation::File(at));
            // Arrays and the like are not read here: dictionaries are passed over as a whole, so every byte is read once.
            if !self.is_dictionary(at) {
                continue;
            }
            let mut lexer = Lexer::new(self.bytes, at);
            let Some(Object::Dictionary(dictionary)) = lexer.next() else { continue };
            match dictionary.get(b"Type".as_slice()).and_then(Object::as_name) {
                Some(b"ObjStm") => object_streams.push(at),
                Some(b"XRef") => self.add_trailer(&dictionary),
                _ => {}
            }
            // What is inside of a dictionary is no object; the time stays in proportion to the file.
            at = lexer.position().max(at);
            self.skip_stream(&mut lexer, &mut at);
        }
        let mut from = 0;
        while let Some(found) = find(self.bytes, from, b"trailer") {
            from = found + 7;
            if !self.is_dictionary(from) {
                continue;
            }
            let mut lexer = Lexer::new(self.bytes, from);
            if let Some(Object::Dictionary(dictionary)) = lexer.next() {
                self.add_trailer(&dictionary);
                from = lexer.position().max(from);
            }
        }
        Ok(object_streams)
    }

    /// Tells whether a dictionary starts at a place.
    fn is_dictionary(&self, at: usize) -> bool {
        let rest = self.bytes.get(at..).unwrap_or_default();
        rest.get(..64).unwrap_or(rest).trim_ascii_start().starts_with(b"<<")
    }

    /// Moves behind the data of a stream, where `obj` may occur by chance.
    fn skip_stream(&self, lexer: &mut Lexer<'_>, at: &mut usize) {
        let is_stream = matches!(lexer.next(), Some(Object::Keyword(word)) if word == b"stream");
        if is_stream && let Some(end) = self.end_of_stream(lexer.position()) {
            *at = end;
        }
    }

    /// Returns the next `endstream`. Without one the search would read the rest of the file for every stream.
    fn end_of_stream(&self, from: usize) -> Option<usize> {
        if from > self.last_end { None } else { find(self.bytes, from, b"endstream") }
    }

    fn add_trailer(&mut self, dictionary: &Dictionary) {
        for key in [b"Root".as_slice(), b"Info", b"Encrypt", b"ID"] {
            if let Some(value) = dictionary.get(key) {
                self.trailer.insert(key.to_vec(), value.clone());
            }
        }
    }

    /// Derives the key of an encrypted file that has no password.
    fn open_decryption(&self) -> Option<Decryption> {
        let encrypt = self.dictionary(&self.trailer, b"Encrypt")?;
        let id = match self.get(&self.trailer, b"ID") {
            Object::Array(parts) => parts.first().map(|part| self.resolve(part)),
            _ => None,
        };
        let id = if let Some(Object::String(id)) = id { id } else { Vec::new() };
        Decryption::open(self, &encrypt, &id)
    }

    fn open_object_stream(&mut self, start: usize) -> Result<(), ReadError> {
        let Some(stream) = self.stream_at(start) else { return Ok(()) };
        let (Some(count), Some(first)) =
            (self.integer(&stream.dictionary, b"N"), self.integer(&stream.dictionary, b"First"))
        else {
            return Ok(());
        };
        let data = Rc::new(self.decode(&stream)?);
        let index = self.object_streams.len();
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let mut header = Lexer::new(data.get(..first).unwrap_or_default(), 0);
        for _ in 0..count {
            let (Some(number), Some(offset)) = (header.next(), header.next()) else { break };
            let (Some(number), Some(offset)) = (number.as_integer(), offset.as_integer()) else { break };
            if self.places.len() >= MAX_OBJECTS {
                return Err(damaged("it has too many objects"));
            }
            let at = first.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX));
            // An object of the file that comes later is an update of the one in the stream.
            if !matches!(self.places.get(&number), Some(ObjectLocation::File(place)) if *place > start) {
                self.places.insert(number, ObjectLocation::Stream { stream: index, at });
            }
        }
        self.object_streams.push(data);
        Ok(())
    }

    /// Returns the object with this number, or `Null` if the file does not have it.
    fn load(&self, number: u32) -> Object {
        let (bytes, at) = match self.places.get(&number) {
            Some(ObjectLocation::File(at)) => (self.bytes, *at),
            Some(ObjectLocation::Stream { stream, at }) => {
                (self.object_streams.get(*stream).map_or(self.bytes, |data| data.as_slice()), *at)
            }
            None => return Object::Null,
        };
        if self.work.get() == 0 {
            return Object::Null;
        }
        let mut lexer = Lexer::new(bytes, at);
        let object = lexer.next().unwrap_or(Object::Null);
        self.charge(lexer.position().saturating_sub(at) + 64);
        object
    }

    /// Counts work that is not in proportion to bytes that are decompressed.
    pub(super) fn charge(&self, work: usize) {
        self.work.set(self.work.get().saturating_sub(work));
    }

    /// Counts what it costs to copy an object that is used again and again.
    fn charge_copy(&self, object: &Object) {
        self.charge(object.weight());
    }

    /// Fails once the file has cost more than it may; until then its objects read as null.
    pub(super) fn check_work(&self) -> Result<(), ReadError> {
        self.deadline.check()?;
        if self.work.get() == 0 { Err(damaged("its objects refer to each other too often")) } else { Ok(()) }
    }

    /// Counts a step; fails once the time is over.
    pub(super) fn step(&self) -> Result<(), ReadError> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps % STEPS);
        if steps == STEPS { self.deadline.check() } else { Ok(()) }
    }

    /// Returns the maximum length of the text of a page, which is that of the document.
    pub(super) fn max_text(&self) -> usize {
        self.limits.max_text
    }

    /// Follows references.
    pub(super) fn resolve(&self, object: &Object) -> Object {
        let mut object = object.clone();
        for _ in 0..MAX_DEPTH {
            let Object::Reference(number) = object else { return object };
            object = self.load(number);
        }
        Object::Null
    }

    /// Returns an entry of a dictionary, resolved.
    pub(super) fn get(&self, dictionary: &Dictionary, key: &[u8]) -> Object {
        dictionary.get(key).map_or(Object::Null, |object| self.resolve(object))
    }

    /// Returns a dictionary of a dictionary.
    pub(super) fn dictionary(&self, dictionary: &Dictionary, key: &[u8]) -> Option<Dictionary> {
        if let Object::Dictionary(found) = self.get(dictionary, key) { Some(found) } else { None }
    }

    /// Returns an entry of a category of resources, such as a font, unresolved.
    pub(super) fn resource(&self, resources: &Dictionary, category: &[u8], name: &Object) -> Option<Object> {
        let name = name.as_name()?;
        let found = match resources.get(category)? {
            Object::Dictionary(entries) => entries.get(name).cloned(),
            other => match self.resolve(other) {
                Object::Dictionary(mut entries) => entries.remove(name),
                _ => None,
            },
        };
        if let Some(found) = &found {
            self.charge_copy(found);
        }
        found
    }

    pub(super) fn integer(&self, dictionary: &Dictionary, key: &[u8]) -> Option<u32> {
        self.get(dictionary, key).as_number().and_then(integer)
    }

    fn stream_at(&self, at: usize) -> Option<Stream<'a>> {
        let mut lexer = Lexer::new(self.bytes, at);
        let Some(Object::Dictionary(dictionary)) = lexer.next() else { return None };
        if lexer.next() != Some(Object::Keyword(b"stream".to_vec())) {
            return None;
        }
        let mut start = lexer.position();
        start += usize::from(self.bytes.get(start) == Some(&b'\r'));
        start += usize::from(self.bytes.get(start) == Some(&b'\n'));
        self.charge(start.saturating_sub(at));
        let length = self.integer(&dictionary, b"Length").and_then(|length| usize::try_from(length).ok());
        let declared = length.and_then(|length| start.checked_add(length)).filter(|end| {
            // The length holds only if the keyword follows.
            let after = self.bytes.get(*end..).unwrap_or_default();
            after.get(..32).unwrap_or(after).trim_ascii_start().starts_with(b"endstream")
        });
        let end = declared.or_else(|| {
            let end = self.end_of_stream(start);
            self.charge(end.unwrap_or(start) - start);
            end
        })?;
        let id = at.checked_sub(3).and_then(|keyword| object_id(self.bytes, keyword)).unwrap_or_default();
        Some(Stream { dictionary, raw: self.bytes.get(start..end)?, id })
    }

    /// Returns the stream that a reference names.
    pub(super) fn stream(&self, object: &Object) -> Option<Stream<'a>> {
        let Object::Reference(number) = object else { return None };
        let Some(ObjectLocation::File(at)) = self.places.get(number) else { return None };
        self.stream_at(*at)
    }

    /// Returns the decoded bytes of a stream; empty if a filter is unknown, as those of images are.
    pub(super) fn decode(&mut self, stream: &Stream<'_>) -> Result<Vec<u8>, ReadError> {
        let list = |object: Object| match object {
            Object::Array(elements) => elements,
            Object::Null => Vec::new(),
            other => vec![other],
        };
        let filters = list(self.get(&stream.dictionary, b"Filter"));
        let parameters = list(self.get(&stream.dictionary, b"DecodeParms"));
        if filters.len() > MAX_FILTERS {
            return Err(damaged("a stream has too many filters"));
        }
        // Every stream has a price, so that a tiny one cannot be run millions of times.
        self.spend(stream.raw.len() + STREAM_COST)?;
        let is_plain = filters.first().and_then(Object::as_name) == Some(b"Crypt");
        let mut data = match &self.decryption {
            Some(decryption) if !is_plain => decryption.stream(stream.id, stream.raw),
            _ => stream.raw.to_vec(),
        };
        for (index, filter) in filters.iter().enumerate() {
            let filter = self.resolve(filter);
            let parameters = match parameters.get(index).map(|object| self.resolve(object)) {
                Some(Object::Dictionary(parameters)) => parameters,
                _ => Dictionary::new(),
            };
            // One byte more than is left shows that it is too much.
            let limit = self.budget.saturating_add(1);
            data = match filter.as_name() {
                Some(b"FlateDecode" | b"Fl") => filters::inflate(&data, limit),
                Some(b"LZWDecode" | b"LZW") => {
                    let is_early = self.integer(&parameters, b"EarlyChange") != Some(0);
                    filters::lzw(&data, usize::from(is_early), limit)
                }
                Some(b"RunLengthDecode" | b"RL") => filters::run_length(&data, limit),
                // The filter of streams that are not encrypted in an encrypted file.
                Some(b"Crypt") => data,
                Some(b"ASCIIHexDecode" | b"AHx") => filters::ascii_hex(&data),
                Some(b"ASCII85Decode" | b"A85") => filters::ascii_85(&data),
                _ => return Ok(Vec::new()),
            };
            self.spend(data.len())?;
            data = self.unpredict(data, &parameters)?;
        }
        Ok(data)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ReadError> {
        let limit = self.limits.max_decompressed;
        self.budget = self.budget.checked_sub(bytes).ok_or(ReadError::DecompressedTooLarge { limit })?;
        Ok(())
    }

    /// Reverts the PNG predictors, which object streams may have.
    fn unpredict(&self, data: Vec<u8>, parameters: &Dictionary) -> Result<Vec<u8>, ReadError> {
        let value = |key: &[u8], default| self.integer(parameters, key).unwrap_or(default);
        if value(b"Predictor", 1) < 10 {
            return Ok(data);
        }
        let bits = u64::from(value(b"Colors", 1)) * u64::from(value(b"BitsPerComponent", 8));
        let row = (bits * u64::from(value(b"Columns", 1))).div_ceil(8);
        let (Ok(row), Ok(pixel)) = (usize::try_from(row), usize::try_from(bits.div_ceil(8))) else {
            return Err(damaged("a stream has invalid parameters"));
        };
        if row == 0 || pixel == 0 || row > 1 << 24 {
            return Err(damaged("a stream has invalid parameters"));
        }
        Ok(filters::unpredict_png(&data, row, pixel))
    }

    /// Returns the title of the document information.
    pub(super) fn title(&self) -> Option<String> {
        let info = self.dictionary(&self.trailer, b"Info")?;
        let Object::String(mut title) = self.get(&info, b"Title") else { return None };
        // Strings of object streams are encrypted with their stream.
        if let Some(decryption) = &self.decryption
            && let Some(Object::Reference(number)) = self.trailer.get(b"Info".as_slice())
            && let Some(ObjectLocation::File(at)) = self.places.get(number)
        {
            title = decryption.string(object_id(self.bytes, at.checked_sub(3)?)?, &title);
        }
        Some(text_string(&title))
    }

    /// Returns the pages in order, each with the resources that it has or inherits.
    pub(super) fn pages(&self) -> Result<Vec<Page>, ReadError> {
        let catalog = self.dictionary(&self.trailer, b"Root").unwrap_or_default();
        let mut pages = Vec::new();
        let mut seen = HashSet::new();
        let root = catalog.get(b"Pages".as_slice()).cloned().unwrap_or(Object::Null);
        let mut open = vec![(root, Rc::new(Object::Null), 0)];
        while let Some((node, inherited, depth)) = open.pop() {
            if depth > MAX_DEPTH || matches!(&node, Object::Reference(number) if !seen.insert(*number)) {
                continue;
            }
            let Object::Dictionary(mut dictionary) = self.resolve(&node) else { continue };
            let resources = dictionary.remove(b"Resources".as_slice()).map_or(inherited, Rc::new);
            if let Object::Array(kids) = self.get(&dictionary, b"Kids") {
                // The last one is taken first.
                open.extend(kids.into_iter().rev().map(|kid| (kid, Rc::clone(&resources), depth + 1)));
            } else {
                pages.push(Page { dictionary, resources });
            }
            if open.len() > MAX_OBJECTS {
                return Err(damaged("its page tree is too large"));
            }
            self.check_pages(pages.len())?;
            self.check_work()?;
        }
        if pages.is_empty() { self.pages_without_tree() } else { Ok(pages) }
    }

    /// Returns the pages of a file whose page tree is damaged, by their numbers.
    fn pages_without_tree(&self) -> Result<Vec<Page>, ReadError> {
        let mut numbers: Vec<u32> = self.places.keys().copied().collect();
        numbers.sort_unstable();
        let mut pages = Vec::new();
        for number in numbers {
            if let Object::Dictionary(mut dictionary) = self.load(number)
                && dictionary.get(b"Type".as_slice()).and_then(Object::as_name) == Some(b"Page")
            {
                let resources = Rc::new(dictionary.remove(b"Resources".as_slice()).unwrap_or(Object::Null));
                pages.push(Page { dictionary, resources });
                self.check_pages(pages.len())?;
            }
        }
        self.check_work()?;
        Ok(pages)
    }

    fn check_pages(&self, pages: usize) -> Result<(), ReadError> {
        let limit = self.limits.max_pages;
        if pages > limit { Err(ReadError::TooManyPages { limit }) } else { Ok(()) }
    }
}

/// Returns where a needle is.
fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let first = *needle.first()?;
    let mut at = 0;
    while let Some(found) = rest.get(at..)?.iter().position(|byte| *byte == first) {
        at += found;
        if rest.get(at..)?.starts_with(needle) {
            return Some(from + at);
        }
        at += 1;
    }
    None
}

/// Returns the number and generation in front of `obj`, which starts at a place.
fn object_id(bytes: &[u8], keyword: usize) -> Option<ObjectId> {
    // Numbers have at most ten digits, so that this is a small window.
    let window = bytes.get(keyword.saturating_sub(32)..keyword)?;
    let text: Vec<u8> = window.iter().rev().copied().collect();
    let mut words = text.split(|byte| super::lexer::is_space(*byte)).filter(|word| !word.is_empty());
    let (generation, number) = (words.next()?, words.next()?);
    if !generation.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let parse = |digits: &[u8]| -> Option<u32> {
        let digits: Vec<u8> = digits.iter().copied().take_while(u8::is_ascii_digit).collect();
        let digits: Vec<u8> = digits.into_iter().rev().collect();
        std::str::from_utf8(&digits).ok()?.parse().ok()
    };
    Some((parse(number)?, parse(generation).unwrap_or_default()))
}

/// Returns a text string: UTF-16 with a mark, UTF-8 with a mark, or one byte per character.
fn text_string(bytes: &[u8]) -> String {
    let encoding =
        encoding_rs::Encoding::for_bom(bytes).map_or(encoding_rs::WINDOWS_1252, |(encoding, _)| encoding);
    encoding.decode(bytes).0.into_owned()
}
