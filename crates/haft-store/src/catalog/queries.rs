//! SQL statements of the catalog.

use std::collections::HashSet;

use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::catalog::UnreadableFile;
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};
use haft_core::spec::ToolSpec;
use haft_core::tool::Tool;
use haft_definition::folder::FileStamp;
use sqlx::{AssertSqlSafe, Row as _};

use super::session::Session;
use crate::rows;

type Result<T> = std::result::Result<T, sqlx::Error>;

/// The file of a tool, as the index stores it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolFile {
    pub(crate) path: Option<String>,
    pub(crate) stamp: Option<FileStamp>,
    /// The value of `enabled` in the file, if there is one.
    pub(crate) enabled: Option<bool>,
}

/// Returns the hash and the JSON of a revision.
pub(super) fn content(spec: &ToolSpec) -> Result<(String, String)> {
    let fail = |error: serde_json::Error| sqlx::Error::Encode(Box::new(error));
    Ok((haft_core::hash::of_value(spec).map_err(fail)?, serde_json::to_string(spec).map_err(fail)?))
}

/// Returns the content hash of a specification.
pub(crate) fn hash(spec: &ToolSpec) -> Result<String> {
    haft_core::hash::of_value(spec).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}

impl Session<'_> {
    pub(crate) async fn find_bundle(&mut self, id: BundleId) -> Result<Option<Bundle>> {
        let sql = AssertSqlSafe(format!("{} WHERE id = $1", rows::BUNDLE));
        let row = sqlx::query(sql).bind(id.to_string()).fetch_optional(&mut *self.tx).await?;
        row.as_ref().map(rows::bundle).transpose()
    }

    pub(crate) async fn bundle_by_slug(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
    ) -> Result<Option<Bundle>> {
        let sql = AssertSqlSafe(format!("{} WHERE tenant = $1 AND slug = $2", rows::BUNDLE));
        let row =
            sqlx::query(sql).bind(tenant.as_str()).bind(slug.as_str()).fetch_optional(&mut *self.tx).await?;
        row.as_ref().map(rows::bundle).transpose()
    }

    /// Inserts or updates a bundle.
    pub(crate) async fn save_bundle(&mut self, bundle: &Bundle) -> Result<()> {
        sqlx::query(
            "INSERT INTO bundles (id, tenant, slug, display_name, description, enabled, kind, created_at, \
             modified_at, soft_deleted_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (id) DO UPDATE SET display_name = excluded.display_name, \
             description = excluded.description, enabled = excluded.enabled, \
             created_at = excluded.created_at, modified_at = excluded.modified_at, \
             soft_deleted_at = excluded.soft_deleted_at",
        )
        .bind(bundle.id.to_string())
        .bind(bundle.tenant.as_str())
        .bind(bundle.slug.as_str())
        .bind(&bundle.display_name)
        .bind(&bundle.description)
        .bind(i64::from(bundle.enabled))
        .bind(bundle.kind.as_str())
        .bind(bundle.created_at.as_microsecond())
        .bind(bundle.modified_at.as_microsecond())
        .bind(bundle.soft_deleted_at.map(Timestamp::as_microsecond))
        .execute(&mut *self.tx)
        .await?;
        self.mark_bundle_changed(bundle.id);
        Ok(())
    }

    pub(crate) async fn set_bundle_stamp(&mut self, id: BundleId, stamp: Option<&FileStamp>) -> Result<()> {
        sqlx::query("UPDATE bundles SET stamp = $1 WHERE id = $2")
            .bind(stamp.map(|stamp| stamp.as_str().to_owned()))
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    pub(crate) async fn remove_bundle(&mut self, id: BundleId) -> Result<()> {
        let id_text = id.to_string();
        sqlx::query("DELETE FROM tools WHERE bundle_id = $1 AND gone_at IS NOT NULL")
            .bind(&id_text)
            .execute(&mut *self.tx)
            .await?;
        sqlx::query("DELETE FROM bundles WHERE id = $1").bind(id_text).execute(&mut *self.tx).await?;
        self.mark_bundle_changed(id);
        Ok(())
    }

    /// Counts the tools and unreadable definition files of a bundle.
    pub(crate) async fn count_content(&mut self, bundle: &Bundle) -> Result<i64> {
        self.flush_inserts().await?;
        let row = sqlx::query(
            "SELECT (SELECT COUNT(*) FROM tools WHERE bundle_id = $1 AND gone_at IS NULL) + \
             (SELECT COUNT(*) FROM unreadable \
              WHERE tenant = $2 AND bundle = $3 AND path NOT LIKE '%/bundle.yaml')",
        )
        .bind(bundle.id.to_string())
        .bind(bundle.tenant.as_str())
        .bind(bundle.slug.as_str())
        .fetch_one(&mut *self.tx)
        .await?;
        row.try_get(0)
    }

    pub(crate) async fn find_tool(&mut self, id: ToolId) -> Result<Option<Tool>> {
        self.flush_inserts().await?;
        let sql = AssertSqlSafe(format!("{} WHERE t.id = $1", rows::TOOL));
        let row = sqlx::query(sql).bind(id.to_string()).fetch_optional(&mut *self.tx).await?;
        row.as_ref().map(rows::tool).transpose()
    }

    /// Finds a tool by bundle, name and version.
    pub(crate) async fn tool_by_key(
        &mut self,
        bundle: BundleId,
        name: &ToolName,
        version: &Version,
    ) -> Result<Option<Tool>> {
        self.flush_inserts().await?;
        let sql = AssertSqlSafe(format!(
            "{} WHERE t.bundle_id = $1 AND t.name = $2 AND t.version = $3",
            rows::TOOL
        ));
        let row = sqlx::query(sql)
            .bind(bundle.to_string())
            .bind(name.as_str())
            .bind(version.as_str())
            .fetch_optional(&mut *self.tx)
            .await?;
        row.as_ref().map(rows::tool).transpose()
    }

    /// Finds an unreadable file.
    pub(crate) async fn unreadable(&mut self, path: &str) -> Result<Option<UnreadableFile>> {
        let sql = AssertSqlSafe(format!("{} WHERE path = $1", rows::UNREADABLE));
        let row = sqlx::query(sql).bind(path).fetch_optional(&mut *self.tx).await?;
        row.as_ref().map(rows::unreadable).transpose()
    }

    /// Returns bundle, name and version of all tools, including hidden ones.
    pub(crate) async fn stored_keys(&mut self) -> Result<HashSet<(String, String, String)>> {
        let rows = sqlx::query("SELECT bundle_id, name, version FROM tools").fetch_all(&mut *self.tx).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
    }

    /// Appends a revision.
    pub(crate) async fn append_revision(
        &mut self,
        tool: &Tool,
        spec: &ToolSpec,
        now: Timestamp,
    ) -> Result<()> {
        let number = i64::from(tool.revision) + 1;
        if tool.spec.version != spec.version || tool.spec.name != spec.name {
            self.delete_missing(tool.bundle_id, &spec.name, &spec.version).await?;
        }
        self.insert_revision(tool.id, number, spec, now).await?;
        sqlx::query(
            "UPDATE tools SET name = $1, version = $2, revision = $3, modified_at = $4, modified_by = $5 \
             WHERE id = $6",
        )
        .bind(spec.name.as_str())
        .bind(spec.version.as_str())
        .bind(number)
        .bind(now.as_microsecond())
        .bind(self.actor.as_deref())
        .bind(tool.id.to_string())
        .execute(&mut *self.tx)
        .await?;
        self.mark_tool_changed(tool.id);
        Ok(())
    }

    async fn insert_revision(
        &mut self,
        id: ToolId,
        number: i64,
        spec: &ToolSpec,
        at: Timestamp,
    ) -> Result<()> {
        let (hash, text) = content(spec)?;
        sqlx::query(
            "INSERT INTO revisions (tool_id, number, hash, spec, created_at, created_by) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(id.to_string())
        .bind(number)
        .bind(hash)
        .bind(text)
        .bind(at.as_microsecond())
        .bind(self.actor.as_deref())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Stores the file of a tool, which is known to be valid.
    pub(crate) async fn set_tool_file(&mut self, id: ToolId, file: &ToolFile) -> Result<()> {
        sqlx::query("UPDATE tools SET path = $1, stamp = $2, file_enabled = $3, fault = NULL WHERE id = $4")
            .bind(file.path.as_deref())
            .bind(file.stamp.as_ref().map(|stamp| stamp.as_str().to_owned()))
            .bind(file.enabled.map(i64::from))
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    pub(crate) async fn set_fault(&mut self, id: ToolId, fault: &str, stamp: &FileStamp) -> Result<()> {
        sqlx::query("UPDATE tools SET fault = $1, stamp = $2 WHERE id = $3")
            .bind(fault)
            .bind(stamp.as_str())
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    pub(crate) async fn set_enabled(&mut self, id: ToolId, enabled: bool) -> Result<()> {
        sqlx::query("UPDATE tools SET enabled = $1 WHERE id = $2")
            .bind(i64::from(enabled))
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.mark_tool_changed(id);
        Ok(())
    }

    /// Returns the value of `enabled` in the file when it was last read.
    pub(crate) async fn file_enabled(&mut self, id: ToolId) -> Result<Option<bool>> {
        let row = sqlx::query("SELECT file_enabled FROM tools WHERE id = $1")
            .bind(id.to_string())
            .fetch_one(&mut *self.tx)
            .await?;
        Ok(row.try_get::<Option<i64>, _>(0)?.map(|value| value != 0))
    }

    pub(crate) async fn remove_tool(&mut self, id: ToolId) -> Result<()> {
        sqlx::query("DELETE FROM revisions WHERE tool_id = $1")
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        sqlx::query("DELETE FROM tools WHERE id = $1").bind(id.to_string()).execute(&mut *self.tx).await?;
        self.mark_tool_changed(id);
        Ok(())
    }
}
