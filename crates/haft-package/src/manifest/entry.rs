//! Reads one entry of `tools`: the Python form of toolsets, or any other definition.

use std::collections::BTreeSet;

use haft_core::catalog::FileForm;
use haft_core::implementation::{Implementation, Kind};
use haft_core::name::ToolName;
use haft_core::problem::{Problem, nearest};
use haft_core::redact;
use haft_core::spec::ToolSpec;
use haft_definition::check;
use haft_definition::dialect::{
    Defaults, Fields, ParsedDefinition, Report, UNKNOWN_FIELD, conflict, describe, detect, read_part,
};
use serde_json::{Map, Value, json};

use super::header::dependencies;
use super::{entrypoint, examples, renderers};
use crate::files::PackageFiles;
use crate::problems::of_file;
use crate::requirements::Requirement;
use crate::toolset::ToolEntry;

/// The name of a tool whose id is invalid, so that its other fields can be checked.
const UNNAMED: &str = "unnamed-tool";

/// The result of reading an entry. The fields of problems are relative to the entry.
#[derive(Debug, Default)]
pub(super) struct EntryReading {
    pub(super) tool: Option<ToolEntry>,
    pub(super) dependencies: Vec<Requirement>,
    pub(super) errors: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

/// Reads an entry.
pub(super) fn read(item: Value, files: Option<&PackageFiles>) -> EntryReading {
    let map = match item {
        Value::Object(map) => map,
        other => {
            let message = format!("expected a map with `id` and `entrypoint`, found {}", describe(&other));
            let errors = vec![Problem::new("", "wrong_type", message)];
            return EntryReading { errors, ..EntryReading::default() };
        }
    };
    let report = Report::default();
    let mut fields = Fields::new("", map, &report);
    let own = OwnFields::take(&mut fields, files);
    let examples = examples::take(&mut fields);
    let mut definition = fields.rest();
    drop(fields);
    let asks_for_sandbox = own.permissions.contains_key("sandbox") || definition.contains_key("sandbox");
    let dependencies = own.put_into(&mut definition, &report);
    let (errors, warnings) = report.into_parts();
    let mut reading = EntryReading { tool: None, dependencies, errors, warnings };
    match parse(&definition) {
        Ok(parsed) => {
            reading.warnings.extend(parsed.warnings);
            let mut spec = parsed.spec;
            // Packages are third-party code: their processes are isolated unless the manifest requests otherwise.
            spec.sandbox |= !asks_for_sandbox && starts_process(spec.implementation.kind());
            reading.check(&mut spec, files);
            reading.tool = Some(ToolEntry { spec, enabled: parsed.enabled.unwrap_or(true), examples });
        }
        Err(problems) => {
            // The other fields are checked too, so that all errors are reported at once.
            if let Some(parsed) = parse_without(definition, &problems) {
                let mut spec = parsed.spec;
                spec.sandbox |= spec.image.is_some();
                reading.check(&mut spec, files);
            }
            let is_warning = |problem: &Problem| problem.code == UNKNOWN_FIELD;
            let (warnings, errors): (Vec<_>, Vec<_>) = problems.into_iter().partition(is_warning);
            reading.errors.extend(errors);
            reading.warnings.extend(warnings);
        }
    }
    reading.suggest_own_fields();
    for problem in reading.errors.iter_mut().chain(&mut reading.warnings) {
        if matches!(problem.field.as_str(), "slug" | "name") {
            "id".clone_into(&mut problem.field);
        }
    }
    reading
}

fn parse(definition: &Map<String, Value>) -> Result<ParsedDefinition, Vec<Problem>> {
    if detect(definition, FileForm::Yaml).is_none() {
        let message = "missing implementation: add `entrypoint: tools.MODULE:FUNCTION` for a Python tool, \
                       or `implementation` with a `type` such as `http`";
        return Err(vec![Problem::new("entrypoint", "missing_field", message)]);
    }
    read_part(Value::Object(definition.clone()), FileForm::Yaml, &Defaults::default())
}

/// Parses a definition without the fields that have problems; `None` if the implementation is one of them.
fn parse_without(mut definition: Map<String, Value>, problems: &[Problem]) -> Option<ParsedDefinition> {
    let top = |problem: &Problem| problem.field.split(['.', '[']).next().unwrap_or_default().to_owned();
    let fields: BTreeSet<String> = problems.iter().map(top).collect();
    for field in fields {
        // The parser may name a field differently than its author.
        definition.shift_remove(&field)?;
    }
    definition.get("implementation")?;
    parse(&definition).ok()
}

/// Returns whether the tools of a kind start a process on the host.
pub(crate) fn starts_process(kind: Kind) -> bool {
    matches!(kind, Kind::Python | Kind::Script | Kind::Exec | Kind::Artifact)
}

impl EntryReading {
    /// Checks a definition, and the files that it refers to.
    fn check(&mut self, spec: &mut ToolSpec, files: Option<&PackageFiles>) {
        let checked = check::definition(spec);
        self.errors.extend(checked.errors);
        self.warnings.extend(checked.warnings);
        if redact::has_literal_secret(spec) {
            let message = "contains a literal secret; write a reference such as `${API_KEY}` instead";
            self.warnings.push(Problem::new("implementation", "literal_secret", message));
        }
        let Some(files) = files else { return };
        let is_reported = |field: &str| self.errors.iter().any(|problem| problem.field == field);
        match &mut spec.implementation {
            Implementation::Python(_) if is_reported(entrypoint::FIELD) => {}
            Implementation::Python(python) => match entrypoint::resolve(&python.entrypoint, files) {
                Ok(found) => python.entrypoint = found,
                Err(problem) => self.errors.push(problem),
            },
            Implementation::Wasm(wasm) => {
                let missing = wasm.file.as_deref().filter(|file| !files.has(file));
                self.errors.extend(missing.map(|file| {
                    let problem = of_file(file, "missing_file", "");
                    let message = format!("`{}` is not in the package; add it", problem.field);
                    Problem::new("implementation.file", "missing_file", message)
                }));
            }
            _ => {}
        }
    }
}

/// The keys that an entry has besides those of a definition, and whether their loss would change the tool.
const OWN_KEYS: [(&str, bool); 6] = [
    ("entrypoint", true),
    ("permissions", true),
    ("dependencies", true),
    ("renderer", false),
    ("renderers", false),
    ("examples", false),
];

impl EntryReading {
    /// Corrects the suggestions for unknown fields, which know the keys of a definition only.
    fn suggest_own_fields(&mut self) {
        let (mut warnings, mut errors) = (Vec::new(), Vec::new());
        for mut problem in std::mem::take(&mut self.warnings) {
            let is_unknown = problem.code == UNKNOWN_FIELD;
            let near = nearest(&problem.field, OWN_KEYS.map(|(key, _)| key)).filter(|_| is_unknown);
            match near.map(|near| (near, OWN_KEYS.contains(&(near, true)))) {
                None => warnings.push(problem),
                Some((near, true)) => {
                    let message = format!("unknown field; did you mean `{near}`?");
                    errors.push(Problem::new(problem.field, "misspelled_field", message));
                }
                Some((near, false)) => {
                    problem.message = format!("unknown field, ignored; did you mean `{near}`?");
                    warnings.push(problem);
                }
            }
        }
        self.warnings = warnings;
        self.errors.append(&mut errors);
    }
}

/// The fields that an entry has besides those of a definition.
struct OwnFields {
    /// The id, if the entry has one.
    id: Option<String>,
    entrypoint: Option<String>,
    permissions: Map<String, Value>,
    /// The renderers in their canonical form.
    renderers: Option<Value>,
    dependencies: Vec<Requirement>,
}

impl OwnFields {
    fn take(fields: &mut Fields<'_>, files: Option<&PackageFiles>) -> Self {
        fields.suggest(&["name", "description", "category", "input_schema", "requires_confirmation"]);
        Self {
            id: id(fields),
            entrypoint: fields.text("entrypoint"),
            permissions: permissions(fields),
            renderers: renderers::read(fields, files),
            dependencies: dependencies(fields, "dependencies"),
        }
    }

    /// Puts the fields into a definition; returns the dependencies, which belong to the whole toolset.
    fn put_into(self, definition: &mut Map<String, Value>, report: &Report) -> Vec<Requirement> {
        if let Some(id) = self.id {
            definition.insert("slug".to_owned(), Value::String(id));
        }
        for (key, value) in self.permissions {
            match definition.get(&key) {
                Some(own) if *own != value => {
                    report.error(&key, "conflicting_fields", conflict(&format!("permissions.{key}")));
                }
                _ => drop(definition.insert(key, value)),
            }
        }
        if let Some(renderers) = self.renderers {
            definition.insert("renderers".to_owned(), renderers);
        }
        if let Some(entrypoint) = self.entrypoint {
            put_entrypoint(definition, &entrypoint, report);
        }
        self.dependencies
    }
}

/// Takes the id. In a response of the API, `id` is another one, and `name` is the id.
fn id(fields: &mut Fields<'_>) -> Option<String> {
    if fields.has("tool_type") {
        return None;
    }
    let Some(key) = fields.alias(&["id", "tool_id", "slug"]) else {
        let named =
            fields.peek("name").and_then(Value::as_str).is_some_and(|name| ToolName::new(name).is_ok());
        if named {
            return None;
        }
        fields.missing("id", "the id of the tool, such as `analyze_data`");
        return Some(UNNAMED.to_owned());
    };
    let id = fields.text(key)?;
    match ToolName::new(&id) {
        Ok(_) => Some(id),
        Err(error) => {
            fields.error(key, "invalid_name", error.to_string().replacen("tool name", "tool id", 1));
            Some(UNNAMED.to_owned())
        }
    }
}

fn permissions(fields: &mut Fields<'_>) -> Map<String, Value> {
    let mut found = Map::new();
    let Some(mut permissions) = fields.nested("permissions") else { return found };
    for key in ["network", "sandbox"] {
        if let Some(flag) = permissions.flag(key) {
            found.insert(key.to_owned(), json!(flag));
        }
    }
    let policies = ["allow", "deny", "elevated"].map(|policy| (policy, policy));
    if let Some(policy) = permissions.choice("policy", &policies) {
        found.insert("policy".to_owned(), json!(policy));
    }
    found
}

fn put_entrypoint(definition: &mut Map<String, Value>, entrypoint: &str, report: &Report) {
    match definition.get_mut("implementation") {
        None | Some(Value::Null) => {
            let block = json!({"type": Kind::Python.as_str(), "entrypoint": entrypoint});
            definition.insert("implementation".to_owned(), block);
        }
        Some(block) if block.get("entrypoint").is_some_and(|own| own == entrypoint) => {}
        Some(_) => report.error("entrypoint", "conflicting_fields", conflict("implementation")),
    }
}
