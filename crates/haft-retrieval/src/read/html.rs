//! HTML: the visible text by its block elements, from the token stream of a conforming tokenizer.
//!
//! No tree is built: the tree of hostile HTML can be far larger and deeper than its source.

use std::ops::Range;

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{Token, Tokenizer};

use super::ReadError;
use super::output::{Output, squeeze};
use super::table::Table;
use crate::BlockKind;

/// Reads HTML.
pub(super) fn read(source: &str, output: &mut Output<'_>) -> Result<(), ReadError> {
    let mut reader = Reader {
        output,
        text: String::new(),
        range: None,
        kind: BlockKind::Paragraph,
        skipping: None,
        preformatted: 0,
        in_title: false,
        row: None,
        is_header_row: false,
        table: Table::default(),
    };
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    // Treats the content of scripts and styles as text, as browsers do.
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(source, emitter) {
        match token {
            Ok(Token::StartTag(tag)) => reader.start(&tag.name, tag.self_closing)?,
            Ok(Token::EndTag(tag)) => reader.end(&tag.name)?,
            Ok(Token::String(text)) => {
                reader.push(&String::from_utf8_lossy(&text.value), text.span.start..text.span.end);
            }
            Ok(Token::Comment(_) | Token::Doctype(_) | Token::Error(_)) | Err(_) => {}
        }
    }
    reader.end_row()?;
    reader.flush()
}

/// Returns the text of an HTML fragment.
pub(super) fn plain_text(html: &str) -> String {
    let mut text = String::new();
    for token in Tokenizer::new(html) {
        if let Ok(Token::String(part)) = token {
            text.push_str(&String::from_utf8_lossy(&part.value));
        }
    }
    text
}

struct Reader<'o, 'l> {
    output: &'o mut Output<'l>,
    text: String,
    range: Option<Range<usize>>,
    kind: BlockKind,
    /// The element that is being skipped, and its nesting.
    skipping: Option<(Vec<u8>, usize)>,
    preformatted: usize,
    in_title: bool,
    /// The cells of the open table row.
    row: Option<Vec<String>>,
    is_header_row: bool,
    table: Table,
}

impl Reader<'_, '_> {
    fn push(&mut self, text: &str, range: Range<usize>) {
        if self.skipping.is_some() || (self.range.is_none() && text.trim().is_empty()) {
            return;
        }
        let end = range.end;
        self.range.get_or_insert(range).end = end;
        self.text.push_str(text);
    }

    fn start(&mut self, name: &[u8], self_closing: bool) -> Result<(), ReadError> {
        if let Some((skipped, depth)) = &mut self.skipping {
            *depth += usize::from(skipped == name && !self_closing);
            return Ok(());
        }
        match name {
            b"script" | b"style" | b"template" | b"svg" | b"noscript" | b"nav" | b"select" | b"iframe"
                if !self_closing =>
            {
                self.flush_outside_rows()?;
                self.skipping = Some((name.to_vec(), 1));
            }
            b"title" => self.in_title = true,
            b"br" if self.preformatted > 0 => self.text.push('\n'),
            b"br" => self.text.push(' '),
            b"table" => {
                self.end_row()?;
                self.flush()?;
                self.table = Table::default();
            }
            b"tr" => {
                self.end_row()?;
                self.flush()?;
                self.row = Some(Vec::new());
                self.is_header_row = true;
            }
            b"td" | b"th" => {
                self.end_cell();
                self.is_header_row &= name == b"th";
            }
            b"pre" => {
                self.flush_outside_rows()?;
                self.preformatted += 1;
                self.kind = BlockKind::Code;
            }
            b"li" | b"dt" | b"dd" => {
                self.flush_outside_rows()?;
                self.kind = BlockKind::ListItem;
            }
            _ => {
                if let Some(level) = heading_level(name) {
                    self.flush_outside_rows()?;
                    self.kind = BlockKind::Heading(level);
                } else if is_block(name) {
                    self.open_block()?;
                }
            }
        }
        Ok(())
    }

    /// Starts a block. The first paragraph of a list item is the item.
    fn open_block(&mut self) -> Result<(), ReadError> {
        if self.range.is_none() && self.kind == BlockKind::ListItem {
            return Ok(());
        }
        self.flush_outside_rows()
    }

    fn end(&mut self, name: &[u8]) -> Result<(), ReadError> {
        if let Some((skipped, depth)) = &mut self.skipping {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipping = None;
                }
            }
            return Ok(());
        }
        match name {
            b"title" if self.in_title => {
                self.in_title = false;
                self.output.set_title(&self.text);
                self.text.clear();
                self.range = None;
                Ok(())
            }
            b"tr" | b"table" => self.end_row(),
            b"td" | b"th" => {
                self.end_cell();
                Ok(())
            }
            b"pre" => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.flush_outside_rows()
            }
            _ if heading_level(name).is_some() || is_block(name) || matches!(name, b"li" | b"dt" | b"dd") => {
                self.flush_outside_rows()
            }
            _ => Ok(()),
        }
    }

    /// Ends the open block; within a table the cell goes on.
    fn flush_outside_rows(&mut self) -> Result<(), ReadError> {
        if self.row.is_some() {
            self.text.push(' ');
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        let kind = std::mem::replace(&mut self.kind, BlockKind::Paragraph);
        let text = std::mem::take(&mut self.text);
        let Some(range) = self.range.take() else { return Ok(()) };
        let text = if kind == BlockKind::Code {
            text.trim_matches('\n').trim_end().to_owned()
        } else {
            squeeze(&text)
        };
        self.output.push(kind, text, range)
    }

    fn end_cell(&mut self) {
        if let Some(row) = &mut self.row {
            let text = squeeze(&self.text);
            // The white space before the first cell is no cell.
            if !(row.is_empty() && text.is_empty()) || self.range.is_some() {
                row.push(text);
            }
            self.text.clear();
        }
    }

    fn end_row(&mut self) -> Result<(), ReadError> {
        if !self.text.trim().is_empty() {
            self.end_cell();
        }
        let Some(row) = self.row.take() else { return Ok(()) };
        self.text.clear();
        let range = self.range.take();
        self.kind = BlockKind::Paragraph;
        if self.is_header_row && !self.table.has_header() && !row.is_empty() {
            self.table.set_header(row);
            return Ok(());
        }
        let text = self.table.row(&row);
        range.map_or(Ok(()), |range| self.output.push(BlockKind::TableRow, text, range))
    }
}

fn heading_level(name: &[u8]) -> Option<u8> {
    match name {
        [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

fn is_block(name: &[u8]) -> bool {
    matches!(
        name,
        b"p" | b"div"
            | b"section"
            | b"article"
            | b"main"
            | b"header"
            | b"footer"
            | b"aside"
            | b"blockquote"
            | b"ul"
            | b"ol"
            | b"dl"
            | b"form"
            | b"fieldset"
            | b"figure"
            | b"figcaption"
            | b"address"
            | b"details"
            | b"summary"
            | b"hr"
            | b"body"
            | b"html"
            | b"head"
            | b"caption"
            | b"thead"
            | b"tbody"
            | b"tfoot"
    )
}
