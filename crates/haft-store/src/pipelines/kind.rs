//! Pipelines as a kind of resource, with their documents.

use std::path::Path;

use haft_core::Timestamp;
use haft_core::live::ObjectEvent;
use haft_core::problem::Problem;
use haft_core::resource::Resource;
use haft_core::retrieval::PipelineDefinition;
use haft_definition::pipeline;
use sqlx::{Any, Transaction};

use super::api::{definition_changed, remove_documents};
use crate::files::definition::unread_status;
use crate::resources::{FileDefinitions, StoredKind};
use crate::settings::Retention;

impl StoredKind for PipelineDefinition {
    fn read_file(_path: &Path, stem: &str, text: &str) -> Result<FileDefinitions<Self>, Vec<Problem>> {
        let mut read = pipeline::read(text, stem)?;
        read.warnings.extend(unread_status(read.status));
        Ok((vec![read.definition], read.warnings))
    }

    fn kept_revisions(retention: &Retention) -> u32 {
        retention.pipeline_revisions
    }

    fn changed(
        tx: &mut Transaction<'static, Any>,
        before: Option<&Resource<Self>>,
        after: Option<&Resource<Self>>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<ObjectEvent>, sqlx::Error>> + Send {
        definition_changed(tx, before, after, now)
    }

    fn remove_part(
        tx: &mut Transaction<'static, Any>,
        id: Self::Id,
    ) -> impl Future<Output = Result<bool, sqlx::Error>> + Send {
        remove_documents(tx, id)
    }
}
