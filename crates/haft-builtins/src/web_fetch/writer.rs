//! Writing Markdown, piece by piece.

/// How deep lists and quotes are indented, and tables are followed.
const MAX_DEPTH: usize = 12;

/// A text that grows. White space is collapsed, and line breaks are kept back until something follows.
#[derive(Default)]
pub(super) struct Writer {
    text: String,
    /// Line breaks that are due before the next word.
    breaks: usize,
    /// Whether a space is due before the next word.
    space: bool,
    /// What the next line begins with, once.
    mark: Option<String>,
    lists: Vec<Option<u32>>,
    tables: Vec<Table>,
    quotes: usize,
    verbatim: usize,
}

/// A table that is open.
#[derive(Default)]
struct Table {
    /// Whether it began with headings: then it is written as a table. Others are often there for their looks alone.
    has_headings: bool,
    rows: usize,
    /// How many cells the row has so far.
    cells: usize,
    /// Whether one of them is open, which has to stay on one line.
    in_cell: bool,
}

impl Writer {
    pub(super) fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }

    /// Where the text is now.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// What was written since a point.
    pub(super) fn since(&self, start: usize) -> &str {
        self.text.get(start..).unwrap_or_default()
    }

    /// Takes back what was written since a point.
    pub(super) fn cut(&mut self, start: usize) {
        self.text.truncate(start);
    }

    /// At least so many line breaks before what comes next.
    pub(super) fn line_breaks(&mut self, count: usize) {
        if self.is_in_cell() {
            self.space = true;
            return;
        }
        self.breaks = self.breaks.max(count);
        self.space = false;
    }

    /// Writes words; white space between them counts as one space.
    pub(super) fn words(&mut self, words: &str) {
        if self.verbatim > 0 {
            return self.exactly(words);
        }
        for (index, word) in words.split(|c: char| c.is_whitespace()).enumerate() {
            self.space |= index > 0;
            if !word.is_empty() {
                self.due();
                if self.is_in_cell() {
                    self.text.push_str(&word.replace('|', "\\|"));
                } else {
                    self.text.push_str(word);
                }
            }
        }
    }

    /// Writes a mark, such as a bracket, where the next word stands.
    pub(super) fn mark(&mut self, mark: &str) {
        self.due();
        self.text.push_str(mark);
    }

    /// Writes a mark right behind the last word.
    pub(super) fn close(&mut self, mark: &str) {
        self.text.push_str(mark);
    }

    pub(super) fn heading(&mut self, level: usize) {
        self.line_breaks(2);
        self.mark = Some(format!("{} ", "#".repeat(level)));
    }

    /// Begins a list, whose items count from a number where it has one.
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
        self.mark = Some(match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
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

    pub(super) fn open_cell(&mut self, heads: bool) {
        let is_within = self.tables.iter().rev().skip(1).any(|outer| outer.in_cell);
        let Some(table) = self.tables.last_mut().filter(|_| !is_within) else { return self.words(" | ") };
        table.has_headings |= heads && table.rows == 0 && table.cells == 0;
        if !table.has_headings {
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

    /// Ends the row; the first one is followed by the line that makes it the headings.
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

    pub(super) fn open_verbatim(&mut self) {
        if self.is_in_cell() {
            return;
        }
        self.line_breaks(2);
        if self.verbatim == 0 {
            self.mark("```\n");
        }
        self.verbatim += 1;
    }

    pub(super) fn close_verbatim(&mut self) {
        if self.verbatim == 1 {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str("\n```");
        }
        self.verbatim = self.verbatim.saturating_sub(1);
        self.line_breaks(2);
    }

    pub(super) fn is_verbatim(&self) -> bool {
        self.verbatim > 0
    }

    fn exactly(&mut self, words: &str) {
        self.breaks = 0;
        self.space = false;
        self.text.push_str(words);
    }

    /// Writes the line breaks, the indentation and the mark, or the space, that are due.
    fn due(&mut self) {
        let breaks = std::mem::take(&mut self.breaks);
        let space = std::mem::take(&mut self.space);
        let mark = self.mark.take();
        if self.text.is_empty() || breaks > 0 {
            if !self.text.is_empty() {
                self.text.extend(std::iter::repeat_n('\n', breaks));
            }
            self.text.extend(std::iter::repeat_n("> ", self.quotes));
            let depth =
                self.lists.len().saturating_sub(1) + usize::from(mark.is_none() && !self.lists.is_empty());
            self.text.extend(std::iter::repeat_n("  ", depth));
        } else if space {
            self.text.push(' ');
        }
        self.text.extend(mark);
    }
}
