//! Reads a folder with `SKILL.md`.

use std::collections::BTreeMap;

use haft_core::problem::Problem;
use haft_definition::dialect::{DocumentLimits, Fields, Report, YamlDocument, describe};
use serde_json::Value;

use super::scripts::{self, RUNNER, SkillScript};
use super::write::skill_name;
use crate::files::{MANIFEST, PackageFiles, SIGNATURE, SKILL};
use crate::path::PackagePath;

/// The limits of `SKILL.md`.
const LIMITS: DocumentLimits = DocumentLimits { bytes: 1 << 20, values: 10_000 };
/// The maximum length of a description in the format, in characters.
pub(super) const MAX_DESCRIPTION: usize = 1024;
/// The maximum length of `compatibility` in the format, in characters.
pub(super) const MAX_COMPATIBILITY: usize = 500;

/// The maximum length of a key of `metadata`, in bytes: YAML limits keys that are written on one line.
pub(super) const MAX_KEY: usize = 256;

/// An Agent Skill.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSkill {
    /// The name: lower-case letters, digits and `-`.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The license.
    pub license: Option<String>,
    /// What it needs of its environment.
    pub compatibility: Option<String>,
    /// Further properties.
    pub metadata: BTreeMap<String, String>,
    /// The tools that it may use without asking, as the client spells them.
    pub allowed_tools: Option<String>,
    /// The text for the model.
    pub instructions: String,
    /// The scripts, each with the tool that runs it.
    pub scripts: Vec<SkillScript>,
    /// The other files.
    pub resources: Vec<PackagePath>,
}

/// A skill that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillReading {
    /// The skill.
    pub skill: AgentSkill,
    /// Warnings, such as unknown fields.
    pub warnings: Vec<Problem>,
}

/// Reads a skill. Every error names its line in `SKILL.md`.
pub fn read(files: &PackageFiles) -> Result<SkillReading, Vec<Problem>> {
    let problem = |code: &str, message: &str| vec![Problem::new(SKILL, code, message)];
    let Some(file) = files.get(SKILL) else {
        return Err(problem("missing_manifest", "missing `SKILL.md` in the root of the skill"));
    };
    let text = std::str::from_utf8(&file.bytes).map_err(|_| problem("not_text", "is not UTF-8 text"))?;
    let (mut document, body) =
        YamlDocument::parse_front_matter(text, LIMITS).map_err(|problem| vec![explained(problem)])?;
    let map = match document.take_value() {
        Value::Object(map) => map,
        other => {
            let message = format!("expected the keys `name` and `description`, found {}", describe(&other));
            return Err(problem("wrong_type", &message));
        }
    };
    let report = Report::default();
    let skill = skill_of(Fields::new("", map, &report));
    let (mut errors, mut warnings) = report.into_parts();
    document.locate(&mut errors);
    document.locate(&mut warnings);
    warnings.extend(document.take_warnings());
    match skill {
        Some(mut skill) if errors.is_empty() => {
            body.trim().clone_into(&mut skill.instructions);
            skill.scripts = scripts::find(&skill.name, files);
            skill.resources = resources(&skill, files);
            Ok(SkillReading { skill, warnings })
        }
        _ => Err(errors.into_iter().chain(warnings).collect()),
    }
}

/// Returns the front matter of `SKILL.md` with every field that its author wrote; `None` if it is invalid.
pub fn front_matter(text: &str) -> Option<Value> {
    let (document, _) = YamlDocument::parse_front_matter(text, LIMITS).ok()?;
    Some(document.into_plain_value()).filter(Value::is_object)
}

/// Replaces messages about the front matter of `.skill` files.
fn explained(mut problem: Problem) -> Problem {
    if problem.code == "front_matter" {
        "missing front matter: `SKILL.md` starts with a line `---`, then `name` and `description`, then a second line \
         `---`, then the instructions"
            .clone_into(&mut problem.message);
    }
    problem
}

fn skill_of(mut fields: Fields<'_>) -> Option<AgentSkill> {
    let name = fields.required_text("name", "the name of the skill, such as `pdf-forms`");
    let description = fields.required_text("description", "what the skill does and when to use it");
    if let Some(name) = &name {
        check_name(&fields, name);
    }
    if let Some(description) = &description {
        if description.trim().is_empty() {
            fields.error("description", "missing_field", "is empty; describe what the skill does");
        }
        warn_length(&fields, "description", description, MAX_DESCRIPTION);
    }
    let license = fields.text("license");
    let compatibility = fields.text("compatibility");
    if let Some(text) = &compatibility {
        warn_length(&fields, "compatibility", text, MAX_COMPATIBILITY);
    }
    let metadata = fields.text_map("metadata").unwrap_or_default();
    if metadata.keys().any(|key| key.len() > MAX_KEY) {
        fields.error("metadata", "too_large", format!("a key has more than {MAX_KEY} bytes; shorten it"));
    }
    let allowed_tools = allowed_tools(&mut fields);
    Some(AgentSkill {
        name: name?,
        description: description?,
        license,
        compatibility,
        metadata,
        allowed_tools,
        instructions: String::new(),
        scripts: Vec::new(),
        resources: Vec::new(),
    })
}

fn check_name(fields: &Fields<'_>, name: &str) {
    if name.trim().is_empty() {
        return fields.error("name", "invalid_name", "is empty; use lower-case letters, digits and `-`");
    }
    let mapped = skill_name(name);
    if mapped != name {
        let message = format!(
            "the format allows lower-case letters, digits and single `-`, at most 64; haft uses `{mapped}`"
        );
        fields.warn("name", "invalid_name", message);
    }
}

fn warn_length(fields: &Fields<'_>, key: &str, text: &str, limit: usize) {
    let length = text.chars().count();
    if length > limit {
        fields.warn(key, "too_large", format!("has {length} characters; the format allows {limit}"));
    }
}

/// Reads `allowed-tools`: a text, or a list as some skills have it.
fn allowed_tools(fields: &mut Fields<'_>) -> Option<String> {
    match fields.peek("allowed-tools") {
        Some(Value::Array(_)) => fields.texts("allowed-tools").map(|tools| tools.join(" ")),
        _ => fields.text("allowed-tools"),
    }
}

fn resources(skill: &AgentSkill, files: &PackageFiles) -> Vec<PackagePath> {
    let is_script = |path: &PackagePath| skill.scripts.iter().any(|script| script.path == *path);
    let is_own = |path: &PackagePath| [SKILL, MANIFEST, SIGNATURE, RUNNER].contains(&path.as_str());
    files.iter().map(|(path, _)| path).filter(|path| !is_own(path) && !is_script(path)).cloned().collect()
}
