//! Parses a text to a value, and maps paths in that value back to positions in the text.

use serde_json::Value;

use super::fields::join;
use super::yaml::{self, Bounds, DEFINITION_BOUNDS, MAX_DEPTH, Node, ParsedYaml, SourcePosition};
use super::{author_path, control, hints, json};
use haft_core::catalog::FileForm;
use haft_core::problem::Problem;
use haft_core::schema::walk;

/// The maximum size of the text of a definition, in bytes.
pub const MAX_TEXT: usize = 1024 * 1024;

/// A parsed definition text.
#[derive(Debug)]
pub(super) struct Document<'t> {
    pub(super) value: Value,
    /// The text after the front matter of a `.skill`.
    pub(super) body: Option<String>,
    /// Warnings about the text itself.
    pub(super) warnings: Vec<Problem>,
    positions: Positions<'t>,
}

#[derive(Debug)]
enum Positions<'t> {
    /// The JSON text. JSON is also YAML, and the YAML parser knows positions; it runs only if there is a problem.
    Json(&'t str),
    Yaml {
        tree: Node,
        /// The number of lines before the first line of the tree.
        offset: u32,
        /// How far each line of the text was indented by expanding control lines.
        shifts: Vec<i64>,
    },
}

impl<'t> Document<'t> {
    /// Parses a text.
    pub(super) fn parse(text: &'t str, form: FileForm) -> Result<Self, Problem> {
        if text.len() > MAX_TEXT {
            let message = format!(
                "the definition has {} bytes; the limit is {MAX_TEXT}. Move large data to a separate file",
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
                positions: Positions::Json(text),
            },
            FileForm::Yaml => Self::yaml(text, 0, None, DEFINITION_BOUNDS)?,
            FileForm::Skill => {
                let parts = split_front_matter(text)?;
                Self::yaml(&parts.front, parts.offset, Some(parts.body), DEFINITION_BOUNDS)?
            }
        };
        check_depth(&document.value)?;
        Ok(document)
    }

    /// Returns the value without the rules of definitions.
    pub(super) fn into_plain_value(self) -> Value {
        match self.positions {
            Positions::Json(_) => self.value,
            Positions::Yaml { tree, .. } => tree.into_foreign_value(),
        }
    }

    /// Parses a YAML text with other bounds than those of a definition.
    pub(super) fn yaml(
        text: &str,
        offset: u32,
        body: Option<String>,
        bounds: Bounds,
    ) -> Result<Self, Problem> {
        let in_file = |mut problem: Problem, shifts: &[i64]| {
            to_file_position(&mut problem, offset, shifts);
            problem
        };
        let (loaded, shifts) = match yaml::parse_within(text, bounds) {
            Ok(loaded) => (loaded, Vec::new()),
            Err(first) => {
                let expanded = if control::may_have(text) {
                    control::expand(text).map_err(|problem| in_file(problem, &[]))?
                } else {
                    None
                };
                let Some(expanded) = expanded else {
                    return Err(in_file(hints::explain(first, text), &[]));
                };
                let loaded = yaml::parse_within(&expanded.text, bounds)
                    .map_err(|problem| in_file(hints::explain(problem, &expanded.text), &expanded.shifts))?;
                (loaded, expanded.shifts)
            }
        };
        let ParsedYaml { root: tree, warnings } = loaded;
        let value = tree.to_value().map_err(|problem| in_file(problem, &shifts))?;
        let warnings = warnings.into_iter().map(|problem| in_file(problem, &shifts)).collect();
        Ok(Self { value, body, warnings, positions: Positions::Yaml { tree, offset, shifts } })
    }

    /// Sets the source positions of problems of the definition at a path such as `tools[2]`, whose fields are relative to
    /// that path.
    pub(super) fn locate_part(&self, path: &str, problems: &mut [Problem]) {
        let Positions::Yaml { tree, offset, shifts } = &self.positions else { return };
        let part = tree.descendant(&dotted(path));
        for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
            let Some(part) = part else { continue };
            let mut field = dotted(&problem.field);
            if let Some(author_path) = author_path::author_path(part, &field) {
                problem.field.clone_from(&author_path);
                field = dotted(&author_path);
            }
            let SourcePosition { line, column } = part.locate(&field).unwrap_or(part.position);
            (problem.line, problem.column) = (Some(line), Some(column));
            to_file_position(problem, *offset, shifts);
        }
        for problem in problems {
            let is_whole = problem.field.is_empty();
            problem.field = if is_whole { path.to_owned() } else { join(path, &problem.field) };
        }
    }

    /// Sets the source positions of problems that name fields of the document, not of a definition.
    pub(super) fn locate_plain(&self, problems: &mut [Problem]) {
        let Positions::Yaml { tree, offset, shifts } = &self.positions else { return };
        for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
            if let Some(SourcePosition { line, column }) = tree.locate(&dotted(&problem.field)) {
                (problem.line, problem.column) = (Some(line), Some(column));
                to_file_position(problem, *offset, shifts);
            }
        }
    }

    /// Sets the source positions of problems.
    pub(super) fn locate(&self, problems: &mut [Problem]) {
        match &self.positions {
            _ if problems.is_empty() => {}
            Positions::Json(text) => {
                if let Ok(parsed) = yaml::parse(text) {
                    locate_fields(problems, &parsed.root, 0, &[]);
                }
            }
            Positions::Yaml { tree, offset, shifts } => locate_fields(problems, tree, *offset, shifts),
        }
    }
}

/// Sets the source positions of problems of the definition in a text, if known, and replaces canonical field names by
/// those that the author used.
pub fn locate(text: &str, form: FileForm, problems: &mut [Problem]) {
    if let Ok(document) = Document::parse(text, form) {
        document.locate(problems);
    }
}

fn locate_fields(problems: &mut [Problem], tree: &Node, offset: u32, shifts: &[i64]) {
    for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
        let mut path = dotted(&problem.field);
        if let Some(author_path) = author_path::author_path(tree, &path) {
            problem.field.clone_from(&author_path);
            path = dotted(&author_path);
        }
        if let Some(SourcePosition { line, column }) = tree.locate(&path) {
            problem.line = Some(line);
            problem.column = Some(column);
            to_file_position(problem, offset, shifts);
        }
    }
}

/// Returns a path with indices as segments: `params.0.type` for `params[0].type`.
fn dotted(field: &str) -> String {
    field.replace('[', ".").replace(']', "")
}

/// Converts the position in the parsed text to the position in the file.
fn to_file_position(problem: &mut Problem, offset: u32, shifts: &[i64]) {
    let Some(line) = problem.line else { return };
    let shift = usize::try_from(line).ok().and_then(|line| shifts.get(line.checked_sub(1)?)).copied();
    if let (Some(column), Some(shift)) = (problem.column, shift) {
        problem.column = u32::try_from((i64::from(column) - shift).max(1)).ok();
    }
    problem.line = Some(line.saturating_add(offset));
}

/// Rejects deep nesting, which no definition needs and which could overflow the stack of recursive readers.
pub(super) fn check_depth(value: &Value) -> Result<(), Problem> {
    if walk::measure(value).1 as usize <= MAX_DEPTH {
        return Ok(());
    }
    let message = format!("the nesting of the definition exceeds the limit of {MAX_DEPTH} levels");
    Err(Problem::new("", "too_deep", message))
}

/// The parts of a text with front matter.
pub(super) struct Parts {
    pub(super) front: String,
    /// The number of lines before the front matter.
    pub(super) offset: u32,
    pub(super) body: String,
}

/// Splits a `.skill` at its two lines `---`. The text after the second one is the body.
pub(super) fn split_front_matter(text: &str) -> Result<Parts, Problem> {
    let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
    let (lines, bytes) = blank.fold((0u32, 0), |(lines, bytes), line| (lines + 1, bytes + line.len()));
    let rest = text.get(bytes..).unwrap_or_default();
    let first = rest.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() != "---" {
        let message = "missing front matter: a `.skill` file starts with a line `---`, then keys such as `name` and `runtime`, \
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
    let message = "unclosed front matter; add a second line `---` before the script";
    Err(Problem::new("", "front_matter", message).at(lines + 1, Some(1)))
}

/// Removes the final line break, which is not part of the script.
fn body_text(body: &str, windows: bool) -> String {
    // If the delimiters end with CR LF, the script does too, and shells do not accept that.
    let body = if windows { body.replace("\r\n", "\n") } else { body.to_owned() };
    body.strip_suffix('\n').map_or_else(|| body.clone(), str::to_owned)
}

/// Sets the source positions of problems of a foreign document.
pub(crate) fn locate_foreign(text: &str, problems: &mut [Problem]) {
    let Ok(parsed) = yaml::parse(text) else { return };
    for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
        if let Some(SourcePosition { line, column }) = parsed.root.locate(&dotted(&problem.field)) {
            (problem.line, problem.column) = (Some(line), Some(column));
        }
    }
}

/// Parses a foreign document such as an API description: JSON if it starts like JSON, YAML otherwise. Duplicate keys
/// and deep nesting are rejected.
pub fn read_foreign(text: &str, bounds: Bounds) -> Result<Value, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) {
        return json::parse(text);
    }
    yaml::parse_within(text, bounds).map(|parsed| parsed.root.into_foreign_value())
}
