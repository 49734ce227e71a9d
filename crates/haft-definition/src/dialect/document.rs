//! From a text to a value, and from a path in that value back to its place in the text.

use serde_json::Value;

use super::load::Loaded;
use super::yaml::{MAX_DEPTH, Node, Place};
use super::{control, hints, json, load, spelling};
use haft_core::catalog::FileForm;
use haft_core::problem::Problem;

/// The most bytes that the text of a definition may have.
pub const MAX_TEXT: usize = 1024 * 1024;

/// A definition as it stands in a text.
#[derive(Debug)]
pub(super) struct Document<'t> {
    pub(super) value: Value,
    /// What follows the front matter of a `.skill`.
    pub(super) body: Option<String>,
    /// Doubts about the text itself.
    pub(super) warnings: Vec<Problem>,
    places: Places<'t>,
}

#[derive(Debug)]
enum Places<'t> {
    /// The JSON text: JSON is YAML too, and the YAML parser knows places. It is asked only once
    /// something is wrong.
    Json(&'t str),
    Yaml {
        tree: Node,
        /// How many lines precede the tree's first one.
        offset: u32,
        /// How far each line of the tree's text was moved to the right.
        shifts: Vec<i64>,
    },
}

impl<'t> Document<'t> {
    /// Reads a text.
    pub(super) fn parse(text: &'t str, form: FileForm) -> Result<Self, Problem> {
        if text.len() > MAX_TEXT {
            let message = format!(
                "the definition has {} bytes; at most {MAX_TEXT} are allowed. Keep large data in a file of its own",
                text.len()
            );
            return Err(Problem::new("", "too_large", message));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document = match form {
            FileForm::Json => Self {
                value: json::parse(text)?,
                body: None,
                warnings: Vec::new(),
                places: Places::Json(text),
            },
            FileForm::Yaml => Self::yaml(text, 0, None)?,
            FileForm::Skill => {
                let parts = split_front_matter(text)?;
                Self::yaml(&parts.front, parts.offset, Some(parts.body))?
            }
        };
        check_depth(&document.value)?;
        Ok(document)
    }

    fn yaml(text: &str, offset: u32, body: Option<String>) -> Result<Self, Problem> {
        let moved = |mut problem: Problem, shifts: &[i64]| {
            settle(&mut problem, offset, shifts);
            problem
        };
        let (loaded, shifts) = match load::parse(text) {
            Ok(loaded) => (loaded, Vec::new()),
            Err(first) => {
                let expanded = if control::may_have(text) {
                    control::expand(text).map_err(|problem| moved(problem, &[]))?
                } else {
                    None
                };
                let Some(expanded) = expanded else {
                    return Err(moved(hints::explain(first, text), &[]));
                };
                let loaded = load::parse(&expanded.text)
                    .map_err(|problem| moved(hints::explain(problem, text), &expanded.shifts))?;
                (loaded, expanded.shifts)
            }
        };
        let Loaded { root: tree, warnings } = loaded;
        let value = tree.to_value().map_err(|problem| moved(problem, &shifts))?;
        let warnings = warnings.into_iter().map(|problem| moved(problem, &shifts)).collect();
        Ok(Self { value, body, warnings, places: Places::Yaml { tree, offset, shifts } })
    }

    /// Adds to problems the place where their field stands.
    pub(super) fn place(&self, problems: &mut [Problem]) {
        match &self.places {
            _ if problems.is_empty() => {}
            Places::Json(text) => {
                if let Ok(loaded) = load::parse(text) {
                    locate(problems, &loaded.root, 0, &[]);
                }
            }
            Places::Yaml { tree, offset, shifts } => locate(problems, tree, *offset, shifts),
        }
    }
}

/// Adds to problems that were found in what a text defines the place where their field stands in that text, as far as
/// it can be told, and names the field as the text does.
pub fn place(text: &str, form: FileForm, problems: &mut [Problem]) {
    if let Ok(document) = Document::parse(text, form) {
        document.place(problems);
    }
}

fn locate(problems: &mut [Problem], tree: &Node, offset: u32, shifts: &[i64]) {
    for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
        let mut path = problem.field.replace('[', ".").replace(']', "");
        if let Some(written) = spelling::written(tree, &path) {
            problem.field.clone_from(&written);
            path = written;
        }
        if let Some(Place { line, column }) = tree.locate(&path) {
            problem.line = Some(line);
            problem.column = Some(column);
            settle(problem, offset, shifts);
        }
    }
}

/// Turns a place in the parsed text into the place in the file.
fn settle(problem: &mut Problem, offset: u32, shifts: &[i64]) {
    let Some(line) = problem.line else { return };
    let shift = usize::try_from(line).ok().and_then(|line| shifts.get(line.checked_sub(1)?)).copied();
    if let (Some(column), Some(shift)) = (problem.column, shift) {
        problem.column = u32::try_from((i64::from(column) - shift).max(1)).ok();
    }
    problem.line = Some(line.saturating_add(offset));
}

/// Refuses nesting that no definition needs and that a recursive reader could not bear.
pub(super) fn check_depth(value: &Value) -> Result<(), Problem> {
    fn fits(value: &Value, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return false };
        match value {
            Value::Array(items) => items.iter().all(|item| fits(item, left)),
            Value::Object(map) => map.values().all(|item| fits(item, left)),
            _ => true,
        }
    }
    if fits(value, MAX_DEPTH) {
        return Ok(());
    }
    let message = format!("the definition is nested more than {MAX_DEPTH} levels deep; make it flatter");
    Err(Problem::new("", "too_deep", message))
}

struct Parts {
    front: String,
    offset: u32,
    body: String,
}

/// Splits a `.skill` at its two lines `---`. Whatever follows the second one is the body, untouched.
fn split_front_matter(text: &str) -> Result<Parts, Problem> {
    let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
    let (lines, bytes) = blank.fold((0u32, 0), |(lines, bytes), line| (lines + 1, bytes + line.len()));
    let rest = text.get(bytes..).unwrap_or_default();
    let first = rest.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() != "---" {
        let message = "a `.skill` file starts with a line `---`, then keys such as `name` and `runtime`, \
                       then a second line `---`, then the script";
        return Err(Problem::new("", "front_matter", message).at(lines + 1, Some(1)));
    }
    let start = bytes + first.len();
    let mut end = start;
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        if line.trim_end() == "---" {
            let front = text.get(start..end).unwrap_or_default().to_owned();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return Ok(Parts { front, offset: lines + 1, body: body_text(body, first.ends_with("\r\n")) });
        }
        end += line.len();
    }
    let message = "the front matter is not closed; add a second line `---` before the script";
    Err(Problem::new("", "front_matter", message).at(lines + 1, Some(1)))
}

/// A file ends with a line break that is not part of the script.
fn body_text(body: &str, windows: bool) -> String {
    // An editor that wrote the delimiters with CR LF wrote the script so too, and no shell reads that.
    let body = if windows { body.replace("\r\n", "\n") } else { body.to_owned() };
    body.strip_suffix('\n').map_or_else(|| body.clone(), str::to_owned)
}
