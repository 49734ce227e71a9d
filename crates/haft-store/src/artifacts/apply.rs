//! Artifacts as part of one change of many things.

use haft_core::catalog::StoreError;
use haft_core::id::ArtifactId;
use haft_core::live::ObjectAction;
use haft_core::name::{ArtifactSlug, TenantId};

use super::api::{NewArtifact, delete_in, event_of, heads_in};
use crate::engine::failed_to;
use crate::session::Session;

const APPLY: &str = "apply the artifacts";

/// An artifact without its source, which can be large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactHead {
    /// Its id.
    pub id: ArtifactId,
    /// Its slug.
    pub slug: ArtifactSlug,
    /// The number of the newest version.
    pub version: u32,
    /// The hash of that version's content.
    pub hash: String,
}

/// One change of an artifact.
#[derive(Debug, Clone)]
pub enum ArtifactChange {
    /// A new artifact.
    Create(NewArtifact),
    /// A new version; the slug stays.
    Update {
        /// The artifact.
        id: ArtifactId,
        /// The version.
        new: NewArtifact,
    },
    /// An artifact to delete with its versions.
    Delete {
        /// The artifact.
        id: ArtifactId,
    },
}

impl Session<'_> {
    /// Returns the artifacts of a tenant, by slug.
    pub(crate) async fn artifacts_of(&mut self, tenant: &TenantId) -> Result<Vec<ArtifactHead>, sqlx::Error> {
        heads_in(&mut self.tx, tenant).await
    }

    /// Applies one change of an artifact.
    pub(crate) async fn apply_artifact(
        &mut self,
        tenant: &TenantId,
        change: ArtifactChange,
    ) -> Result<(), StoreError> {
        self.touch_references();
        let (inner, tx) = (self.inner, &mut self.tx);
        let event = match change {
            ArtifactChange::Create(new) => {
                let created = inner.create_artifact_in(tx, tenant, new).await?;
                Some(event_of(&created, ObjectAction::Created))
            }
            ArtifactChange::Update { id, new } => {
                let updated = inner.update_artifact_in(tx, tenant, id, new).await?;
                let updated = updated.ok_or_else(|| StoreError::not_found("artifact", id))?;
                Some(event_of(&updated, ObjectAction::Updated))
            }
            ArtifactChange::Delete { id } => delete_in(tx, tenant, id).await.map_err(failed_to(APPLY))?,
        };
        if let Some(event) = event {
            self.report_later(tenant, event);
        }
        Ok(())
    }
}
