//! Reads `toolset.yaml`. All errors are reported at once, with their lines.

mod entry;
mod entrypoint;
mod renderers;
mod servers;

use std::collections::HashSet;

use haft_core::name::{BundleSlug, Version};
use haft_core::problem::{Problem, excerpt};
use haft_definition::check::{MAX_DESCRIPTION, MAX_LABEL};
use haft_definition::dialect::{
    DocumentLimits, Fields, Report, UNKNOWN_FIELD, YamlDocument, describe, item_path,
};
use serde_json::Value;

pub(crate) use self::entry::starts_process;
pub use self::renderers::RENDERERS;
use crate::files::{MANIFEST, PackageFiles, REQUIREMENTS};
use crate::problems::Problems;
use crate::requirements::{self, MAX_REQUIREMENTS, Requirement};
use crate::toolset::{DeclaredServer, MANIFEST_VERSION, ToolEntry, Toolset};

/// The maximum number of tools in a toolset.
pub const MAX_TOOLS: usize = 1000;
/// The limits of a manifest. A bundle with large tools can be exported, so they are larger than those of one tool.
pub const LIMITS: DocumentLimits = DocumentLimits { bytes: 16 << 20, values: 1_000_000 };

/// A manifest that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestReading {
    /// The toolset.
    pub toolset: Toolset,
    /// The requirements in `requirements.txt`, if the package has one.
    pub requirements: Vec<Requirement>,
    /// Warnings, such as unknown fields.
    pub warnings: Vec<Problem>,
}

impl ManifestReading {
    /// Returns everything that has to be installed before its Python tools run.
    pub fn all_requirements(&self) -> Vec<Requirement> {
        self.toolset.dependencies.iter().chain(&self.requirements).cloned().collect()
    }
}

/// Reads the manifest of a package, and checks that the files it refers to are there.
pub fn read(files: &PackageFiles) -> Result<ManifestReading, Vec<Problem>> {
    let text = match (files.get(MANIFEST), files.text(MANIFEST)) {
        (_, Some(text)) => text,
        (Some(_), None) => return Err(vec![Problem::new(MANIFEST, "not_text", "is not UTF-8 text")]),
        (None, _) => return Err(vec![missing_manifest(files)]),
    };
    read_text(text, Some(files))
}

/// Reads the text of a manifest, without the files of its package.
///
/// ```
/// let text = "manifest_version: '1'\nid: greetings\nversion: 1.0.0\ntools:\n\
///             - id: greet\n  description: Greets somebody by name\n  entrypoint: tools.greet:run\n";
/// let reading = haft_package::manifest::parse(text).unwrap();
/// assert_eq!(reading.toolset.id.as_str(), "greetings");
/// assert!(reading.toolset.tools[0].spec.sandbox);
/// ```
pub fn parse(text: &str) -> Result<ManifestReading, Vec<Problem>> {
    read_text(text, None)
}

fn missing_manifest(files: &PackageFiles) -> Problem {
    let elsewhere = files.iter().map(|(path, _)| path.as_str()).find(|path| path.ends_with(MANIFEST));
    let message = match elsewhere {
        Some(path) => format!(
            "missing `{MANIFEST}`: it is at `{}`; pack the folder that contains it",
            excerpt(path, 120)
        ),
        None => format!("missing `{MANIFEST}`: add the manifest of the toolset to the root of the package"),
    };
    Problem::new(MANIFEST, "missing_manifest", message)
}

fn read_text(text: &str, files: Option<&PackageFiles>) -> Result<ManifestReading, Vec<Problem>> {
    let mut document = YamlDocument::parse(text, LIMITS).map_err(|problem| vec![problem])?;
    let map = match document.take_value() {
        Value::Object(map) => map,
        other => {
            let message = format!("expected a map of keys such as `id`, found {}", describe(&other));
            return Err(vec![Problem::new("", "wrong_type", message)]);
        }
    };
    let report = Report::default();
    let mut reader = Reader { document: &document, files, errors: Vec::new(), warnings: Vec::new() };
    let toolset = reader.toolset(Fields::new("", map, &report));
    let Reader { errors: own_errors, warnings: own_warnings, .. } = reader;
    let (mut errors, mut warnings) = report.into_parts();
    for list in [&mut errors, &mut warnings] {
        document.locate(list);
    }
    errors.extend(own_errors);
    warnings.extend(own_warnings);
    warnings.extend(document.take_warnings());
    errors.sort_by_key(|problem| problem.line);
    let declared = toolset.as_ref().map_or(&[][..], |toolset| &toolset.dependencies);
    let requirements = requirements_file(files, declared).unwrap_or_else(|problems| {
        errors.extend(problems);
        Vec::new()
    });
    match toolset {
        Some(toolset) if errors.is_empty() => Ok(ManifestReading { toolset, requirements, warnings }),
        _ => {
            if errors.is_empty() {
                errors.push(Problem::new("", "invalid", "the manifest is incomplete"));
            }
            // A misspelled field often explains why another one is missing.
            warnings.retain(|problem| problem.code == UNKNOWN_FIELD);
            Err(Problems::bounded(errors.into_iter().chain(warnings)))
        }
    }
}

/// Reads the parts of a manifest.
struct Reader<'d> {
    document: &'d YamlDocument,
    files: Option<&'d PackageFiles>,
    /// Errors with their positions.
    errors: Vec<Problem>,
    /// Warnings with their positions.
    warnings: Vec<Problem>,
}

impl Reader<'_> {
    fn toolset(&mut self, mut fields: Fields<'_>) -> Option<Toolset> {
        manifest_version(&mut fields);
        let id = id(&mut fields);
        let name = label(&mut fields);
        let version = version(&mut fields);
        let description = description(&mut fields);
        let mut dependencies = dependencies(&mut fields, "dependencies");
        let declares_nothing = !fields.has("tools") && !fields.has("mcp_servers");
        let tools = self.tools(&mut fields, &mut dependencies);
        let mcp_servers = servers::read(&mut fields);
        if declares_nothing {
            fields.missing("tools", "a list of tools, each with `id` and `entrypoint`");
        }
        if let Some(id) = &id {
            check_servers(&fields, id, &mcp_servers);
        }
        Some(Toolset { id: id?, name, version: version?, description, tools, mcp_servers, dependencies })
    }

    fn tools(&mut self, fields: &mut Fields<'_>, dependencies: &mut Vec<Requirement>) -> Vec<ToolEntry> {
        let items = fields.list("tools").unwrap_or_default();
        if items.len() > MAX_TOOLS {
            let message = format!("has {} tools; the limit is {MAX_TOOLS}", items.len());
            fields.error("tools", "too_large", message);
            return Vec::new();
        }
        let mut tools = Vec::new();
        let mut ids = HashSet::new();
        for (index, item) in items.into_iter().enumerate() {
            let mut reading = entry::read(item, self.files);
            if let Some(tool) = reading.tool {
                if !ids.insert((tool.spec.name.clone(), tool.spec.version.clone())) {
                    let message =
                        format!("duplicate tool `{}`; rename or remove one of them", tool.spec.name);
                    reading.errors.push(Problem::new("id", "duplicate_tool", message));
                }
                tools.push(tool);
            }
            for requirement in reading.dependencies {
                if !dependencies.contains(&requirement) {
                    dependencies.push(requirement);
                }
            }
            let path = item_path("tools", index);
            for (list, all) in
                [(&mut reading.errors, &mut self.errors), (&mut reading.warnings, &mut self.warnings)]
            {
                self.document.locate_part(&path, list);
                all.append(list);
            }
        }
        tools
    }
}

/// Reads `requirements.txt`, if the package has one.
fn requirements_file(
    files: Option<&PackageFiles>,
    declared: &[Requirement],
) -> Result<Vec<Requirement>, Vec<Problem>> {
    let Some(file) = files.and_then(|files| files.get(REQUIREMENTS)) else { return Ok(Vec::new()) };
    let not_text = |_| vec![Problem::new(REQUIREMENTS, "not_text", "is not UTF-8 text")];
    let found = requirements::read(std::str::from_utf8(&file.bytes).map_err(not_text)?)?;
    let all: Vec<&Requirement> = declared.iter().chain(&found).collect();
    match requirements::check_hashes(&all) {
        Some(problem) => Err(vec![problem]),
        None => Ok(found),
    }
}

fn manifest_version(fields: &mut Fields<'_>) {
    let version = match fields.value("manifest_version") {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => {
            let message = format!("expected `\"{MANIFEST_VERSION}\"`, found {}", describe(&other));
            return fields.error("manifest_version", "wrong_type", message);
        }
        None => return fields.missing("manifest_version", &format!("`\"{MANIFEST_VERSION}\"`")),
    };
    if version != MANIFEST_VERSION {
        let shown = excerpt(&version, 40);
        let message =
            format!("unsupported version `{shown}`; this version of haft reads `{MANIFEST_VERSION}`");
        fields.error("manifest_version", "unsupported_version", message);
    }
}

fn id(fields: &mut Fields<'_>) -> Option<BundleSlug> {
    let text = fields.required_text("id", "the id of the toolset, such as `my-toolset`")?;
    let id = BundleSlug::new(&text).map_err(|error| {
        fields.error("id", "invalid_name", error.to_string().replacen("bundle name", "toolset id", 1));
    });
    let id = id.ok()?;
    if id == BundleSlug::built_in() {
        fields.error(
            "id",
            "invalid_name",
            format!("`{id}` is the bundle of the built-in tools; choose another id"),
        );
        return None;
    }
    Some(id)
}

fn version(fields: &mut Fields<'_>) -> Option<Version> {
    let text = fields.required_text("version", "a version such as `1.0.0`")?;
    let version = Version::new(&text).ok().filter(Version::is_three_numbers);
    if version.is_none() {
        let message =
            format!("invalid version `{}`; expected three numbers such as `1.0.0`", excerpt(&text, 40));
        fields.error("version", "invalid_version", message);
    }
    version
}

fn label(fields: &mut Fields<'_>) -> String {
    let name = fields.text("name").unwrap_or_default();
    let length = name.chars().count();
    if length > MAX_LABEL {
        fields.error("name", "too_large", format!("has {length} characters; the limit is {MAX_LABEL}"));
    }
    if name.chars().any(char::is_control) {
        fields.error("name", "invalid_value", "contains a control character; expected a single line of text");
    }
    name
}

fn description(fields: &mut Fields<'_>) -> String {
    let description = fields.text("description").unwrap_or_default();
    if description.len() > MAX_DESCRIPTION {
        let message = format!("has {} bytes; the limit is {MAX_DESCRIPTION}", description.len());
        fields.error("description", "too_large", message);
    }
    description
}

/// Reads a list of requirements.
fn dependencies(fields: &mut Fields<'_>, key: &'static str) -> Vec<Requirement> {
    let lines = fields.texts(key).unwrap_or_default();
    if lines.len() > MAX_REQUIREMENTS {
        let message = format!("has {} entries; the limit is {MAX_REQUIREMENTS}", lines.len());
        fields.error(key, "too_large", message);
        return Vec::new();
    }
    let mut found = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match Requirement::new(line) {
            Ok(requirement) => found.push(requirement),
            Err(error) => {
                let path = item_path(&fields.path(key), index);
                fields.report().error(path, "invalid_requirement", error.to_string());
            }
        }
    }
    found
}

/// The tools of a server are a bundle of their own, with the id of the server.
fn check_servers(fields: &Fields<'_>, id: &BundleSlug, servers: &[DeclaredServer]) {
    if servers.iter().any(|server| server.id == *id) {
        let message = format!("an MCP server has the id of the toolset, `{id}`; rename one of them");
        fields.error("mcp_servers", "conflicting_fields", message);
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
