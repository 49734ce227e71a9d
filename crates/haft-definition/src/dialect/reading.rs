//! Reads definitions in any dialect.

use serde_json::{Map, Value};

use super::document::{Document, check_depth};
use super::draft::Finished;
use super::fields::{Fields, Report, describe};
use super::{canonical, definition, registry, skill, tool_json};
use haft_core::catalog::FileForm;
use haft_core::implementation::Notation;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::tool::Status;

/// Defaults for what the text does not define.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The tool name derived from the file name.
    pub name: Option<String>,
    /// The version derived from the file name.
    pub version: Option<String>,
}

/// A parsed definition.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedDefinition {
    /// The definition of the tool.
    pub spec: ToolSpec,
    /// The dialect of the text.
    pub dialect: Dialect,
    /// The file format for a new tool of this dialect.
    pub form: FileForm,
    /// Whether the tool is enabled, if the text says so.
    pub enabled: Option<bool>,
    /// The slug or id of the bundle, if given.
    pub bundle: Option<String>,
    /// The status, if given.
    pub status: Option<Status>,
    /// The scope, if given.
    pub scope: Option<String>,
    /// Whether the text is a response of the API, with fields that are derived or belong to the store.
    pub from_api: bool,
    /// Warnings, such as unknown fields.
    pub warnings: Vec<Problem>,
}

/// The dialects of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The canonical form, which the API returns, in `snake_case`.
    Canonical,
    /// `tool.json`: camelCase, `type`, `argSchema`, `impl`.
    ToolJson,
    /// `.skill`: `runtime`, `parameters`, and a body.
    Skill,
    /// The registry form: `implementation_type`, `implementation_config`.
    Registry,
    /// The YAML definition: a `params` list and `implementation`.
    Definition,
}

/// Returns the format of a definition file by its extension.
pub fn form_of_extension(extension: &str) -> Option<FileForm> {
    match extension.to_ascii_lowercase().as_str() {
        "skill" => Some(FileForm::Skill),
        "yaml" | "yml" => Some(FileForm::Yaml),
        "json" => Some(FileForm::Json),
        _ => None,
    }
}

/// Parses the text of a definition. All errors are returned, with their positions in the text.
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
            document.locate(&mut reading.warnings);
            reading.warnings.append(&mut document.warnings);
            Ok(reading)
        }
        Err(mut problems) => {
            document.locate(&mut problems);
            Err(problems)
        }
    }
}

/// Converts a definition that is already parsed, such as the body of a request.
pub fn read_value(value: Value, defaults: &Defaults) -> Result<ParsedDefinition, Vec<Problem>> {
    check_depth(&value).map_err(|problem| vec![problem])?;
    interpret(value, None, FileForm::Json, defaults)
}

/// Converts a part of a larger document, such as an entry of a toolset, as if it were a file of the given form. The form
/// decides the default notation of templates.
pub fn read_part(
    value: Value,
    form: FileForm,
    defaults: &Defaults,
) -> Result<ParsedDefinition, Vec<Problem>> {
    check_depth(&value).map_err(|problem| vec![problem])?;
    interpret(value, None, form, defaults)
}

pub(super) fn interpret(
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
        let message = "missing implementation: add `implementation` with a `type` such as `http`, `exec` or `script`, \
                       or `runtime` and `body` for a script";
        return Err(vec![Problem::new("implementation", "missing_field", message)]);
    };
    let report = Report::default();
    let nulls = nulls(&map, form);
    let fields = Fields::new("", map, &report);
    let finished = match dialect {
        Dialect::Canonical => canonical::read(fields, Notation::Dollar, defaults),
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
        // Readers report an error if they return nothing; this fallback keeps the list from being empty.
        _ if errors.is_empty() => Err(vec![Problem::new("", "invalid", "the definition is incomplete")]),
        // A misspelled field often explains why another one is missing.
        _ => Err(errors.into_iter().chain(warnings).collect()),
    }
}

/// Detects the dialect by its keys; `None` if there is no implementation.
///
/// The dialect decides how templates are written and where the implementation is; every field is accepted under the
/// spellings of all dialects. The first matching rule wins.
///
/// 1. A `.skill` file is a skill.
/// 2. `implementation` with `params`, or in YAML, is a YAML definition; otherwise, or beside `tool_type` or
///    `implementation_type`, it is the canonical form, as the API returns it.
/// 3. `impl` is a `tool.json`.
/// 4. `implementation_type`, `implementation_config`, `config_schema`, `artifact_id` or `builtin_key` is the registry
///    form.
/// 5. `runtime` or `body` is a skill.
/// 6. Without an implementation, `params` and `argSchema` tell which one is missing.
pub fn detect(map: &Map<String, Value>, form: FileForm) -> Option<Dialect> {
    let has = |key: &str| map.get(key).is_some_and(|value| !value.is_null());
    let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
    if form == FileForm::Skill {
        return Some(Dialect::Skill);
    }
    if has("implementation") {
        let from_api = has_any(&["tool_type", "implementation_type"]);
        let definition = has("params") || (form == FileForm::Yaml && !from_api);
        return Some(if definition { Dialect::Definition } else { Dialect::Canonical });
    }
    if has("impl") {
        return Some(Dialect::ToolJson);
    }
    let registry =
        ["implementation_type", "implementation_config", "config_schema", "artifact_id", "builtin_key"];
    let camel = ["implementationType", "implementationConfig", "configSchema", "artifactId", "builtinKey"];
    if has_any(&registry) || has_any(&camel) {
        return Some(Dialect::Registry);
    }
    if has_any(&["runtime", "body"]) {
        return Some(Dialect::Skill);
    }
    if has("params") {
        return Some(Dialect::Definition);
    }
    has("argSchema").then_some(Dialect::ToolJson)
}

/// Reports strings that are `null`. In JSON that was written explicitly; in YAML it is a key without a value, which is
/// reported only where it would change the identity of the tool.
fn nulls(map: &Map<String, Value>, form: FileForm) -> Vec<Problem> {
    let identity = ["name", "slug", "version"];
    let texts = ["description", "category", "display_name", "displayName"];
    let texts = texts.iter().filter(|_| form == FileForm::Json);
    let is_null = |key: &&&str| map.get(**key).is_some_and(Value::is_null);
    identity
        .iter()
        .chain(texts)
        .filter(is_null)
        .map(|key| Problem::new(*key, "wrong_type", "is null; expected a string, or remove the key"))
        .collect()
}

fn reading(finished: Finished, dialect: Dialect, form: FileForm, warnings: Vec<Problem>) -> ParsedDefinition {
    let form = match (form, dialect) {
        (FileForm::Json, Dialect::Skill) => FileForm::Skill,
        (FileForm::Json, Dialect::Definition) => FileForm::Yaml,
        (form, _) => form,
    };
    let Finished { spec, enabled, bundle, status, scope, from_api } = finished;
    ParsedDefinition { spec, dialect, form, enabled, bundle, status, scope, from_api, warnings }
}

#[cfg(test)]
#[path = "spellings_tests.rs"]
mod spellings;

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
