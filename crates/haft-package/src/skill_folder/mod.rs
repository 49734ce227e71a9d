//! The public format of Agent Skills: a folder with `SKILL.md`, `scripts/`, `references/` and `assets/`.

mod instructions;
mod read;
mod scripts;
mod write;

pub(crate) use instructions::add_instructions;
pub use read::{AgentSkill, SkillReading, front_matter, read};
pub use scripts::{RUNNER, SkillScript};
pub use write::{SkillFolder, from_toolset, skill_name, to_package, without_generated, write};

#[cfg(test)]
#[path = "skill_folder_tests.rs"]
mod tests;
