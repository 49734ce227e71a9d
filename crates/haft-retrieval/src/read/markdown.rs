//! Markdown: headings, paragraphs, list items, table rows and code, with their place in the source.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::output::{Output, squeeze};
use super::table::Table;
use super::{Format, ReadError, html};
use crate::BlockKind;

/// The maximum number of container markers (`>`, `-`) at the start of a line. The parser's time grows with the square.
const MAX_MARKERS: usize = 100;

/// Reads Markdown.
pub(super) fn read(source: &str, output: &mut Output<'_>) -> Result<(), ReadError> {
    check_markers(source)?;
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut reader = Reader {
        output,
        text: String::new(),
        range: 0..0,
        kind: None,
        items: 0,
        cells: Vec::new(),
        table: Table::default(),
        skipping: false,
    };
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        reader.event(event, range)?;
    }
    reader.flush()
}

fn check_markers(source: &str) -> Result<(), ReadError> {
    let is_marker = |c: &char| matches!(c, '>' | '-' | '*' | '+' | ' ' | '\t');
    for line in source.lines() {
        // A line of one repeated mark is a rule or an underline, not a nesting.
        let markers = line.chars().take_while(is_marker).filter(|c| *c != ' ' && *c != '\t').count();
        let is_rule = line.chars().all(|c| is_marker(&c)) && !line.contains('>') && !line.contains("- -");
        if markers > MAX_MARKERS && !is_rule {
            return Err(ReadError::TooDeep { format: Format::Markdown, limit: MAX_MARKERS });
        }
    }
    Ok(())
}

struct Reader<'o, 'l> {
    output: &'o mut Output<'l>,
    text: String,
    range: Range<usize>,
    kind: Option<BlockKind>,
    /// The number of open list items.
    items: usize,
    cells: Vec<String>,
    table: Table,
    /// Whether the metadata block is being skipped.
    skipping: bool,
}

impl Reader<'_, '_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) -> Result<(), ReadError> {
        match event {
            Event::Start(tag) => self.start(&tag, range),
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&text, &range);
                Ok(())
            }
            Event::SoftBreak | Event::HardBreak => {
                self.push(" ", &range);
                Ok(())
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                let text = html::plain_text(&text);
                self.push(&text, &range);
                Ok(())
            }
            Event::FootnoteReference(_) | Event::Rule | Event::TaskListMarker(_) => Ok(()),
        }
    }

    fn push(&mut self, text: &str, range: &Range<usize>) {
        if self.skipping {
            return;
        }
        if self.text.is_empty() {
            self.range = range.clone();
        }
        self.range.end = self.range.end.max(range.end);
        self.text.push_str(text);
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) -> Result<(), ReadError> {
        match tag {
            Tag::Heading { level, .. } => self.open(BlockKind::Heading(level_number(*level)), range),
            Tag::Paragraph | Tag::HtmlBlock if self.items == 0 => self.open(BlockKind::Paragraph, range),
            // A loose item has paragraphs; they are parts of the item.
            Tag::Paragraph | Tag::HtmlBlock => self.open(BlockKind::ListItem, range),
            Tag::Item => {
                self.flush()?;
                self.items += 1;
                self.kind = Some(BlockKind::ListItem);
                Ok(())
            }
            Tag::CodeBlock(_) => self.open(BlockKind::Code, range),
            Tag::Table(_) => {
                self.flush()?;
                self.table = Table::default();
                Ok(())
            }
            Tag::TableHead | Tag::TableRow => {
                self.cells.clear();
                Ok(())
            }
            Tag::MetadataBlock(_) => {
                self.flush()?;
                self.skipping = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) -> Result<(), ReadError> {
        match tag {
            TagEnd::Heading(level) => {
                let title = squeeze(&self.text);
                if level == HeadingLevel::H1 {
                    self.output.set_title(&title);
                }
                self.range = range.clone();
                self.flush()
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::CodeBlock => self.flush(),
            TagEnd::Item => {
                self.flush()?;
                self.items = self.items.saturating_sub(1);
                Ok(())
            }
            TagEnd::TableCell => {
                self.cells.push(squeeze(&self.text));
                self.text.clear();
                Ok(())
            }
            TagEnd::TableHead => {
                self.table.set_header(std::mem::take(&mut self.cells));
                Ok(())
            }
            TagEnd::TableRow => {
                let text = self.table.row(&self.cells);
                self.output.push(BlockKind::TableRow, text, range.clone())
            }
            TagEnd::MetadataBlock(_) => {
                self.skipping = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, kind: BlockKind, range: Range<usize>) -> Result<(), ReadError> {
        self.flush()?;
        self.kind = Some(kind);
        self.range = range;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ReadError> {
        let default = if self.items == 0 { BlockKind::Paragraph } else { BlockKind::ListItem };
        let kind = self.kind.take().unwrap_or(default);
        let text = std::mem::take(&mut self.text);
        let text = if kind == BlockKind::Code { text.trim_end().to_owned() } else { squeeze(&text) };
        self.output.push(kind, text, self.range.clone())
    }
}

fn level_number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
