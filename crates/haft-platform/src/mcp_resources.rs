//! The skills and files in the packages of toolsets, for prompts, resources and the tools of skills.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode};
use haft_mcp::server::{PackageSource, Skill, SkillFile};
use haft_package::files::{MANIFEST, PackageFiles, SIGNATURE, SKILL};
use haft_package::skill_folder::{self, RUNNER};

use crate::context::Context;
use crate::late::Late;
use crate::toolsets::{read_file, read_package};

/// How many skills are kept in memory.
const MAX_CACHED: usize = 256;

/// The skills that were read, by the hash of their package, which never changes.
#[derive(Default)]
struct SkillCache {
    skills: Mutex<HashMap<String, CachedSkill>>,
    /// One package is read at a time: packages are large.
    loading: tokio::sync::Mutex<()>,
}

/// The skill of a package, if it has one.
#[derive(Clone)]
struct CachedSkill(Option<Arc<Skill>>);

impl SkillCache {
    fn get(&self, package: &str) -> Option<CachedSkill> {
        self.skills.lock().unwrap_or_else(PoisonError::into_inner).get(package).cloned()
    }

    fn put(&self, package: &str, skill: Option<Arc<Skill>>) {
        let mut skills = self.skills.lock().unwrap_or_else(PoisonError::into_inner);
        if skills.len() >= MAX_CACHED {
            skills.clear();
        }
        skills.insert(package.to_owned(), CachedSkill(skill));
    }
}

/// The packages of an installation.
pub struct McpPackages {
    handle: Late<Context>,
    cache: SkillCache,
}

impl McpPackages {
    pub fn new(handle: Late<Context>) -> Self {
        Self { handle, cache: SkillCache::default() }
    }
}

impl PackageSource for McpPackages {
    fn skill<'a>(
        &'a self,
        tenant: &'a TenantId,
        package: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<Skill>>, CallError>> {
        Box::pin(async move {
            let app = self.handle.get()?;
            // A definition can name any package.
            if !app
                .store()
                .catalog()
                .has_package(tenant, package)
                .await
                .map_err(|error| unavailable(&error))?
            {
                return Ok(None);
            }
            let cache = &self.cache;
            if let Some(CachedSkill(known)) = cache.get(package) {
                return Ok(known);
            }
            let _loading = cache.loading.lock().await;
            if let Some(CachedSkill(known)) = cache.get(package) {
                return Ok(known);
            }
            // Another node has installed it just now, and this one unpacks it within a second.
            let Some(files) = read_package(&app, package).await else { return Ok(None) };
            let skill = tokio::task::spawn_blocking(move || skill_of(&files).map(Arc::new)).await;
            let skill = skill.map_err(|error| CallError::internal(error.to_string()))?;
            cache.put(package, skill.clone());
            Ok(skill)
        })
    }

    fn file<'a>(
        &'a self,
        tenant: &'a TenantId,
        package: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, CallError>> {
        Box::pin(async move {
            let app = self.handle.get()?;
            let is_own = app
                .store()
                .catalog()
                .has_package(tenant, package)
                .await
                .map_err(|error| unavailable(&error))?;
            if !is_own || !package.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Ok(None);
            }
            Ok(read_file(&app, package, path).await)
        })
    }

    fn current<'a>(
        &'a self,
        tenant: &'a TenantId,
        toolset: &'a BundleSlug,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        Box::pin(async move {
            let app = self.handle.get()?;
            let found =
                app.store().catalog().toolset(tenant, toolset).await.map_err(|error| unavailable(&error))?;
            Ok(found.map(|toolset| toolset.package))
        })
    }
}

fn unavailable(error: &StoreError) -> CallError {
    CallError::new(ErrorCode::StoreUnavailable, error.to_string())
        .for_model("the packages of toolsets are unavailable")
}

/// Returns the skill in a package; the files that haft generated are no part of it.
fn skill_of(files: &PackageFiles) -> Option<Skill> {
    let read = skill_folder::read(files).ok()?.skill;
    let front_matter = skill_folder::front_matter(files.text(SKILL)?)?;
    let is_own = |path: &str| ![MANIFEST, SIGNATURE, RUNNER].contains(&path);
    let mut own: Vec<SkillFile> = files
        .iter()
        .filter(|(path, _)| is_own(path.as_str()))
        .map(|(path, file)| SkillFile {
            path: path.as_str().to_owned(),
            size: file.bytes.len() as u64,
            sha256: file.sha256(),
        })
        .collect();
    own.sort_by_key(|file| (file.path != SKILL, file.path.clone()));
    let (name, description, instructions) = (read.name, read.description, read.instructions);
    Some(Skill { name, description, front_matter, instructions, files: own })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_has_the_files_of_its_author() {
        let mut files = PackageFiles::new();
        let text = "---\nname: pdf\ndescription: Fills forms\nversion: 2\n---\n# Text\n";
        for (path, text) in [
            ("SKILL.md", text),
            ("README.md", "x"),
            ("toolset.yaml", "id: pdf\n"),
            (RUNNER, ""),
            ("references/a.md", "abc"),
        ] {
            files.put_text(path, text).unwrap();
        }
        let skill = skill_of(&files).unwrap();
        let paths: Vec<&str> = skill.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["SKILL.md", "README.md", "references/a.md"]);
        assert_eq!(skill.front_matter["version"], 2);
        assert_eq!(skill.instructions, "# Text");
        assert_eq!(skill.files[2].sha256, haft_core::hash::of_bytes(b"abc"));
        files.remove("SKILL.md");
        assert!(skill_of(&files).is_none());
    }
}
