//! Output: data on stdout, everything else on stderr.

use std::io::{IsTerminal as _, Write as _};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use haft_core::problem::excerpt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::environment::Environment;
use crate::error::CliError;
use crate::view;

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Tables and lines.
    Text,
    /// Tables with all columns, untruncated.
    Wide,
    /// Lists as one reference per line; everything else as text.
    Name,
    /// JSON.
    Json,
}

impl Form {
    /// The names in `--output`.
    pub(crate) const NAMES: [(&'static str, Self); 4] =
        [("text", Self::Text), ("wide", Self::Wide), ("name", Self::Name), ("json", Self::Json)];

    /// Parses a name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, form)| *form)
    }
}

/// The output of a command.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub(crate) struct Output {
    /// The format.
    pub(crate) form: Form,
    color: bool,
    /// Whether stdout has colors.
    marks: bool,
    /// Whether stdout is a terminal, which interprets control characters.
    terminal: bool,
    /// The width of the terminal, if known.
    width: Option<u16>,
    /// Whether stderr is a terminal, which can show progress.
    stderr_terminal: bool,
    /// Whether tables have a header.
    headers: bool,
    /// Whether notes and progress are suppressed.
    quiet: bool,
}

impl Output {
    /// Detects terminal and colors.
    pub(crate) fn new(form: Form, color_choice: Color, environment: &Environment) -> Self {
        let color = match color_choice {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stderr().is_terminal() && environment.get("NO_COLOR").is_none(),
        };
        let terminal = std::io::stdout().is_terminal();
        let marks = match color_choice {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && environment.get("NO_COLOR").is_none(),
        };
        let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
        let stderr_terminal = std::io::stderr().is_terminal();
        Self { form, color, marks, terminal, width, stderr_terminal, headers: true, quiet: false }
    }

    /// Omits the headers of tables.
    pub(crate) fn without_headers(mut self, without: bool) -> Self {
        self.headers = !without;
        self
    }

    /// Suppresses notes and progress.
    pub(crate) fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Returns whether progress is shown: only on a terminal.
    pub(crate) fn shows_progress(&self) -> bool {
        self.stderr_terminal && !self.quiet && self.form != Form::Json
    }

    /// Returns whether stderr has colors.
    pub(crate) fn has_color(&self) -> bool {
        self.color
    }

    /// Prints data as JSON, or with `text`.
    pub(crate) fn data(
        &self,
        data: &Value,
        text: impl FnOnce(&Self) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        match self.form {
            Form::Json => print_json(data),
            Form::Text | Form::Wide | Form::Name => text(self),
        }
    }

    /// Prints data as JSON, as the server sent it, or reads it as `T` and prints it with `text`.
    pub(crate) fn show<T: DeserializeOwned>(
        &self,
        data: &Value,
        text: impl FnOnce(&Self, T) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        match self.form {
            Form::Json => print_json(data),
            Form::Text | Form::Wide | Form::Name => text(self, view::read(data)?),
        }
    }

    /// Prints a line of data. On a terminal, control characters are replaced.
    pub(crate) fn line(&self, text: &str) -> Result<(), CliError> {
        let text = if self.terminal { without_control_characters(text) } else { text.to_owned() };
        print(&if text.ends_with('\n') { text } else { text + "\n" })
    }

    /// Prints a part of a line at once. On a terminal, control characters are replaced.
    pub(crate) fn part(&self, text: &str) -> Result<(), CliError> {
        if self.terminal { print(&without_control_characters(text)) } else { print(text) }
    }

    /// Prints a question to stderr and leaves the cursor behind it; bold if stderr has colors.
    pub(crate) fn ask(&self, question: &str) {
        let question = self.paint(&without_control_characters(question), "1");
        let mut error = std::io::stderr().lock();
        let _ = write!(error, "{question}").and_then(|()| error.flush());
    }

    /// Prints one line of data with ranges of it, in characters, in bold if stdout has colors.
    pub(crate) fn marked_line(
        &self,
        indent: &str,
        text: &str,
        ranges: &[(usize, usize)],
    ) -> Result<(), CliError> {
        let text = without_control_characters(text).replace(['\n', '\t'], " ");
        let ranges = if self.marks { ranges } else { &[] };
        print(&format!("{indent}{}\n", mark(&text, ranges)))
    }

    /// Prints a table.
    pub(crate) fn table(&self, header: &[&str], rows: Vec<Vec<String>>) -> Result<(), CliError> {
        print(&render(self.headers.then_some(header), rows, self.width, MAX_CELL))
    }

    /// Prints labels and texts in lines; those without a text are omitted.
    pub(crate) fn fields(&self, fields: &[(&str, String)]) -> Result<(), CliError> {
        let shown = || fields.iter().filter(|(_, text)| !text.is_empty());
        let width = shown().map(|(label, _)| label.len()).max().unwrap_or_default() + 2;
        shown().try_for_each(|(label, text)| self.line(&format!("{label:<width$}{text}")))
    }

    /// Prints a list. The first cell of a row is the reference that other commands accept; the cells of `wide` follow
    /// those of `header`, and are shown with `-o wide`.
    pub(crate) fn list(
        &self,
        header: &[&str],
        wide: &[&str],
        mut rows: Vec<Vec<String>>,
    ) -> Result<(), CliError> {
        match self.form {
            Form::Name => {
                let references = rows.iter().filter_map(|row| row.first());
                references.filter(|reference| !reference.is_empty()).try_for_each(|one| self.line(one))
            }
            Form::Wide => {
                let all = [header, wide].concat();
                print(&render(self.headers.then_some(all.as_slice()), rows, None, MAX_WIDE_CELL))
            }
            Form::Text | Form::Json => {
                for row in &mut rows {
                    row.truncate(header.len());
                }
                self.table(header, rows)
            }
        }
    }

    /// Returns the text of a list cell: the first line, truncated at `limit`, or the whole text with `-o wide`.
    pub(crate) fn brief(&self, text: &str, limit: usize) -> String {
        match self.form {
            Form::Wide => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Form::Text | Form::Name | Form::Json => view::first_line(text, limit),
        }
    }

    /// Prints a note to stderr, unless the output is JSON or `--quiet` is set.
    pub(crate) fn note(&self, text: &str) {
        if self.form != Form::Json && !self.quiet {
            print_stderr(&without_control_characters(text));
        }
    }

    /// Prints to stderr what a person has to do for the command to go on, whatever the format.
    pub(crate) fn instruct(&self, text: &str) {
        print_stderr(&self.paint(&without_control_characters(text), "1"));
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        print_stderr(&format!("{} {}", self.paint("warning:", "33"), without_control_characters(text)));
    }

    /// Prints an error.
    pub(crate) fn error(&self, error: &CliError) {
        match self.form {
            Form::Json => print_stderr(&error.json().to_string()),
            Form::Text | Form::Wide | Form::Name => {
                let text = error.text().replace("\nhint:", &format!("\n{}", self.paint("hint:", "36")));
                print_stderr(&format!("{} {text}", self.paint("error:", "31;1")));
            }
        }
    }

    fn paint(&self, text: &str, code: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Sets ranges of a text, in characters and in order, in bold.
fn mark(text: &str, ranges: &[(usize, usize)]) -> String {
    let mut marked = String::with_capacity(text.len() + 8 * ranges.len());
    for (at, c) in text.chars().enumerate() {
        if ranges.iter().any(|(start, _)| *start == at) {
            marked.push_str("\x1b[1m");
        }
        marked.push(c);
        if ranges.iter().any(|(_, end)| *end == at + 1) {
            marked.push_str("\x1b[0m");
        }
    }
    marked
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &Value) -> Result<(), CliError> {
    print(&format!("{value:#}\n"))
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::io("write to stdout"))
}

/// Prints a line to stderr; a closed stderr is ignored.
fn print_stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The maximum length of a cell, in characters.
const MAX_CELL: usize = 300;
/// The maximum length of a cell of a table without a width limit.
const MAX_WIDE_CELL: usize = 4000;

/// Renders a table with at most `limit` characters of each cell; without a width, columns are as wide as their text.
fn render(header: Option<&[&str]>, rows: Vec<Vec<String>>, width: Option<u16>, limit: usize) -> String {
    if header.is_none() && rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new();
    table.load_style(NOTHING);
    if let Some(header) = header {
        table.set_header(header.to_vec());
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| excerpt(cell, limit)).collect::<Vec<_>>());
    }
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

/// Replaces control characters except line breaks and tabs, and those that change the direction of text: a terminal
/// would show something else than what is there.
fn without_control_characters(text: &str) -> String {
    let is_shown = |c: char| match c {
        '\n' | '\t' => true,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    };
    text.chars().map(|c| if is_shown(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_contain_no_control_characters() {
        let rows = vec![
            vec!["weather".to_owned(), "1".to_owned()],
            vec!["e\x1b[31mvil\n".to_owned(), "22".to_owned()],
        ];
        insta::assert_snapshot!(render(Some(&["NAME", "CALLS"]), rows.clone(), None, 300), @r"
        NAME        CALLS
        weather     1
        e�[31mvil�  22
        ");
        assert_eq!(render(None, rows, None, 300), "weather     1\ne\u{fffd}[31mvil\u{fffd}  22\n");
        assert_eq!(render(None, Vec::new(), None, 300), "");
    }

    #[test]
    fn only_wide_lists_show_whole_texts() {
        let brief =
            |form| Output::new(form, Color::Never, &Environment::default()).brief("one two\nthree", 5);
        assert_eq!(brief(Form::Text), "one t…");
        assert_eq!(brief(Form::Wide), "one two three");
    }

    #[test]
    fn ranges_are_set_in_bold() {
        let bold = |text: &str, ranges: &[(usize, usize)]| mark(text, ranges).replace('\x1b', "^");
        assert_eq!(bold("über allem", &[(0, 4), (5, 10)]), "^[1müber^[0m ^[1mallem^[0m");
        assert_eq!(bold("plain", &[]), "plain");
    }

    #[test]
    fn lines_keep_line_breaks_and_tabs() {
        assert_eq!(without_control_characters("a\tb\n\x1b]0;title\x07"), "a\tb\n\u{fffd}]0;title\u{fffd}");
    }
}
