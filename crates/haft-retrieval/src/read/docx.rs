//! DOCX: paragraphs, headings by their style, list items and table rows.

use std::collections::HashMap;
use std::io::{Cursor, Read as _};

use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;
use zip::result::ZipError;

use super::output::{Output, squeeze};
use super::table::Table;
use super::{Format, ReadError};
use crate::BlockKind;

/// The maximum number of files in the archive.
const MAX_FILES: usize = 10_000;
/// The maximum nesting of XML elements.
const MAX_DEPTH: usize = 200;

const fn damaged(problem: &'static str) -> ReadError {
    ReadError::Damaged { format: Format::Docx, problem }
}

/// Reads a DOCX.
pub(super) fn read(bytes: &[u8], output: &mut Output<'_>) -> Result<(), ReadError> {
    let mut archive =
        ZipArchive::new(Cursor::new(bytes)).map_err(|_| damaged("the archive cannot be opened"))?;
    if archive.len() > MAX_FILES {
        return Err(damaged("the archive has too many files"));
    }
    let mut budget = output.limits.max_decompressed;
    let limit = budget;
    let document = part(&mut archive, "word/document.xml", &mut budget, limit)?
        .ok_or_else(|| ReadError::Unsupported("ZIP archive without `word/document.xml`".to_owned()))?;
    let styles = part(&mut archive, "word/styles.xml", &mut budget, limit)?.unwrap_or_default();
    let properties = part(&mut archive, "docProps/core.xml", &mut budget, limit)?.unwrap_or_default();
    output.set_title(&title(&properties));
    let headings = heading_styles(&styles)?;
    let body = Body {
        output,
        headings,
        text: String::new(),
        kind: BlockKind::Paragraph,
        in_text: false,
        skipping: None,
        depth: 0,
        tables: Vec::new(),
    };
    body.read(&document)
}

/// Returns a file of the archive as text, within what is left of the budget.
fn part(
    archive: &mut ZipArchive<Cursor<&[u8]>>,
    name: &str,
    budget: &mut usize,
    limit: usize,
) -> Result<Option<String>, ReadError> {
    let file = match archive.by_name(name) {
        Ok(file) => file,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => {
            return Err(ReadError::Encrypted { format: Format::Docx });
        }
        Err(_) => return Err(damaged("a file of the archive cannot be opened")),
    };
    let mut bytes = Vec::new();
    // One byte more than allowed shows that there is more; the size in the header may be a lie.
    let most = u64::try_from(*budget).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(|_| damaged("a file of the archive cannot be decompressed"))?;
    *budget = budget.checked_sub(bytes.len()).ok_or(ReadError::DecompressedTooLarge { limit })?;
    String::from_utf8(bytes).map(Some).map_err(|_| damaged("a file of the archive is not UTF-8"))
}

fn title(properties: &str) -> String {
    let mut reader = quick_xml::Reader::from_str(properties);
    let mut in_title = false;
    let mut title = String::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => in_title = tag.local_name().as_ref() == b"title",
            Ok(Event::Text(text)) if in_title => title.push_str(&text.decode().unwrap_or_default()),
            Ok(Event::GeneralRef(name)) if in_title => {
                title.push_str(&resolve(&name.decode().unwrap_or_default()));
            }
            Ok(Event::End(_)) if in_title => return title,
            Ok(Event::Eof) | Err(_) => return title,
            Ok(_) => {}
        }
    }
}

/// Returns the level of each style that is a heading. The name `heading 1` is the same in every language of Word.
fn heading_styles(styles: &str) -> Result<HashMap<String, u8>, ReadError> {
    let mut levels = HashMap::new();
    let mut style = String::new();
    let mut reader = quick_xml::Reader::from_str(styles);
    loop {
        match reader.read_event().map_err(|_| damaged("the styles are not valid XML"))? {
            Event::Start(tag) | Event::Empty(tag) => match tag.local_name().as_ref() {
                b"style" => style = attribute(&tag, b"styleId").unwrap_or_default(),
                b"name" => {
                    if let Some(level) = attribute(&tag, b"val").as_deref().and_then(heading_level) {
                        levels.insert(style.clone(), level);
                    }
                }
                b"outlineLvl" => {
                    let level = attribute(&tag, b"val").and_then(|value| value.parse::<u8>().ok());
                    if let Some(level) = level.filter(|level| *level < 6) {
                        levels.entry(style.clone()).or_insert(level + 1);
                    }
                }
                _ => {}
            },
            Event::Eof => return Ok(levels),
            _ => {}
        }
    }
}

fn heading_level(name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase().replace(' ', "");
    if name == "title" {
        return Some(1);
    }
    name.strip_prefix("heading")?.parse().ok().filter(|level| (1..=9).contains(level))
}

/// Returns an attribute by its local name.
fn attribute(tag: &BytesStart<'_>, name: &[u8]) -> Option<String> {
    let attribute =
        tag.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    Some(String::from_utf8_lossy(&attribute.value).into_owned())
}

/// Returns the text of a predefined or numeric entity; nothing else is expanded.
fn resolve(name: &str) -> String {
    let code = match name {
        "amp" => return "&".to_owned(),
        "lt" => return "<".to_owned(),
        "gt" => return ">".to_owned(),
        "quot" => return "\"".to_owned(),
        "apos" => return "'".to_owned(),
        other => match other.strip_prefix("#x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => other.strip_prefix('#').and_then(|decimal| decimal.parse().ok()),
        },
    };
    code.and_then(char::from_u32).map(String::from).unwrap_or_default()
}

/// One open table: the names of its columns, the cells of the open row, the text of the open cell.
#[derive(Default)]
struct OpenTable {
    table: Table,
    cells: Vec<String>,
    cell: String,
}

struct Body<'o, 'l> {
    output: &'o mut Output<'l>,
    headings: HashMap<String, u8>,
    text: String,
    kind: BlockKind,
    in_text: bool,
    /// The depth of the element that is being skipped.
    skipping: Option<usize>,
    depth: usize,
    tables: Vec<OpenTable>,
}

impl Body<'_, '_> {
    fn read(mut self, document: &str) -> Result<(), ReadError> {
        let mut reader = quick_xml::Reader::from_str(document);
        loop {
            match reader.read_event().map_err(|_| damaged("the document is not valid XML"))? {
                Event::Start(tag) => {
                    self.depth += 1;
                    if self.depth > MAX_DEPTH {
                        return Err(ReadError::TooDeep { format: Format::Docx, limit: MAX_DEPTH });
                    }
                    self.start(&tag);
                }
                Event::Empty(tag) => {
                    self.start(&tag);
                    self.end(tag.local_name().as_ref())?;
                }
                Event::End(tag) => {
                    self.end(tag.local_name().as_ref())?;
                    if self.skipping == Some(self.depth) {
                        self.skipping = None;
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                Event::Text(text) if self.is_visible() => {
                    self.text.push_str(&text.decode().map_err(|_| damaged("the document is not UTF-8"))?);
                }
                Event::CData(text) if self.is_visible() => {
                    self.text.push_str(&text.decode().map_err(|_| damaged("the document is not UTF-8"))?);
                }
                Event::GeneralRef(name) if self.is_visible() => {
                    self.text.push_str(&resolve(&name.decode().unwrap_or_default()));
                }
                Event::Eof if self.depth == 0 => return Ok(()),
                Event::Eof => return Err(damaged("the document ends too early")),
                _ => {}
            }
        }
    }

    fn is_visible(&self) -> bool {
        self.in_text && self.skipping.is_none()
    }

    fn start(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            // The same content for older versions of Word, a second time.
            b"Fallback" if self.skipping.is_none() => self.skipping = Some(self.depth),
            b"t" => self.in_text = true,
            b"tab" | b"br" | b"cr" if self.skipping.is_none() => self.text.push(' '),
            b"p" => self.kind = BlockKind::Paragraph,
            b"pStyle" => {
                let style = attribute(tag, b"val").unwrap_or_default();
                if let Some(level) = self.headings.get(&style).copied().or_else(|| heading_level(&style)) {
                    self.kind = BlockKind::Heading(level);
                }
            }
            b"numPr" if self.kind == BlockKind::Paragraph => self.kind = BlockKind::ListItem,
            b"tbl" => self.tables.push(OpenTable::default()),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) -> Result<(), ReadError> {
        match name {
            b"t" => self.in_text = false,
            b"p" => {
                let text = squeeze(&std::mem::take(&mut self.text));
                if let Some(open) = self.tables.last_mut() {
                    open.cell.push_str(&text);
                    open.cell.push(' ');
                } else {
                    self.output.append(self.kind, text, None)?;
                }
            }
            b"tc" => {
                if let Some(open) = self.tables.last_mut() {
                    let cell = squeeze(&std::mem::take(&mut open.cell));
                    open.cells.push(cell);
                }
            }
            b"tr" => self.end_row()?,
            b"tbl" => self.end_table()?,
            _ => {}
        }
        Ok(())
    }

    fn end_row(&mut self) -> Result<(), ReadError> {
        let is_nested = self.tables.len() > 1;
        let Some(open) = self.tables.last_mut() else { return Ok(()) };
        let cells = std::mem::take(&mut open.cells);
        if !open.table.has_header() && cells.len() > 1 && !is_nested {
            open.table.set_header(cells);
            return Ok(());
        }
        let row = open.table.row(&cells);
        // A nested table is part of the cell around it.
        if is_nested {
            let outer = self.tables.len() - 2;
            if let Some(outer) = self.tables.get_mut(outer) {
                outer.cell.push_str(&row);
                outer.cell.push(' ');
            }
            return Ok(());
        }
        self.output.append(BlockKind::TableRow, row, None)
    }

    fn end_table(&mut self) -> Result<(), ReadError> {
        let Some(open) = self.tables.pop() else { return Ok(()) };
        let has_rows = self.output.blocks.last().is_some_and(|block| block.kind == BlockKind::TableRow);
        if self.tables.is_empty() && open.table.has_header() && !has_rows {
            return self.output.append(BlockKind::TableRow, open.table.header_text(), None);
        }
        Ok(())
    }
}
