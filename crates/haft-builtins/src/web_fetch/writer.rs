//! Writing Markdown, piece by piece.

/// How deep lists and quotes are indented.
const DEEPEST: usize = 12;

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
    lists: Vec<Option<usize>>,
    quotes: usize,
    verbatim: usize,
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
                self.text.push_str(word);
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

    pub(super) fn open_list(&mut self, counts: bool) {
        self.line_breaks(if self.lists.is_empty() { 2 } else { 1 });
        if self.lists.len() < DEEPEST {
            self.lists.push(counts.then_some(1));
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
                *number += 1;
                format!("{}. ", *number - 1)
            }
            Some(None) | None => "- ".to_owned(),
        });
    }

    pub(super) fn open_quote(&mut self) {
        self.line_breaks(2);
        self.quotes = (self.quotes + 1).min(DEEPEST);
    }

    pub(super) fn close_quote(&mut self) {
        self.line_breaks(2);
        self.quotes = self.quotes.saturating_sub(1);
    }

    pub(super) fn open_verbatim(&mut self) {
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
