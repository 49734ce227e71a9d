//! Removes old revisions of resources.

use std::collections::HashSet;

use haft_core::catalog::StoreError;
use haft_core::resource::ResourceKind;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::StoredKind;
use crate::database::Database;
use crate::engine::failed_to;
use crate::rows;

/// How many resources are read at once.
const RESOURCES_PER_QUERY: u32 = 500;

/// Resources of a kind with more revisions than are kept: which, newest number, published number.
pub(crate) const GROWN_RESOURCES: &str = "SELECT id, tenant, slug, revision AS newest, COALESCE(published_revision, 0) AS kept \
    FROM resources WHERE revision > $1 AND id > $2 AND kind = $3 ORDER BY id LIMIT $4";
/// The revisions of a resource after a number, up to another, except one.
pub(crate) const SURPLUS_REVISIONS: &str = "SELECT number FROM resource_revisions WHERE resource_id = $1 \
    AND number > $2 AND number <= $3 AND number <> $4 ORDER BY number LIMIT $5";
/// The definitions of tools, all revisions, that pin a version of a code artifact.
pub(crate) const PINNING_TOOLS: &str = "SELECT r.spec FROM tools t JOIN revisions r ON r.tool_id = t.id \
    WHERE t.tenant = $1 AND r.spec LIKE '%\"artifact_version\"%'";

impl Database {
    /// Removes revisions of a kind beyond the number that is kept. The newest and the published one stay.
    pub(crate) async fn reap_revisions<S: StoredKind>(&self) -> Result<(), StoreError> {
        let action = format!("remove old revisions of {}", S::KIND.plural());
        self.reap_revisions_of(S::KIND, S::kept_revisions(&self.retention)).await.map_err(failed_to(&action))
    }

    async fn reap_revisions_of(&self, kind: ResourceKind, keep: u32) -> Result<(), sqlx::Error> {
        if keep == 0 {
            return Ok(());
        }
        let mut last = String::new();
        loop {
            let grown = sqlx::query(GROWN_RESOURCES).bind(i64::from(keep)).bind(&last).bind(kind.as_str());
            let grown = grown.bind(i64::from(RESOURCES_PER_QUERY)).fetch_all(&self.engine.pool).await?;
            for row in &grown {
                last = row.try_get("id")?;
                self.reap_revisions_of_one(kind, row, keep).await?;
            }
            if grown.len() < RESOURCES_PER_QUERY as usize {
                return Ok(());
            }
        }
    }

    async fn reap_revisions_of_one(
        &self,
        kind: ResourceKind,
        resource: &AnyRow,
        keep: u32,
    ) -> Result<(), sqlx::Error> {
        let id: &str = resource.try_get("id")?;
        let end = resource.try_get::<i64, _>("newest")? - i64::from(keep);
        let published: i64 = resource.try_get("kept")?;
        let (mut last, mut pinned) = (0_i64, None);
        loop {
            let query = sqlx::query(SURPLUS_REVISIONS).bind(id).bind(last).bind(end).bind(published);
            let found = query.bind(i64::from(RESOURCES_PER_QUERY)).fetch_all(&self.engine.pool).await?;
            if pinned.is_none() && !found.is_empty() {
                pinned = Some(match kind {
                    ResourceKind::CodeArtifact => self.pinned_versions(resource).await?,
                    ResourceKind::Agent | ResourceKind::Pipeline => HashSet::new(),
                });
            }
            for row in &found {
                last = row.try_get(0)?;
                if pinned.as_ref().is_some_and(|pinned| pinned.contains(&last)) {
                    continue;
                }
                let sql = "DELETE FROM resource_revisions WHERE resource_id = $1 AND number = $2";
                sqlx::query(sql).bind(id).bind(last).execute(&self.engine.pool).await?;
            }
            if found.len() < RESOURCES_PER_QUERY as usize {
                return Ok(());
            }
        }
    }

    /// Returns the versions of a code artifact that tools of its tenant pin, in any revision that can be restored.
    async fn pinned_versions(&self, artifact: &AnyRow) -> Result<HashSet<i64>, sqlx::Error> {
        let names = [artifact.try_get::<&str, _>("id")?, artifact.try_get("slug")?];
        let query = sqlx::query(PINNING_TOOLS).bind(artifact.try_get::<&str, _>("tenant")?);
        let mut pinned = HashSet::new();
        for row in query.fetch_all(&self.engine.pool).await? {
            let spec: Value = rows::json_column(&row, "spec")?;
            collect_pinned(&spec, names, &mut pinned);
        }
        Ok(pinned)
    }
}

/// Collects the versions that references in a definition pin of an artifact, by its id or slug.
fn collect_pinned(definition: &Value, names: [&str; 2], pinned: &mut HashSet<i64>) {
    match definition {
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str);
            if let (Some(name), Some(version)) = (text("artifact_id"), text("artifact_version"))
                && names.contains(&name)
            {
                pinned.extend(version.parse::<i64>());
            }
            fields.values().for_each(|value| collect_pinned(value, names, pinned));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_pinned(value, names, pinned)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
