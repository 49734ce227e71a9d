//! Control lines in YAML: `{{if x}}`, `{{else}}` and `{{end}}`, each alone on a line.
//!
//! They are not YAML. Each block becomes an entry whose key is the control line and whose value is the content:
//!
//! ```yaml
//! body:
//!   query: "{{query}}"
//!   "{{if advanced_mode}}":
//!     options:
//!       detailed: true
//! ```
//!
//! In a list the entry is an item of its own, `- "{{if x}}": [...]`, with the `{{else}}` in the same item. An empty
//! branch is `{}` or `[]`. If a map has the same condition twice, a number is added inside the braces, `{{if x #2}}` and
//! `{{else #2}}`; an `{{else}}` belongs to the `{{if}}` before it. The number of lines never changes, so that source
//! positions stay correct.

use haft_core::problem::Problem;

/// The maximum nesting of `{{if}}`, which also limits how often a line is visited.
const MAX_DEPTH: usize = 32;

/// The text with control lines converted to entries, and how far each line was indented.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) text: String,
    pub(super) shifts: Vec<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Control {
    If(String),
    Else,
    End,
}

/// An open `{{if}}`.
struct Frame {
    line: usize,
    /// The column of its key in the new text.
    indent: i64,
    list: bool,
    seen_else: bool,
    shift: i64,
}

/// Returns whether any line may be a control line.
pub(super) fn may_have(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("{{"))
}

/// Converts control lines to entries; `None` if there are none outside block scalars.
pub(super) fn expand(text: &str) -> Result<Option<Expanded>, Problem> {
    let lines: Vec<&str> = text.lines().collect();
    let controls = find(&lines)?;
    if controls.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut out = Expanded { text: String::with_capacity(text.len() + 256), shifts: Vec::new() };
    let mut frames: Vec<Frame> = Vec::new();
    let mut keys = Keys::default();
    for (index, line) in lines.iter().enumerate() {
        let shift = frames.last().map_or(0, |frame| frame.shift);
        match controls.get(index).and_then(Option::as_ref) {
            None => out.line(line, shift),
            Some(Control::If(_)) if frames.len() == MAX_DEPTH => {
                return Err(control_error(
                    index,
                    &format!("the nesting of `{{{{if}}}}` exceeds the limit of {MAX_DEPTH}"),
                ));
            }
            Some(Control::If(condition)) => {
                let frame = open(&lines, &controls, index, shift);
                let key = keys.unique("if", condition, &frame, &frames);
                out.key(&frame, &key, is_empty_branch(&lines, &controls, index));
                frames.push(frame);
            }
            Some(Control::Else) => {
                let Some(mut frame) = frames.pop().filter(|frame| !frame.seen_else) else {
                    return Err(control_error(index, "`{{else}}` without `{{if …}}`"));
                };
                frame.seen_else = true;
                frame.shift = shift_of_branch(&lines, &controls, index, &frame);
                let key = keys.unique("else", "", &frame, &frames);
                out.key(&frame, &key, is_empty_branch(&lines, &controls, index));
                frames.push(frame);
            }
            Some(Control::End) => {
                if frames.pop().is_none() {
                    return Err(control_error(index, "`{{end}}` without `{{if …}}`"));
                }
                out.line("", 0);
            }
        }
    }
    match frames.last() {
        Some(frame) => Err(control_error(frame.line, "unclosed `{{if …}}`; add a line `{{end}}`")),
        None => Ok(Some(out)),
    }
}

impl Expanded {
    fn line(&mut self, line: &str, shift: i64) {
        let shift = if line.trim().is_empty() { 0 } else { shift.max(-indent_of(line)) };
        if let Ok(more) = usize::try_from(shift) {
            self.text.extend(std::iter::repeat_n(' ', more));
            self.text.push_str(line);
        } else {
            let fewer = usize::try_from(-shift).unwrap_or(0);
            self.text.push_str(line.get(fewer..).unwrap_or(line));
        }
        self.text.push('\n');
        self.shifts.push(shift);
    }

    fn key(&mut self, frame: &Frame, key: &str, empty: bool) {
        let lead = match (frame.list, frame.seen_else) {
            (false, _) => "",
            (true, false) => "- ",
            (true, true) => "  ",
        };
        let value = match (empty, frame.list) {
            (false, _) => "",
            (true, false) => " {}",
            (true, true) => " []",
        };
        let indent = usize::try_from(frame.indent).unwrap_or(0);
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.text.extend([lead, "'", &key.replace('\'', "''"), "':", value, "\n"]);
        self.shifts.push(0);
    }
}

/// The keys used so far, by the enclosing control line and the column, because a map cannot have a key twice.
#[derive(Default)]
struct Keys(std::collections::HashMap<(Option<usize>, bool, i64, String), u32>);

impl Keys {
    fn unique(&mut self, word: &str, condition: &str, frame: &Frame, outer: &[Frame]) -> String {
        let bare = if condition.is_empty() { word.to_owned() } else { format!("{word} {condition}") };
        if frame.list {
            // In a list every block is an item of its own.
            return format!("{{{{{bare}}}}}");
        }
        let scope = outer.last();
        let key = (scope.map(|f| f.line), scope.is_some_and(|f| f.seen_else), frame.indent, bare.clone());
        let count = self.0.entry(key).or_insert(0);
        *count += 1;
        if *count == 1 { format!("{{{{{bare}}}}}") } else { format!("{{{{{bare} #{count}}}}}") }
    }
}

fn open(lines: &[&str], controls: &[Option<Control>], index: usize, outer: i64) -> Frame {
    let content = first_content(lines, controls, index);
    let own = lines.get(index).map_or(0, |line| indent_of(line));
    let list = content.is_some_and(is_item);
    let indent = (content.map_or(own, indent_of) + outer).max(0);
    let mut frame = Frame { line: index, indent, list, seen_else: false, shift: 0 };
    frame.shift = shift_of_branch(lines, controls, index, &frame);
    frame
}

/// Returns how far to indent the lines of a branch so that they are below their key.
fn shift_of_branch(lines: &[&str], controls: &[Option<Control>], index: usize, frame: &Frame) -> i64 {
    let below = frame.indent + if frame.list { 4 } else { 2 };
    let from = first_content(lines, controls, index).or_else(|| lines.get(index).copied());
    below - from.map_or(0, indent_of)
}

/// Returns whether a branch is empty.
fn is_empty_branch(lines: &[&str], controls: &[Option<Control>], index: usize) -> bool {
    let mut after = lines.iter().zip(controls).skip(index + 1);
    let next = after.find(|(line, _)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    matches!(next, Some((_, Some(Control::Else | Control::End))))
}

/// Returns the first line of a branch that is neither blank nor a comment.
fn first_content<'a>(lines: &[&'a str], controls: &[Option<Control>], index: usize) -> Option<&'a str> {
    let mut depth = 0usize;
    for (line, control) in lines.iter().zip(controls).skip(index + 1) {
        match control {
            Some(Control::If(_)) => depth += 1,
            Some(Control::End) if depth > 0 => depth -= 1,
            Some(Control::Else) if depth > 0 => {}
            Some(Control::End | Control::Else) => return None,
            None if line.trim().is_empty() || line.trim_start().starts_with('#') => {}
            None => return Some(line),
        }
    }
    None
}

fn is_item(line: &str) -> bool {
    let line = line.trim();
    line == "-" || line.starts_with("- ")
}

fn indent_of(line: &str) -> i64 {
    i64::try_from(line.len() - line.trim_start_matches(' ').len()).unwrap_or(i64::MAX)
}

/// Finds the control lines; lines inside block scalars are text.
fn find(lines: &[&str]) -> Result<Vec<Option<Control>>, Problem> {
    let inside = block_scalars(lines);
    let numbered = lines.iter().enumerate().zip(inside);
    numbered.map(|((index, line), inside)| if inside { Ok(None) } else { control(line, index) }).collect()
}

/// Returns for each line whether it is inside a block scalar.
fn block_scalars(lines: &[&str]) -> Vec<bool> {
    let mut parent: Option<i64> = None;
    let mut inside = Vec::with_capacity(lines.len());
    for line in lines {
        let within = parent.is_some_and(|parent| line.trim().is_empty() || indent_of(line) > parent);
        if !within {
            parent = opens_block_scalar(line).then(|| indent_of(line));
        }
        inside.push(within);
    }
    inside
}

/// Returns whether a line ends with `|` or `>` and their modifiers after a key or a dash.
fn opens_block_scalar(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or(line).trim_end();
    let head = line.trim_end_matches(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
    let Some(before) = head.strip_suffix(['|', '>']) else { return false };
    before.trim_end().ends_with([':', '-']) && before.ends_with(' ') && line.len() - head.len() <= 2
}

fn control(line: &str, index: usize) -> Result<Option<Control>, Problem> {
    let Some(inner) = line.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) else {
        return Ok(None);
    };
    if inner.contains("{{") || inner.contains("}}") {
        return Ok(None);
    }
    let inner = inner.strip_prefix("- ").unwrap_or(inner);
    let inner = inner.strip_suffix(" -").unwrap_or(inner).trim();
    let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    let rest = rest.trim();
    match (word, rest) {
        ("if", "") => Err(control_error(index, "`{{if}}` needs a condition, such as `{{if name}}`")),
        ("if", condition) if condition.starts_with('.') => Err(control_error(
            index,
            &format!("write `{{{{if {}}}}}` without the dot", condition.trim_start_matches('.')),
        )),
        ("if", condition) => Ok(Some(Control::If(condition.to_owned()))),
        ("else", "") => Ok(Some(Control::Else)),
        ("else", _) => Err(control_error(
            index,
            "`{{else …}}` has no condition; use `{{else}}` and a line `{{if …}}` after it",
        )),
        ("end", "") => Ok(Some(Control::End)),
        ("range" | "with" | "define" | "template" | "block", _) => Err(control_error(
            index,
            &format!(
                "`{{{{{word} …}}}}` is not supported; use `{{{{if}}}}`, `{{{{else}}}}` and `{{{{end}}}}`"
            ),
        )),
        _ => Ok(None),
    }
}

fn control_error(index: usize, message: &str) -> Problem {
    Problem::new("", "control_line", message).at(u32::try_from(index + 1).unwrap_or(u32::MAX), None)
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
