//! Inserting new tools, many with one statement.

use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::id::ToolId;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status};
use sqlx::AssertSqlSafe;

use super::queries::{ToolFile, content};
use super::session::Session;

type Result<T> = std::result::Result<T, sqlx::Error>;

/// Tools per statement: enough to spread its cost, few enough to keep its text short.
const TOOLS_PER_STATEMENT: usize = 100;
const INSERT_TOOLS: &str = "INSERT INTO tools (id, tenant, bundle_id, name, version, revision, published_revision, status, \
    enabled, built_in, source, path, stamp, file_enabled, call_count, created_at, modified_at, published_at, \
    created_by, modified_by) VALUES";
const TOOL_COLUMNS: usize = 20;
const INSERT_REVISIONS: &str =
    "INSERT INTO revisions (tool_id, number, hash, spec, created_at, created_by) VALUES";
const REVISION_COLUMNS: usize = 6;

/// A tool to insert.
pub(crate) struct ToolInsert<'a> {
    pub(crate) id: ToolId,
    pub(crate) bundle: &'a Bundle,
    pub(crate) spec: &'a ToolSpec,
    pub(crate) status: Status,
    pub(crate) enabled: bool,
    pub(crate) source: Source,
    pub(crate) file: ToolFile,
    pub(crate) at: Timestamp,
}

/// A tool that is inserted together with others.
pub(crate) struct PendingInsert {
    id: String,
    tenant: String,
    bundle: String,
    name: String,
    version: String,
    status: Status,
    enabled: bool,
    source: Source,
    file: ToolFile,
    at: i64,
    hash: String,
    spec: String,
}

impl PendingInsert {
    fn new(tool: ToolInsert<'_>) -> Result<Self> {
        let (hash, spec) = content(tool.spec)?;
        Ok(Self {
            id: tool.id.to_string(),
            tenant: tool.bundle.tenant.to_string(),
            bundle: tool.bundle.id.to_string(),
            name: tool.spec.name.to_string(),
            version: tool.spec.version.to_string(),
            status: tool.status,
            enabled: tool.enabled,
            source: tool.source,
            file: tool.file,
            at: tool.at.as_microsecond(),
            hash,
            spec,
        })
    }
}

impl Session<'_> {
    /// Inserts a tool and its first revision.
    pub(crate) async fn insert_tool(&mut self, tool: ToolInsert<'_>) -> Result<()> {
        self.queue_insert(tool)?;
        self.flush_inserts().await
    }

    /// Queues a tool for insertion: before the next query, and at the latest when the session finishes.
    pub(crate) fn queue_insert(&mut self, tool: ToolInsert<'_>) -> Result<()> {
        self.mark_tool_changed(tool.id);
        self.pending_inserts.push(PendingInsert::new(tool)?);
        Ok(())
    }

    /// Inserts all queued tools.
    pub(crate) async fn flush_inserts(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending_inserts);
        for tools in pending.chunks(TOOLS_PER_STATEMENT) {
            self.insert_tools(tools).await?;
        }
        Ok(())
    }

    async fn insert_tools(&mut self, tools: &[PendingInsert]) -> Result<()> {
        let (engine, actor) = (&self.db.engine, self.actor.as_deref());
        let sql = format!("{INSERT_TOOLS} {}", engine.placeholders(tools.len(), TOOL_COLUMNS));
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for tool in tools {
            let published = tool.status == Status::Published;
            query = query
                .bind(&tool.id)
                .bind(&tool.tenant)
                .bind(&tool.bundle)
                .bind(&tool.name)
                .bind(&tool.version)
                .bind(1_i64)
                .bind(published.then_some(1_i64))
                .bind(tool.status.as_str())
                .bind(i64::from(tool.enabled))
                .bind(i64::from(tool.source == Source::BuiltIn))
                .bind(tool.source.as_str())
                .bind(tool.file.path.as_deref())
                .bind(tool.file.stamp.as_ref().map(haft_definition::folder::FileStamp::as_str))
                .bind(tool.file.enabled.map(i64::from))
                .bind(0_i64)
                .bind(tool.at)
                .bind(tool.at)
                .bind(published.then_some(tool.at))
                .bind(actor)
                .bind(actor);
        }
        query.execute(&mut *self.tx).await?;
        let sql = format!("{INSERT_REVISIONS} {}", engine.placeholders(tools.len(), REVISION_COLUMNS));
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for tool in tools {
            query =
                query.bind(&tool.id).bind(1_i64).bind(&tool.hash).bind(&tool.spec).bind(tool.at).bind(actor);
        }
        query.execute(&mut *self.tx).await?;
        Ok(())
    }
}
