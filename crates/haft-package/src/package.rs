//! A package that is ready to be installed.

use haft_core::problem::Problem;

use crate::files::{MANIFEST, PackageFiles, SKILL};
use crate::manifest::{self, ManifestReading};
use crate::requirements::Requirement;
use crate::skill_folder::{self, AgentSkill};
use crate::toolset::Toolset;

/// A valid package: its files, and what they say.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// The files. An Agent Skill has a manifest too, which is generated.
    pub files: PackageFiles,
    /// The content of the manifest.
    pub toolset: Toolset,
    /// The requirements in `requirements.txt`.
    pub requirements: Vec<Requirement>,
    /// The instructions and resources of an Agent Skill, if the package has a `SKILL.md`.
    pub skill: Option<AgentSkill>,
    /// Warnings for the author and the installer.
    pub warnings: Vec<Problem>,
}

impl Package {
    /// Opens a package: a toolset, or an Agent Skill, which is converted to one. All errors are reported at once.
    pub fn open(files: PackageFiles) -> Result<Self, Vec<Problem>> {
        let mut warnings = Vec::new();
        let mut skill = None;
        let mut files = files;
        if files.has(SKILL) {
            match skill_folder::read(&files) {
                Ok(reading) => {
                    warnings.extend(reading.warnings);
                    if !files.has(MANIFEST) {
                        files = skill_folder::to_package(&reading.skill, files)?;
                    }
                    skill = Some(reading.skill);
                }
                // In a toolset it may be a file of another kind.
                Err(problems) if files.has(MANIFEST) => warnings.extend(problems),
                Err(problems) => return Err(problems),
            }
        }
        let ManifestReading { mut toolset, requirements, warnings: more } = manifest::read(&files)?;
        warnings.extend(more);
        if let Some(skill) = &skill {
            skill_folder::add_instructions(&mut toolset, skill);
        }
        Ok(Self { files, toolset, requirements, skill, warnings })
    }

    /// Returns everything that has to be installed before its Python tools run.
    pub fn all_requirements(&self) -> Vec<Requirement> {
        self.toolset.dependencies.iter().chain(&self.requirements).cloned().collect()
    }
}
