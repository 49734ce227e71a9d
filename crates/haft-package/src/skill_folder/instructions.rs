//! The tool that returns the instructions of a skill, for models whose client shows them no prompts.

use haft_core::implementation::{Function, Implementation};
use haft_core::name::ToolName;
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_core::toolset::READ_SKILL;
use serde_json::json;

use super::read::{AgentSkill, MAX_DESCRIPTION};
use super::write::skill_name;
use crate::toolset::{ToolEntry, Toolset};

/// The end of the name of the tool.
const SUFFIX: &str = "-skill";
/// The maximum length of the name of a tool, in characters.
const MAX_NAME: usize = 64;

/// Returns the name of the tool that returns the instructions of a skill: `pdf-forms-skill` for `pdf-forms`.
pub(super) fn instructions_name(skill: &str) -> String {
    let name: String = skill_name(skill).chars().take(MAX_NAME - SUFFIX.len()).collect();
    let name = name.trim_end_matches('-').trim_end_matches(SUFFIX);
    format!("{name}{SUFFIX}")
}

/// Returns the tool that returns the instructions of a skill, and its files by name.
pub(super) fn instructions_tool(skill: &AgentSkill) -> Option<ToolEntry> {
    let name = ToolName::new(&instructions_name(&skill.name)).ok()?;
    let description = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut tool = ToolSpec::new(name, Implementation::Function(Function::new(READ_SKILL)));
    // The first paragraph is what a search shows.
    tool.description = format!(
        "{}\n\nReturns the instructions of the skill `{}` and the names of its files. Read them before you start such a \
         task. With `file`, it returns one of the files.",
        excerpt(&description, MAX_DESCRIPTION),
        excerpt(&skill.name, MAX_NAME),
    );
    "skills".clone_into(&mut tool.category);
    tool.tags = ["skill", "read-only"].map(str::to_owned).into();
    tool.input_schema = json!({
        "type": "object",
        "properties": {
            "file": {
                "type": "string", "minLength": 1, "maxLength": 1024,
                "description": "The path of a file of the skill, such as references/forms.md",
            },
        },
        "additionalProperties": false,
    })
    .into();
    tool.execution.is_pure = true;
    Some(ToolEntry::from(tool))
}

/// Adds the tool to a toolset with a `SKILL.md`, unless the toolset has such a tool.
pub(crate) fn add_instructions(toolset: &mut Toolset, skill: &AgentSkill) {
    let reads_skill = |entry: &ToolEntry| match &entry.spec.implementation {
        Implementation::Function(function) => function.function == READ_SKILL,
        _ => false,
    };
    let Some(tool) = instructions_tool(skill) else { return };
    let is_taken = |entry: &ToolEntry| entry.spec.name == tool.spec.name;
    if !toolset.tools.iter().any(|entry| reads_skill(entry) || is_taken(entry)) {
        toolset.tools.push(tool);
    }
}
