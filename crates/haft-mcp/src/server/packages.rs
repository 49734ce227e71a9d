//! What the packages of toolsets contain besides tools: Agent Skills and pages.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::CallError;
use rmcp::ErrorData;
use serde_json::Value;

/// Reads the packages that toolsets were installed from.
///
/// The server asks only for packages of tools that the client sees.
pub trait PackageSource: Send + Sync {
    /// Returns the skill in a tenant's package, or `None` if the package has no skill.
    fn skill<'a>(
        &'a self,
        tenant: &'a TenantId,
        package: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<Skill>>, CallError>>;

    /// Reads a file from a tenant's package; `None` if it does not exist.
    fn file<'a>(
        &'a self,
        tenant: &'a TenantId,
        package: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, CallError>>;

    /// Returns the package that a toolset has now; `None` if there is no such toolset.
    fn current<'a>(
        &'a self,
        tenant: &'a TenantId,
        toolset: &'a BundleSlug,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>>;
}

/// An Agent Skill in a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// The name, as its author wrote it.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The front matter of `SKILL.md`.
    pub front_matter: Value,
    /// The text for the model.
    pub instructions: String,
    /// The files of the skill, `SKILL.md` among them.
    pub files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// The path in the folder of the skill.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 digest in hexadecimal digits.
    pub sha256: String,
}

/// Converts the error of a source into that of a request.
pub(super) fn protocol_error(error: &CallError) -> ErrorData {
    tracing::warn!(error = error.message, "cannot read the package of a toolset");
    ErrorData::internal_error("the package of a toolset is unavailable; retry later", None)
}
