//! Reads a definition in any dialect to the one [`ToolSpec`].

use serde_json::{Map, Value};

use super::detect::{Dialect, detect};
use super::document::{Document, check_depth};
use super::draft::Finished;
use super::fields::{Fields, Report, describe};
use super::{canonical, definition, registry, skill, tool_json};
use haft_core::catalog::FileForm;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::tool::Status;

/// What holds where the text says nothing.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The name that the file's name suggests.
    pub name: Option<String>,
    /// The version that the file's name suggests.
    pub version: Option<String>,
}

/// A definition that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedDefinition {
    /// What the tool is.
    pub spec: ToolSpec,
    /// The dialect it was written in.
    pub dialect: Dialect,
    /// The kind of file that a new tool of this dialect is written to.
    pub form: FileForm,
    /// Its switch, where the text has one.
    pub enabled: Option<bool>,
    /// The slug or id of its bundle, where the text names one.
    pub bundle: Option<String>,
    /// Its status, where the text names one.
    pub status: Option<Status>,
    /// Its scope, where the text names one.
    pub scope: Option<String>,
    /// Whether it is what the API answered, and repeats what only the store knows.
    pub answered: bool,
    /// Doubts, such as unknown keys.
    pub warnings: Vec<Problem>,
}

/// Returns the kind of a definition file by the extension of its name.
pub fn form_of_extension(extension: &str) -> Option<FileForm> {
    match extension.to_ascii_lowercase().as_str() {
        "skill" => Some(FileForm::Skill),
        "yaml" | "yml" => Some(FileForm::Yaml),
        "json" => Some(FileForm::Json),
        _ => None,
    }
}

/// Reads the text of a definition. Every fault found is reported, each with its place in the text.
///
/// ```
/// use haft_core::catalog::FileForm;
/// use haft_definition::dialect::{Defaults, read};
///
/// let text = "name: greet\ndescription: Greets someone\nparams: []\n\
///             implementation:\n  type: http\n  url: https://api.example.com/\n";
/// let reading = read(text, FileForm::Yaml, &Defaults::default()).unwrap();
/// assert_eq!(reading.spec.name.as_str(), "greet");
///
/// let problems = read("name: greet\nruntime: cobol\n", FileForm::Yaml, &Defaults::default()).unwrap_err();
/// assert!(problems[0].to_string().starts_with("line 2"), "{}", problems[0]);
/// ```
pub fn read(text: &str, form: FileForm, defaults: &Defaults) -> Result<ParsedDefinition, Vec<Problem>> {
    let mut document = Document::parse(text, form).map_err(|problem| vec![problem])?;
    let value = std::mem::take(&mut document.value);
    let body = document.body.take();
    match interpret(value, body, form, defaults) {
        Ok(mut reading) => {
            document.place(&mut reading.warnings);
            reading.warnings.append(&mut document.warnings);
            Ok(reading)
        }
        Err(mut problems) => {
            document.place(&mut problems);
            Err(problems)
        }
    }
}

/// Reads a definition that was parsed already, such as the body of a request.
pub fn read_value(value: Value, defaults: &Defaults) -> Result<ParsedDefinition, Vec<Problem>> {
    check_depth(&value).map_err(|problem| vec![problem])?;
    interpret(value, None, FileForm::Json, defaults)
}

fn interpret(
    value: Value,
    body: Option<String>,
    form: FileForm,
    defaults: &Defaults,
) -> Result<ParsedDefinition, Vec<Problem>> {
    let map = match value {
        Value::Object(map) => map,
        other => {
            let message = format!("expected a map of keys such as `name`, found {}", describe(&other));
            return Err(vec![Problem::new("", "wrong_type", message)]);
        }
    };
    let Some(dialect) = detect(&map, form) else {
        let message = "nothing says how the tool runs; add `implementation`, or `runtime` and `body`, \
                       or `implementation_type`, or `impl`";
        return Err(vec![Problem::new("implementation", "missing_field", message)]);
    };
    let report = Report::default();
    let nulls = nulls(&map, form);
    let fields = Fields::new("", map, &report);
    let finished = match dialect {
        Dialect::Canonical => canonical::read(fields, defaults),
        Dialect::ToolJson => tool_json::read(fields, defaults),
        Dialect::Skill => skill::read(fields, body, defaults),
        Dialect::Registry => registry::read(fields, defaults),
        Dialect::Definition => definition::read(fields, defaults),
    };
    let (mut errors, mut warnings) = report.into_parts();
    let is_other = |problem: &Problem| nulls.iter().all(|null| null.field != problem.field);
    errors.retain(is_other);
    warnings.retain(is_other);
    errors.splice(0..0, nulls);
    match finished {
        Some(finished) if errors.is_empty() => Ok(reading(finished, dialect, form, warnings)),
        // Whoever returns nothing has said why; the fallback keeps an error from being empty.
        _ if errors.is_empty() => Err(vec![Problem::new("", "invalid", "the definition is not complete")]),
        // A misspelt key often explains why another one is missing.
        _ => Err(errors.into_iter().chain(warnings).collect()),
    }
}

/// Finds texts that are `null`. In JSON somebody wrote that, and meant something else than leaving the key out; in YAML
/// it is a key with nothing behind it, which is told only where the tool would get another identity.
fn nulls(map: &Map<String, Value>, form: FileForm) -> Vec<Problem> {
    let identity = ["name", "slug", "version"];
    let texts = ["description", "category", "display_name", "displayName"];
    let texts = texts.iter().filter(|_| form == FileForm::Json);
    let is_null = |key: &&&str| map.get(**key).is_some_and(Value::is_null);
    identity
        .iter()
        .chain(texts)
        .filter(is_null)
        .map(|key| Problem::new(*key, "wrong_type", "is null; expected a text, or leave the key out"))
        .collect()
}

fn reading(finished: Finished, dialect: Dialect, form: FileForm, warnings: Vec<Problem>) -> ParsedDefinition {
    let form = match (form, dialect) {
        (FileForm::Json, Dialect::Skill) => FileForm::Skill,
        (FileForm::Json, Dialect::Definition) => FileForm::Yaml,
        (form, _) => form,
    };
    let Finished { spec, enabled, bundle, status, scope, answered } = finished;
    ParsedDefinition { spec, dialect, form, enabled, bundle, status, scope, answered, warnings }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
