//! What the kinds of resources add to the store.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use haft_core::Timestamp;
use haft_core::agent::AgentDefinition;
use haft_core::artifact::{ArtifactDefinition, MAX_SOURCE};
use haft_core::live::ObjectEvent;
use haft_core::problem::Problem;
use haft_core::resource::{Resource, ResourceSpec};
use haft_core::tool::Status;
use haft_definition::{agent, code_artifact};
use sqlx::{Any, Transaction};

use crate::files::definition::unread_status;
use crate::settings::Retention;

/// The definitions of a file, and the warnings about them.
pub type FileDefinitions<S> = (Vec<S>, Vec<Problem>);

/// A kind of resource that the store has.
pub trait StoredKind: ResourceSpec {
    /// Whether a file may refer to files beside it.
    #[doc(hidden)]
    const READS_FILES_BESIDE: bool = false;

    /// Reads the definitions of a file in the folder of the kind. `path` is absolute, `stem` the name without its ending.
    #[doc(hidden)]
    fn read_file(path: &Path, stem: &str, text: &str) -> Result<FileDefinitions<Self>, Vec<Problem>>;

    /// Returns how many revisions of one resource are kept; 0 keeps all.
    #[doc(hidden)]
    fn kept_revisions(retention: &Retention) -> u32;

    /// Brings what depends on a resource to its new state, in the transaction of the change. `before` is `None` if the
    /// resource is new or visible again, `after` is `None` if it is deleted. Returns what else is reported.
    #[doc(hidden)]
    fn changed(
        _tx: &mut Transaction<'static, Any>,
        _before: Option<&Resource<Self>>,
        _after: Option<&Resource<Self>>,
        _now: Timestamp,
    ) -> impl Future<Output = Result<Option<ObjectEvent>, sqlx::Error>> + Send {
        std::future::ready(Ok(None))
    }

    /// Removes a part of what depends on a deleted resource, before the resource itself is removed. Returns whether there
    /// may be more.
    #[doc(hidden)]
    fn remove_part(
        _tx: &mut Transaction<'static, Any>,
        _id: Self::Id,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send {
        std::future::ready(Ok(false))
    }
}

impl StoredKind for AgentDefinition {
    fn read_file(_path: &Path, stem: &str, text: &str) -> Result<FileDefinitions<Self>, Vec<Problem>> {
        let (mut definitions, mut warnings) = (Vec::new(), Vec::new());
        for read in agent::read(text, stem)? {
            definitions.push(read.definition);
            warnings.extend(read.warnings);
        }
        // The reader of agents ignores `status`, so its line is read from the text.
        let status = text.lines().find_map(|line| line.strip_prefix("status:"));
        let status = status.and_then(|status| Status::parse(status.trim().trim_matches(['"', '\''])));
        warnings.extend(unread_status(status));
        Ok((definitions, warnings))
    }

    fn kept_revisions(retention: &Retention) -> u32 {
        retention.agent_revisions
    }
}

impl StoredKind for ArtifactDefinition {
    const READS_FILES_BESIDE: bool = true;

    fn read_file(path: &Path, stem: &str, text: &str) -> Result<FileDefinitions<Self>, Vec<Problem>> {
        let beside = |name: &str| read_sibling(path, name).map(Cow::Owned);
        let mut read = code_artifact::read(text, stem, beside)?;
        read.warnings.extend(unread_status(read.status));
        let definition = Self { slug: read.slug, content: read.content.into() };
        Ok((vec![definition], read.warnings))
    }

    fn kept_revisions(retention: &Retention) -> u32 {
        retention.artifact_versions
    }
}

/// Reads a file beside another one, up to one byte more than a source may have.
fn read_sibling(path: &Path, name: &str) -> Option<Vec<u8>> {
    let file = path.with_file_name(name);
    if !std::fs::symlink_metadata(&file).ok()?.is_file() {
        return None;
    }
    let limit = u64::try_from(MAX_SOURCE).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
