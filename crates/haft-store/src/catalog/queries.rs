//! The statements of the catalog.

use std::collections::HashSet;

use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::catalog::UnreadableFile;
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName, Version};
use haft_core::spec::ToolSpec;
use haft_core::tool::Tool;
use sqlx::{AssertSqlSafe, Row as _};

use crate::files::stamp::Stamp;
use crate::rows;
use crate::session::Session;

type Result<T> = std::result::Result<T, sqlx::Error>;

/// A tool's file as the index knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filed {
    pub(crate) path: Option<String>,
    pub(crate) stamp: Option<Stamp>,
    /// What the file says of `enabled`, where it says it.
    pub(crate) enabled: Option<bool>,
}

/// Turns a specification to the hash and the text of its revision.
pub(super) fn content(spec: &ToolSpec) -> Result<(String, String)> {
    let fail = |error: serde_json::Error| sqlx::Error::Encode(Box::new(error));
    Ok((haft_core::hash::of_value(spec).map_err(fail)?, serde_json::to_string(spec).map_err(fail)?))
}

/// Returns the hash of a specification's content.
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

    /// Inserts a bundle, or makes the stored one equal.
    pub(crate) async fn save_bundle(&mut self, bundle: &Bundle) -> Result<()> {
        sqlx::query(
            "INSERT INTO bundles (id, tenant, slug, display_name, description, enabled, built_in, created_at, \
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
        .bind(i64::from(bundle.built_in))
        .bind(bundle.created_at.as_microsecond())
        .bind(bundle.modified_at.as_microsecond())
        .bind(bundle.soft_deleted_at.map(Timestamp::as_microsecond))
        .execute(&mut *self.tx)
        .await?;
        self.touch_bundle(bundle.id);
        Ok(())
    }

    pub(crate) async fn set_bundle_stamp(&mut self, id: BundleId, stamp: Option<&Stamp>) -> Result<()> {
        sqlx::query("UPDATE bundles SET stamp = $1 WHERE id = $2")
            .bind(stamp.map(|stamp| stamp.0.clone()))
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
        self.touch_bundle(id);
        Ok(())
    }

    /// Counts what a bundle holds: tools, and files that cannot be read but for its own `bundle.yaml`.
    pub(crate) async fn count_in(&mut self, bundle: &Bundle) -> Result<i64> {
        self.insert_waiting().await?;
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
        self.insert_waiting().await?;
        let sql = AssertSqlSafe(format!("{} WHERE t.id = $1", rows::TOOL));
        let row = sqlx::query(sql).bind(id.to_string()).fetch_optional(&mut *self.tx).await?;
        row.as_ref().map(rows::tool).transpose()
    }

    /// Finds the tool of a `<bundle, name, version>`.
    pub(crate) async fn tool_by_pair(
        &mut self,
        bundle: BundleId,
        name: &ToolName,
        version: &Version,
    ) -> Result<Option<Tool>> {
        self.insert_waiting().await?;
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

    /// Finds a file that cannot be read.
    pub(crate) async fn unreadable(&mut self, path: &str) -> Result<Option<UnreadableFile>> {
        let sql = AssertSqlSafe(format!("{} WHERE path = $1", rows::UNREADABLE));
        let row = sqlx::query(sql).bind(path).fetch_optional(&mut *self.tx).await?;
        row.as_ref().map(rows::unreadable).transpose()
    }

    /// Returns every `<bundle, name, version>` that is stored, those included whose file is gone.
    pub(crate) async fn stored_pairs(&mut self) -> Result<HashSet<(String, String, String)>> {
        let rows = sqlx::query("SELECT bundle_id, name, version FROM tools").fetch_all(&mut *self.tx).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
    }

    /// Appends a revision and makes it the newest.
    pub(crate) async fn append_revision(
        &mut self,
        tool: &Tool,
        spec: &ToolSpec,
        now: Timestamp,
    ) -> Result<()> {
        let number = i64::from(tool.revision) + 1;
        if tool.spec.version != spec.version || tool.spec.name != spec.name {
            self.forget_gone(tool.bundle_id, &spec.name, &spec.version).await?;
        }
        self.insert_revision(tool.id, number, spec, now).await?;
        sqlx::query(
            "UPDATE tools SET name = $1, version = $2, revision = $3, modified_at = $4 WHERE id = $5",
        )
        .bind(spec.name.as_str())
        .bind(spec.version.as_str())
        .bind(number)
        .bind(now.as_microsecond())
        .bind(tool.id.to_string())
        .execute(&mut *self.tx)
        .await?;
        self.touch_tool(tool.id);
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
            "INSERT INTO revisions (tool_id, number, hash, spec, created_at) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(id.to_string())
        .bind(number)
        .bind(hash)
        .bind(text)
        .bind(at.as_microsecond())
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Says where a tool's file is; a file that is named here parses.
    pub(crate) async fn file_tool(&mut self, id: ToolId, filed: &Filed) -> Result<()> {
        sqlx::query("UPDATE tools SET path = $1, stamp = $2, file_enabled = $3, fault = NULL WHERE id = $4")
            .bind(filed.path.as_deref())
            .bind(filed.stamp.as_ref().map(|stamp| stamp.0.clone()))
            .bind(filed.enabled.map(i64::from))
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    pub(crate) async fn set_fault(&mut self, id: ToolId, fault: &str, stamp: &Stamp) -> Result<()> {
        sqlx::query("UPDATE tools SET fault = $1, stamp = $2 WHERE id = $3")
            .bind(fault)
            .bind(&stamp.0)
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
        self.touch_tool(id);
        Ok(())
    }

    /// Returns what the file of a tool said of `enabled` when it was last read.
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
        self.touch_tool(id);
        Ok(())
    }
}
