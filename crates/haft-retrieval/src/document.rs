//! A document that was read: its text and its structure.

use std::ops::Range;

use crate::Language;
use crate::read::Format;

/// A document as text with structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The detected format.
    pub format: Format,
    /// Its own title, if it declares one.
    pub title: Option<String>,
    /// The text that positions refer to: the decoded source of text formats, the extracted text of PDF and DOCX.
    pub text: String,
    /// The blocks in reading order.
    pub blocks: Vec<Block>,
    /// The language that its words suggest.
    pub language: Language,
}

/// A part of a document that belongs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What the block is.
    pub kind: BlockKind,
    /// Its text without markup.
    pub text: String,
    /// Its bytes in [`Document::text`].
    pub range: Range<usize>,
    /// Its page, counted from 1, in formats that have pages.
    pub page: Option<u32>,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading; level 1 is the highest.
    Heading(u8),
    /// A paragraph of text.
    Paragraph,
    /// An item of a list.
    ListItem,
    /// A row of a table, with the names of its columns.
    TableRow,
    /// A block of code, whose line breaks matter.
    Code,
    /// One record, such as a line of a JSON Lines file.
    Record,
}
