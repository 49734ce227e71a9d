//! Cuts a document into chunks along its structure.
//!
//! A chunk never crosses a heading, and carries the path of headings above it. Paragraphs, list items, table rows and
//! code blocks stay whole if they fit; what does not fit is cut at lines, sentences, words, in this order.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::document::{Block, BlockKind, Document};
use crate::metadata::{self, Metadata, MetadataError};
use crate::{Format, Language};

/// The maximum length of a document's id in bytes.
pub const MAX_DOCUMENT_ID: usize = 512;
/// The largest chunk that options may allow, in characters or tokens.
const MAX_SIZE: usize = 32_000;
/// The maximum length of a heading in the path of a chunk, in characters.
const MAX_HEADING: usize = 200;

/// A piece of a document, as it is stored and ranked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// The id: the same text in the same document keeps its id.
    pub id: String,
    /// The id of the document.
    pub document: String,
    /// The number of the chunk in the document, counted from 0.
    pub ordinal: u32,
    /// The headings above the chunk, highest first.
    pub headings: Vec<String>,
    /// The text.
    pub text: String,
    /// Where the text is in the document.
    pub position: Position,
    /// The hash of headings, text and metadata.
    pub hash: String,
    /// The language of the document.
    pub language: Language,
    /// The metadata of the document.
    pub metadata: Metadata,
}

impl Chunk {
    /// Returns the headings as a path, such as `Guide > Install`.
    pub fn heading_path(&self) -> String {
        self.headings.join(" > ")
    }

    /// Returns what an embedding model should see: the path of headings and the text.
    pub fn text_with_headings(&self) -> String {
        if self.headings.is_empty() {
            return self.text.clone();
        }
        format!("{}\n\n{}", self.heading_path(), self.text)
    }
}

/// Where a chunk is in its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The bytes in [`Document::text`].
    pub bytes: Range<usize>,
    /// The first and last line, counted from 1, in text formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// The first and last page, counted from 1, in formats with pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<(u32, u32)>,
}

/// How sizes are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeUnit {
    /// Unicode characters.
    Characters,
    /// Tokens of a language model, estimated.
    Tokens,
}

impl SizeUnit {
    /// Returns the size of a text.
    pub fn measure(self, text: &str) -> usize {
        match self {
            Self::Characters => text.chars().count(),
            // Four ASCII characters are about one token; other scripts need more tokens per character.
            Self::Tokens => text.chars().map(|c| if c.is_ascii() { 1 } else { 3 }).sum::<usize>().div_ceil(4),
        }
    }
}

/// How a document is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChunkOptions {
    /// How sizes are measured.
    pub unit: SizeUnit,
    /// The size at which a chunk is complete.
    pub target: usize,
    /// The size that no chunk exceeds.
    pub max: usize,
    /// The size of the text that a chunk repeats from the one before it in the same section.
    pub overlap: usize,
}

impl Default for ChunkOptions {
    fn default() -> Self {
        Self { unit: SizeUnit::Tokens, target: 300, max: 600, overlap: 40 }
    }
}

/// A document or options that cannot be cut.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// Sizes that contradict each other.
    #[error("`{field}` is {value}; {rule}")]
    Options {
        /// The option.
        field: &'static str,
        /// Its value.
        value: usize,
        /// What it must be.
        rule: &'static str,
    },
    /// The document's id is empty or too long.
    #[error("document id has {0} bytes; use 1 to {MAX_DOCUMENT_ID}")]
    DocumentId(usize),
    /// The metadata is invalid.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl ChunkOptions {
    /// Checks that the sizes agree.
    pub fn check(&self) -> Result<(), ChunkError> {
        let error = |field, value, rule| Err(ChunkError::Options { field, value, rule });
        if !(16..=MAX_SIZE).contains(&self.max) {
            return error("max", self.max, "use 16 to 32000");
        }
        if self.target == 0 || self.target > self.max {
            return error("target", self.target, "use 1 to the value of `max`");
        }
        if self.overlap > self.target / 2 {
            return error("overlap", self.overlap, "use at most half of `target`");
        }
        Ok(())
    }
}

/// Whose chunks are made: the id and metadata that every chunk carries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Source {
    /// The id of the document.
    pub document: String,
    /// The metadata of the document.
    pub metadata: Metadata,
}

/// Cuts a document into chunks.
pub fn chunk(document: &Document, source: &Source, options: &ChunkOptions) -> Result<Vec<Chunk>, ChunkError> {
    options.check()?;
    if source.document.is_empty() || source.document.len() > MAX_DOCUMENT_ID {
        return Err(ChunkError::DocumentId(source.document.len()));
    }
    metadata::check(&source.metadata)?;
    let mut cutter = Cutter::new(document, source, options);
    for block in &document.blocks {
        cutter.add(block);
    }
    cutter.close_section(None);
    Ok(cutter.chunks)
}

/// A part of a chunk in the making.
#[derive(Debug, Clone)]
struct Piece {
    kind: BlockKind,
    text: String,
    range: Range<usize>,
    page: Option<u32>,
    /// Whether `text` is the text at `range`, so that parts of it have an exact range too.
    is_verbatim: bool,
}

struct Cutter<'a> {
    document: &'a Document,
    source: &'a Source,
    options: &'a ChunkOptions,
    lines: Option<LineStarts>,
    /// The open headings with their levels, and where the innermost one is.
    headings: Vec<(u8, String)>,
    heading: Option<Piece>,
    /// Whether the open section has text of its own.
    has_body: bool,
    pieces: Vec<Piece>,
    size: usize,
    /// Whether `pieces` holds only the overlap with the chunk before.
    is_overlap: bool,
    chunks: Vec<Chunk>,
    occurrences: HashMap<String, u32>,
}

impl<'a> Cutter<'a> {
    fn new(document: &'a Document, source: &'a Source, options: &'a ChunkOptions) -> Self {
        let has_lines = !matches!(document.format, Format::Pdf | Format::Docx);
        Self {
            document,
            source,
            options,
            lines: has_lines.then(|| LineStarts::of(&document.text)),
            headings: Vec::new(),
            heading: None,
            has_body: false,
            pieces: Vec::new(),
            size: 0,
            is_overlap: false,
            chunks: Vec::new(),
            occurrences: HashMap::new(),
        }
    }

    fn add(&mut self, block: &Block) {
        let verbatim = self.document.text.get(block.range.clone()) == Some(block.text.as_str());
        let piece = Piece {
            kind: block.kind,
            text: block.text.clone(),
            range: block.range.clone(),
            page: block.page,
            is_verbatim: verbatim,
        };
        if let BlockKind::Heading(level) = block.kind {
            self.close_section(Some(level));
            self.headings.retain(|(open, _)| *open < level);
            self.headings.push((level, block.text.chars().take(MAX_HEADING).collect()));
            self.heading = Some(piece);
            return;
        }
        self.has_body = true;
        if block.kind == BlockKind::Record {
            self.flush();
            self.pieces.clear();
            self.size = 0;
        }
        let size = self.options.unit.measure(&piece.text);
        if size <= self.options.max {
            self.push(piece, size);
            return;
        }
        for part in split(&piece, self.options) {
            let size = self.options.unit.measure(&part.text);
            self.push(part, size);
        }
    }

    fn push(&mut self, piece: Piece, size: usize) {
        if !self.is_overlap && !self.pieces.is_empty() && self.size + size > self.options.target {
            self.flush();
        }
        // An overlap never pushes a chunk beyond its maximum; separators count too.
        if self.is_overlap && self.size + size + 2 > self.options.max {
            self.pieces.clear();
            self.size = 0;
        }
        self.is_overlap = false;
        self.size += size + usize::from(!self.pieces.is_empty());
        self.pieces.push(piece);
    }

    /// Ends the open section. A heading without text below it becomes a chunk, so that it can be found.
    fn close_section(&mut self, next_level: Option<u8>) {
        if let Some(heading) = self.heading.take() {
            let is_parent = match (heading.kind, next_level) {
                (BlockKind::Heading(level), Some(next)) => next > level,
                _ => false,
            };
            if !self.has_body && !is_parent {
                let path = self.headings.pop();
                for part in split(&heading, self.options) {
                    let size = self.options.unit.measure(&part.text);
                    self.push(part, size);
                }
                self.flush();
                self.headings.extend(path);
            }
        }
        self.flush();
        self.pieces.clear();
        self.size = 0;
        self.is_overlap = false;
        self.has_body = false;
    }

    /// Makes a chunk of the pieces, and keeps the overlap for the next one.
    fn flush(&mut self) {
        if self.is_overlap || self.pieces.is_empty() {
            return;
        }
        let pieces = std::mem::take(&mut self.pieces);
        self.size = 0;
        let Some(last) = pieces.last().cloned() else { return };
        self.emit(&pieces);
        if let Some(overlap) = tail(&last, self.options) {
            self.size = self.options.unit.measure(&overlap.text);
            self.pieces.push(overlap);
            self.is_overlap = true;
        }
    }

    fn emit(&mut self, pieces: &[Piece]) {
        let text = join(pieces);
        if text.trim().is_empty() {
            return;
        }
        let headings: Vec<String> = self.headings.iter().map(|(_, heading)| heading.clone()).collect();
        let hash = hash(&headings, &text, &self.source.metadata);
        let occurrence = self.occurrences.entry(hash.clone()).or_default();
        let id = chunk_id(&self.source.document, &hash, *occurrence);
        *occurrence += 1;
        let start = pieces.iter().map(|piece| piece.range.start).min().unwrap_or_default();
        let end = pieces.iter().map(|piece| piece.range.end).max().unwrap_or_default();
        let pages = || pieces.iter().filter_map(|piece| piece.page);
        let position = Position {
            bytes: start..end,
            lines: self
                .lines
                .as_ref()
                .map(|lines| (lines.line(start), lines.line(end.saturating_sub(1).max(start)))),
            pages: pages().min().zip(pages().max()),
        };
        self.chunks.push(Chunk {
            id,
            document: self.source.document.clone(),
            ordinal: u32::try_from(self.chunks.len()).unwrap_or(u32::MAX),
            headings,
            text,
            position,
            hash,
            language: self.document.language,
            metadata: self.source.metadata.clone(),
        });
    }
}

/// Joins pieces: paragraphs by an empty line, items and rows by a line break.
fn join(pieces: &[Piece]) -> String {
    let mut text = String::new();
    let mut previous: Option<BlockKind> = None;
    for piece in pieces {
        if let Some(previous) = previous {
            let is_tight =
                previous == piece.kind && matches!(piece.kind, BlockKind::ListItem | BlockKind::TableRow);
            text.push_str(if is_tight { "\n" } else { "\n\n" });
        }
        text.push_str(&piece.text);
        previous = Some(piece.kind);
    }
    text
}

fn hash(headings: &[String], text: &str, metadata: &Metadata) -> String {
    let mut hasher = blake3::Hasher::new();
    // Lengths in front keep two different lists of parts apart.
    for part in headings.iter().map(String::as_str).chain([text]) {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    if !metadata.is_empty() {
        hasher.update(serde_json::to_string(metadata).unwrap_or_default().as_bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

fn chunk_id(document: &str, hash: &str, occurrence: u32) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&document.len().to_le_bytes());
    hasher.update(document.as_bytes());
    hasher.update(hash.as_bytes());
    hasher.update(&occurrence.to_le_bytes());
    hasher.finalize().to_hex().chars().take(32).collect()
}

/// Cuts a piece into parts of at most the target size.
fn split(piece: &Piece, options: &ChunkOptions) -> Vec<Piece> {
    let mut parts = Vec::new();
    let mut rest = 0..piece.text.len();
    while let Some(text) = piece.text.get(rest.clone()).filter(|text| !text.is_empty()) {
        let fitting = prefix_of_size(text, options.target, options.unit);
        let cut = if fitting == text.len() { fitting } else { boundary(text, fitting, piece.kind) };
        parts.extend(sub_piece(piece, rest.start..rest.start + cut));
        rest.start += cut;
    }
    parts
}

/// Returns the end of the longest prefix that has at most a size; at least one character.
fn prefix_of_size(text: &str, size: usize, unit: SizeUnit) -> usize {
    let limit = if unit == SizeUnit::Tokens { size * 4 } else { size };
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += if unit == SizeUnit::Tokens && !c.is_ascii() { 3 } else { 1 };
        if used > limit && at > 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the best place to cut a text before a limit: after a line, a sentence, a word.
fn boundary(text: &str, limit: usize, kind: BlockKind) -> usize {
    let head = text.get(..limit).unwrap_or(text);
    let minimum = limit / 3;
    let after = |position: Option<usize>, length: usize| {
        position.map(|at| at + length).filter(|at| *at > minimum && *at <= limit)
    };
    let line = after(head.rfind('\n'), 1);
    if kind == BlockKind::Code && line.is_some() {
        return line.unwrap_or(limit);
    }
    let sentence =
        [". ", "! ", "? ", ".\n", "。"].iter().filter_map(|end| after(head.rfind(end), end.len())).max();
    let word = after(head.rfind(char::is_whitespace), 1).filter(|at| text.is_char_boundary(*at));
    sentence.or(line).or(word).unwrap_or(limit)
}

/// Returns a part of a piece without surrounding white space, or `None` if nothing is left.
fn sub_piece(piece: &Piece, range: Range<usize>) -> Option<Piece> {
    let text = piece.text.get(range.clone())?;
    let trimmed = if piece.kind == BlockKind::Code { text.trim_end() } else { text.trim() };
    if trimmed.trim().is_empty() {
        return None;
    }
    let start = range.start + text.find(trimmed).unwrap_or_default();
    let range = if piece.is_verbatim {
        piece.range.start + start..piece.range.start + start + trimmed.len()
    } else {
        piece.range.clone()
    };
    Some(Piece {
        kind: piece.kind,
        text: trimmed.to_owned(),
        range,
        page: piece.page,
        is_verbatim: piece.is_verbatim,
    })
}

/// Returns the end of a piece that the next chunk repeats: whole words, from a sentence on if there is one.
fn tail(piece: &Piece, options: &ChunkOptions) -> Option<Piece> {
    // Rows, items and code are units of their own: half of one explains nothing.
    if options.overlap == 0 || piece.kind != BlockKind::Paragraph {
        return None;
    }
    let text = piece.text.as_str();
    let limit = if options.unit == SizeUnit::Tokens { options.overlap * 4 } else { options.overlap };
    let mut used = 0;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        used += if options.unit == SizeUnit::Tokens && !c.is_ascii() { 3 } else { 1 };
        if used > limit {
            break;
        }
        start = at;
    }
    if start > 0 {
        let window = text.get(start..)?;
        let sentence =
            [". ", "! ", "? ", "。"].iter().filter_map(|end| Some(window.find(end)? + end.len())).min();
        let word = window.find(char::is_whitespace).map(|at| at + 1);
        start += sentence.filter(|at| *at < window.len()).or(word)?;
    }
    sub_piece(piece, start..text.len())
}

/// Where the lines of a text start.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// Returns the line of a byte, counted from 1.
    fn line(&self, byte: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= byte)).unwrap_or(u32::MAX)
    }
}
