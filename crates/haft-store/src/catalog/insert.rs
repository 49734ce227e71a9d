//! New tools, entered one by one or many with one statement.

use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::id::ToolId;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status};
use sqlx::AssertSqlSafe;

use super::queries::{Filed, content};
use crate::session::Session;

type Result<T> = std::result::Result<T, sqlx::Error>;

/// How many tools one statement enters: enough to spread its cost, few enough to keep its text short.
const AT_ONCE: usize = 100;
const TOOL: &str = "INSERT INTO tools (id, tenant, bundle_id, name, version, revision, published_revision, status, \
    enabled, built_in, source, path, stamp, file_enabled, call_count, created_at, modified_at, published_at) VALUES";
const TOOL_COLUMNS: usize = 18;
const REVISION: &str = "INSERT INTO revisions (tool_id, number, hash, spec, created_at) VALUES";
const REVISION_COLUMNS: usize = 5;

/// A tool to insert.
pub(crate) struct Fresh<'a> {
    pub(crate) id: ToolId,
    pub(crate) bundle: &'a Bundle,
    pub(crate) spec: &'a ToolSpec,
    pub(crate) status: Status,
    pub(crate) enabled: bool,
    pub(crate) source: Source,
    pub(crate) filed: Filed,
    pub(crate) at: Timestamp,
}

/// A tool that waits to be inserted with others.
pub(crate) struct Waiting {
    id: String,
    tenant: String,
    bundle: String,
    name: String,
    version: String,
    status: Status,
    enabled: bool,
    source: Source,
    filed: Filed,
    at: i64,
    hash: String,
    spec: String,
}

impl Waiting {
    fn new(tool: Fresh<'_>) -> Result<Self> {
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
            filed: tool.filed,
            at: tool.at.as_microsecond(),
            hash,
            spec,
        })
    }
}

impl Session<'_> {
    /// Inserts a tool and its first revision.
    pub(crate) async fn insert_tool(&mut self, tool: Fresh<'_>) -> Result<()> {
        self.insert_later(tool)?;
        self.insert_waiting().await
    }

    /// Inserts a tool together with others, before any is looked for and at the latest when the change is done.
    pub(crate) fn insert_later(&mut self, tool: Fresh<'_>) -> Result<()> {
        self.touch_tool(tool.id);
        self.waiting.push(Waiting::new(tool)?);
        Ok(())
    }

    /// Inserts all that wait.
    pub(crate) async fn insert_waiting(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        for tools in waiting.chunks(AT_ONCE) {
            self.insert_tools(tools).await?;
        }
        Ok(())
    }

    async fn insert_tools(&mut self, tools: &[Waiting]) -> Result<()> {
        let engine = &self.inner.engine;
        let sql = format!("{TOOL} {}", engine.placeholders(tools.len(), TOOL_COLUMNS));
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
                .bind(tool.filed.path.as_deref())
                .bind(tool.filed.stamp.as_ref().map(|stamp| stamp.0.as_str()))
                .bind(tool.filed.enabled.map(i64::from))
                .bind(0_i64)
                .bind(tool.at)
                .bind(tool.at)
                .bind(published.then_some(tool.at));
        }
        query.execute(&mut *self.tx).await?;
        let sql = format!("{REVISION} {}", engine.placeholders(tools.len(), REVISION_COLUMNS));
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for tool in tools {
            query = query.bind(&tool.id).bind(1_i64).bind(&tool.hash).bind(&tool.spec).bind(tool.at);
        }
        query.execute(&mut *self.tx).await?;
        Ok(())
    }
}
