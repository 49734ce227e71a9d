//! Writes Markdown.

/// The nesting limit of lists, quotes and tables; deeper levels are flattened.
const MAX_DEPTH: usize = 12;

/// Markdown under construction. White space is collapsed, and line breaks are pending until text follows.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    /// Pending line breaks before the next word.
    breaks: usize,
    /// Whether a space is pending before the next word.
    space: bool,
    /// The pending marker of the next line, such as `- `.
    marker: Option<String>,
    lists: Vec<Option<u32>>,
    tables: Vec<Table>,
    quotes: usize,
    preformatted: usize,
}

/// An open table.
#[derive(Default)]
struct Table {
    /// Whether its first cell is a header. Other tables are often used for layout and are not written as tables.
    has_headers: bool,
    rows: usize,
    /// The number of cells in the current row.
    cells: usize,
    /// Whether a cell is open, whose content must stay on one line.
    in_cell: bool,
}

impl Writer {
    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }

    /// Returns the current length.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the text after an offset.
    pub(super) fn since(&self, start: usize) -> &str {
        self.text.get(start..).unwrap_or_default()
    }

    /// Removes the text after an offset.
    pub(super) fn truncate(&mut self, start: usize) {
        self.text.truncate(start);
    }

    /// Requests at least this number of line breaks before the next word.
    pub(super) fn line_breaks(&mut self, count: usize) {
        if self.is_in_cell() {
            self.space = true;
            return;
        }
        self.breaks = self.breaks.max(count);
        self.space = false;
    }

    /// Writes words and collapses white space.
    pub(super) fn words(&mut self, words: &str) {
        if self.preformatted > 0 {
            return self.push_preformatted(words);
        }
        for (index, word) in words.split(|c: char| c.is_whitespace()).enumerate() {
            self.space |= index > 0;
            if !word.is_empty() {
                self.flush_pending();
                if self.is_in_cell() {
                    self.text.push_str(&word.replace('|', "\\|"));
                } else {
                    self.text.push_str(word);
                }
            }
        }
    }

    /// Writes markup that precedes the next word, such as an opening bracket.
    pub(super) fn mark(&mut self, mark: &str) {
        self.flush_pending();
        self.text.push_str(mark);
    }

    /// Writes markup directly after the last word.
    pub(super) fn close(&mut self, mark: &str) {
        self.text.push_str(mark);
    }

    pub(super) fn heading(&mut self, level: usize) {
        self.line_breaks(2);
        self.marker = Some(format!("{} ", "#".repeat(level)));
    }

    /// Starts a list; an ordered list has the number of its first item.
    pub(super) fn open_list(&mut self, first: Option<u32>) {
        self.line_breaks(if self.lists.is_empty() { 2 } else { 1 });
        if self.lists.len() < MAX_DEPTH {
            self.lists.push(first);
        }
    }

    pub(super) fn close_list(&mut self) {
        self.lists.pop();
        self.line_breaks(if self.lists.is_empty() { 2 } else { 1 });
    }

    pub(super) fn item(&mut self) {
        self.line_breaks(1);
        self.marker = Some(match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None => "- ".to_owned(),
        });
    }

    pub(super) fn open_table(&mut self) {
        self.line_breaks(2);
        if self.tables.len() < MAX_DEPTH {
            self.tables.push(Table::default());
        }
    }

    pub(super) fn close_table(&mut self) {
        self.close_row();
        self.tables.pop();
        self.line_breaks(2);
    }

    pub(super) fn open_row(&mut self) {
        self.close_row();
        self.line_breaks(1);
    }

    pub(super) fn open_cell(&mut self, is_header: bool) {
        let is_nested = self.tables.iter().rev().skip(1).any(|outer| outer.in_cell);
        let Some(table) = self.tables.last_mut().filter(|_| !is_nested) else { return self.words(" | ") };
        table.has_headers |= is_header && table.rows == 0 && table.cells == 0;
        if !table.has_headers {
            return self.words(" | ");
        }
        table.in_cell = false;
        table.cells += 1;
        if table.cells == 1 {
            self.mark("|");
        } else {
            self.close(" |");
        }
        self.space = true;
        if let Some(table) = self.tables.last_mut() {
            table.in_cell = true;
        }
    }

    pub(super) fn close_cell(&mut self) {
        if let Some(table) = self.tables.last_mut() {
            table.in_cell = false;
        }
    }

    /// Ends the row; the first row is followed by the delimiter row of Markdown.
    pub(super) fn close_row(&mut self) {
        let Some(table) = self.tables.last_mut() else { return self.line_breaks(1) };
        table.in_cell = false;
        let cells = std::mem::take(&mut table.cells);
        let is_first = table.rows == 0;
        table.rows += usize::from(cells > 0);
        if cells > 0 {
            self.close(" |");
            self.line_breaks(1);
            if is_first {
                self.mark("|");
                self.close(&" --- |".repeat(cells));
            }
        }
        self.line_breaks(1);
    }

    fn is_in_cell(&self) -> bool {
        self.tables.iter().any(|table| table.in_cell)
    }

    pub(super) fn open_quote(&mut self) {
        self.line_breaks(2);
        self.quotes = (self.quotes + 1).min(MAX_DEPTH);
    }

    pub(super) fn close_quote(&mut self) {
        self.line_breaks(2);
        self.quotes = self.quotes.saturating_sub(1);
    }

    pub(super) fn open_preformatted(&mut self) {
        if self.is_in_cell() {
            return;
        }
        self.line_breaks(2);
        if self.preformatted == 0 {
            self.mark("```\n");
        }
        self.preformatted += 1;
    }

    pub(super) fn close_preformatted(&mut self) {
        if self.preformatted == 1 {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str("\n```");
        }
        self.preformatted = self.preformatted.saturating_sub(1);
        self.line_breaks(2);
    }

    pub(super) fn is_preformatted(&self) -> bool {
        self.preformatted > 0
    }

    fn push_preformatted(&mut self, text: &str) {
        self.breaks = 0;
        self.space = false;
        self.text.push_str(text);
    }

    /// Writes the pending line breaks with indentation and marker, or the pending space.
    fn flush_pending(&mut self) {
        let breaks = std::mem::take(&mut self.breaks);
        let space = std::mem::take(&mut self.space);
        let marker = self.marker.take();
        if self.text.is_empty() || breaks > 0 {
            if !self.text.is_empty() {
                self.text.extend(std::iter::repeat_n('\n', breaks));
            }
            self.text.extend(std::iter::repeat_n("> ", self.quotes));
            let depth =
                self.lists.len().saturating_sub(1) + usize::from(marker.is_none() && !self.lists.is_empty());
            self.text.extend(std::iter::repeat_n("  ", depth));
        } else if space {
            self.text.push(' ');
        }
        self.text.extend(marker);
    }
}
