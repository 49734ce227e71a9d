//! Writes the format of Agent Skills, and converts skills to toolsets.

use std::fmt::Write as _;

use haft_core::hash;
use haft_core::implementation::{Implementation, Script, ScriptRuntime};
use haft_core::name::{BundleSlug, Version};
use haft_core::problem::Problem;
use haft_core::schema::declared_properties;
use haft_core::spec::ToolSpec;
use serde_json::Value;

use super::instructions::instructions_tool;
use super::read::{AgentSkill, MAX_COMPATIBILITY, MAX_DESCRIPTION, MAX_KEY, read};
use super::scripts::{RUNNER, runner};
use crate::files::{MANIFEST, PackageFiles, SKILL};
use crate::path::PackagePath;
use crate::problems::of_file;
use crate::toolset::{ToolEntry, Toolset};
use crate::write::manifest;

/// The property of a skill that has the id of the bundle it was written from.
const ID_PROPERTY: &str = "haft-id";
/// The property of a skill that has its version.
const VERSION_PROPERTY: &str = "version";
/// The maximum length of a name, in characters.
const MAX_NAME: usize = 64;

/// A folder in the format of Agent Skills.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillFolder {
    /// The name of the skill, which must also be the name of the folder.
    pub name: String,
    /// The files in the folder.
    pub files: PackageFiles,
}

/// Returns the name that the format allows for a text: lower-case letters, digits and single hyphens, at most 64.
///
/// ```
/// assert_eq!(haft_package::skill_folder::skill_name("My_Toolset 2"), "my-toolset-2");
/// ```
pub fn skill_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() == MAX_NAME {
            break;
        }
    }
    let name = name.trim_matches('-');
    if name.is_empty() {
        // A name of other letters only, such as `天気`.
        let digest = hash::of_bytes(text.as_bytes());
        return format!("skill-{}", digest.get(..8).unwrap_or_default());
    }
    name.to_owned()
}

/// Converts a skill to a package that can be installed: adds a manifest, and the module that starts its scripts.
pub fn to_package(skill: &AgentSkill, files: PackageFiles) -> Result<PackageFiles, Vec<Problem>> {
    let mut files = files;
    let toolset = to_toolset(skill);
    files.put_text(MANIFEST, manifest(&toolset)).map_err(|problem| vec![problem])?;
    if !skill.scripts.is_empty() {
        files.put_text(RUNNER, runner(&skill.scripts)).map_err(|problem| vec![problem])?;
    }
    Ok(files)
}

/// Returns the files that the author of a skill wrote; `None` if the generated files are not exactly those that haft
/// generates.
pub fn without_generated(files: &PackageFiles) -> Option<PackageFiles> {
    let skill = read(files).ok()?.skill;
    let mut own = files.clone();
    own.remove(MANIFEST)?;
    own.remove(RUNNER);
    let same = |name: &str, text: &str| files.text(name) == Some(text);
    let is_generated = same(MANIFEST, &manifest(&to_toolset(&skill)))
        && (skill.scripts.is_empty() || same(RUNNER, &runner(&skill.scripts)));
    is_generated.then_some(own)
}

fn to_toolset(skill: &AgentSkill) -> Toolset {
    let property = |name: &str| skill.metadata.get(name).map(String::as_str);
    let id = property(ID_PROPERTY).and_then(|id| BundleSlug::new(id).ok());
    // A mapped name is always a valid id.
    let id = id.or_else(|| BundleSlug::new(&skill_name(&skill.name)).ok());
    let mut toolset = Toolset::new(id.unwrap_or_else(BundleSlug::user_created));
    if toolset.id.as_str() != skill.name {
        toolset.name = skill.name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    }
    let version = property(VERSION_PROPERTY).and_then(|version| Version::new(version).ok());
    if let Some(version) = version.filter(Version::is_three_numbers) {
        toolset.version = version;
    }
    toolset.description = shortened(&skill.description, MAX_DESCRIPTION);
    let scripts = skill.scripts.iter().map(|script| ToolEntry::from(script.tool.clone()));
    toolset.tools = instructions_tool(skill).into_iter().chain(scripts).collect();
    toolset
}

/// Writes a skill with its files; what haft added on import is left out.
pub fn write(skill: &AgentSkill, files: &PackageFiles) -> Result<SkillFolder, Vec<Problem>> {
    let name = skill_name(&skill.name);
    let mut out = PackageFiles::new();
    let paths = skill.scripts.iter().map(|script| &script.path).chain(&skill.resources);
    for path in paths {
        let Some(file) = files.get(path.as_str()) else {
            return Err(vec![of_file(path.as_str(), "missing_file", "the file is not in the package")]);
        };
        out.add(path.clone(), file.bytes.clone(), file.executable).map_err(|problem| vec![problem])?;
    }
    out.put_text(SKILL, skill_md(skill, &name)).map_err(|problem| vec![problem])?;
    Ok(SkillFolder { name, files: out })
}

/// Writes any toolset as a skill. One that was imported from a skill is written as it was; of another one, the
/// instructions list the tools, and scripts become files.
pub fn from_toolset(toolset: &Toolset, files: &PackageFiles) -> Result<SkillFolder, Vec<Problem>> {
    if files.has(SKILL) {
        return write(&read(files)?.skill, files);
    }
    let mut out = PackageFiles::new();
    let mut scripts = Vec::new();
    for tool in &toolset.tools {
        let Some((extension, text)) = standalone_script(&tool.spec) else { continue };
        let path = format!("scripts/{}.{extension}", tool.spec.name);
        let Ok(safe) = PackagePath::new(&path) else { continue };
        // A second version of the same tool stays in the list only.
        if out.add(safe, text, true).is_ok() {
            scripts.push((tool.spec.name.clone(), path));
        }
    }
    out.put_text("references/toolset.yaml", manifest(toolset)).map_err(|problem| vec![problem])?;
    let resources: Vec<PackagePath> = out.iter().map(|(path, _)| path.clone()).collect();
    let mut skill = AgentSkill {
        name: skill_name(toolset.id.as_str()),
        description: skill_description(toolset),
        license: None,
        compatibility: None,
        metadata: [(ID_PROPERTY, toolset.id.as_str()), (VERSION_PROPERTY, toolset.version.as_str())]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        allowed_tools: None,
        instructions: String::new(),
        scripts: Vec::new(),
        resources,
    };
    skill.instructions = instructions(toolset, &scripts);
    write(&skill, &out)
}

fn skill_description(toolset: &Toolset) -> String {
    let own = toolset.description.trim();
    let text = if own.is_empty() {
        let names: Vec<&str> = toolset.tools.iter().map(|tool| tool.spec.title()).collect();
        format!("The tools of {}: {}", toolset.title(), names.join(", "))
    } else {
        own.to_owned()
    };
    shortened(&text, MAX_DESCRIPTION)
}

fn instructions(toolset: &Toolset, scripts: &[(haft_core::name::ToolName, String)]) -> String {
    let mut text = format!("# {}\n\n{}\n", toolset.title(), toolset.description.trim());
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n## Tools\n\nhaft serves these tools in the bundle `{}`. Their complete definitions are in \
         `references/toolset.yaml`.\n",
        toolset.id
    );
    for tool in &toolset.tools {
        let spec = &tool.spec;
        let _ = write!(text, "\n### `{}`\n\n{}\n", spec.name, spec.description.trim());
        let arguments = arguments(spec);
        if !arguments.is_empty() {
            let _ = write!(text, "\nArguments:\n\n{arguments}");
        }
        if let Some((_, path)) = scripts.iter().find(|(name, _)| *name == spec.name) {
            let _ = write!(text, "\nWithout haft, run `{path}` with arguments such as `NAME=VALUE`.\n");
        }
    }
    text
}

fn arguments(spec: &ToolSpec) -> String {
    let schema = spec.input_schema.value();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut text = String::new();
    for (name, schema) in declared_properties(&schema) {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
        let needed = if required.contains(&name) { ", required" } else { "" };
        let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = if about.is_empty() { String::new() } else { format!(": {}", about.replace('\n', " ")) };
        let _ = writeln!(text, "- `{name}` ({kind}{needed}){about}");
    }
    text
}

/// Returns a script tool as a file that runs without haft, with its extension; `None` if it cannot.
fn standalone_script(spec: &ToolSpec) -> Option<(&'static str, String)> {
    let Implementation::Script(Script { runtime, body, .. }) = &spec.implementation else { return None };
    match runtime {
        ScriptRuntime::Bash => Some(("sh", format!("{BASH_HEAD}{body}\n"))),
        // haft replaces `${name}` in Python strings, and an import of the future must be the first statement.
        ScriptRuntime::Python if body.contains("${") || body.contains("__future__") => None,
        ScriptRuntime::Python => Some(("py", format!("{PYTHON_HEAD}{body}\n"))),
    }
}

const BASH_HEAD: &str = r#"#!/usr/bin/env bash
# Arguments are variables: pass them as NAME=VALUE.
for haft_argument in "$@"; do export "${haft_argument?}"; done
"#;

const PYTHON_HEAD: &str = r#"#!/usr/bin/env python3
# Arguments are environment variables: pass them as NAME=VALUE.
import json as _json, os as _os, sys as _sys
_os.environ.update(_item.split("=", 1) for _item in _sys.argv[1:])
_os.environ.setdefault("HAFT_ARGS", _json.dumps(dict(_item.split("=", 1) for _item in _sys.argv[1:])))
"#;

/// Writes `SKILL.md`.
fn skill_md(skill: &AgentSkill, name: &str) -> String {
    let mut text = format!("---\nname: {name}\n");
    let mut field = |key: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key}: {}", quoted(value));
    };
    field("description", &shortened(&skill.description, MAX_DESCRIPTION));
    if let Some(license) = &skill.license {
        field("license", license);
    }
    if let Some(compatibility) = &skill.compatibility {
        field("compatibility", &shortened(compatibility, MAX_COMPATIBILITY));
    }
    if let Some(tools) = &skill.allowed_tools {
        field("allowed-tools", tools);
    }
    // Longer keys cannot be read back.
    let mut metadata = skill.metadata.iter().filter(|(key, _)| key.len() <= MAX_KEY).peekable();
    if metadata.peek().is_some() {
        text.push_str("metadata:\n");
        for (key, value) in metadata {
            let _ = writeln!(text, "  {}: {}", key_text(key), quoted(value));
        }
    }
    let _ = write!(text, "---\n\n{}\n", skill.instructions.trim());
    text
}

/// Writes a key, quoted unless every reader of YAML takes it for a text.
fn key_text(key: &str) -> String {
    let is_word = key.len() > 3
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !matches!(key.to_ascii_lowercase().as_str(), "true" | "false" | "null" | "none");
    if is_word { key.to_owned() } else { quoted(key) }
}

/// Writes a text as a YAML string on one line. The validator of the format splits the file at `---`, wherever it is.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '-' if out.ends_with("--") => out.push_str("\\x2d"),
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns at most `limit` characters.
fn shortened(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(limit - 1).collect();
    out.push('…');
    out
}
