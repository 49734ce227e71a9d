//! MCP servers and their tools.

use std::collections::HashMap;

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::StoreError;
use haft_core::finding::Finding;
use haft_core::id::{BundleId, ToolId};
use haft_core::mcp::McpServer;
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool};
use haft_definition::mcp_import::ImportedTool;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};

use super::insert::ToolInsert;
use super::mcp_review::fault_of;
use super::queries::ToolFile;
use super::session::Session;
use super::state::{Catalog, CatalogState};
use crate::accounts::forget_provider;
use crate::engine::failed_to;
use crate::limits;
use crate::list_page::ListPage;
use crate::rows;
use crate::time;
use crate::vault::refresh;

const STORE: &str = "store the MCP server";
const TOOLS: &str = "store the tools of an MCP server";
const UNLISTED: &str = "the MCP server no longer lists this tool";
const CHANGED: &str = "the MCP server changed this tool; review and accept the change";
const REJECTED: &str = "the MCP server changed this tool, and the change was rejected";

pub(super) const NEW: &str = "a new tool of a reviewed MCP server; review and accept it";

const CHANGES_TOO_OFTEN: &str =
    "the MCP server changed this tool too often for automatic acceptance; review and accept the change";

/// How many changes of one tool are accepted automatically within [`AUTO_ACCEPT_WINDOW`].
const MAX_AUTO_ACCEPTED: i64 = 10;
const AUTO_ACCEPT_WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// A new or changed tool that waits for approval.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingToolChange {
    /// The tool with its accepted definition.
    pub tool: Tool,
    /// The definition that the server lists now.
    pub offered: ToolSpec,
    /// Whether this definition was rejected.
    pub rejected: bool,
    /// Whether no definition of the tool was ever accepted.
    pub is_new: bool,
    /// What the scan found in the definition that the server lists now.
    pub findings: Vec<Finding>,
}

impl Catalog {
    /// Returns all configured servers.
    pub async fn mcp_servers(&self) -> Result<Vec<McpServer>, StoreError> {
        let rows = sqlx::query("SELECT body FROM mcp_servers ORDER BY tenant, id")
            .fetch_all(&self.state.db.engine.pool)
            .await
            .map_err(failed_to("read the MCP servers"))?;
        let read = |row| serde_json::from_str(sqlx::Row::try_get(row, 0)?).map_err(decode);
        rows.iter().map(read).collect::<Result<_, _>>().map_err(failed_to("read the MCP servers"))
    }

    /// Returns the number of servers of a tenant.
    pub async fn mcp_server_count(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let query = sqlx::query("SELECT COUNT(*) FROM mcp_servers WHERE tenant = $1").bind(tenant.as_str());
        let counted = query.fetch_one(&self.state.db.engine.pool).await;
        let count: Result<i64, sqlx::Error> = counted.and_then(|row| sqlx::Row::try_get(&row, 0));
        count.map(i64::unsigned_abs).map_err(failed_to("read the MCP servers"))
    }

    /// Lists servers of a tenant by id.
    pub async fn mcp_servers_of(
        &self,
        tenant: &TenantId,
        page: &ListPage,
    ) -> Result<Vec<McpServer>, StoreError> {
        let sql = format!("SELECT body FROM mcp_servers WHERE tenant = $1 {}", page.sql("id"));
        let query = sqlx::query(AssertSqlSafe(sql)).bind(tenant.as_str()).bind(page.start());
        let rows =
            query.fetch_all(&self.state.db.engine.pool).await.map_err(failed_to("read the MCP servers"))?;
        let read = |row| serde_json::from_str(sqlx::Row::try_get(row, 0)?).map_err(decode);
        rows.iter().map(read).collect::<Result<_, _>>().map_err(failed_to("read the MCP servers"))
    }

    /// Returns a server of a tenant.
    pub async fn mcp_server(&self, tenant: &TenantId, id: &str) -> Result<Option<McpServer>, StoreError> {
        let query = sqlx::query("SELECT body FROM mcp_servers WHERE tenant = $1 AND id = $2");
        let found = query.bind(tenant.as_str()).bind(id).fetch_optional(&self.state.db.engine.pool).await;
        let read = |row: sqlx::any::AnyRow| serde_json::from_str(row.try_get(0)?).map_err(decode);
        found.and_then(|row| row.map(read).transpose()).map_err(failed_to("read the MCP servers"))
    }

    /// Creates or updates a server and the bundle of its tools.
    pub async fn put_mcp_server(&self, server: McpServer) -> Result<(), StoreError> {
        self.run(|catalog| async move { catalog.put_mcp_server(&server).await }).await
    }

    /// Deletes a server, its bundle and its tools.
    pub async fn delete_mcp_server(&self, tenant: TenantId, id: BundleSlug) -> Result<(), StoreError> {
        self.run(|catalog| async move { catalog.delete_mcp_server(&tenant, &id).await }).await
    }

    /// Updates the tools of a server from its list. New tools are added. A changed tool waits for approval, unless the
    /// server's changes are accepted automatically. A tool that is no longer listed is disabled.
    pub async fn set_mcp_tools(&self, server: McpServer, tools: Vec<ImportedTool>) -> Result<(), StoreError> {
        self.run(|catalog| async move { catalog.set_mcp_tools(&server, tools).await }).await
    }

    /// Returns the changes that wait for approval.
    pub async fn changed_mcp_tools(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Vec<PendingToolChange>, StoreError> {
        self.state.changed_mcp_tools(tenant, id).await.map_err(failed_to("read the changed MCP tools"))
    }

    /// Accepts the change of a tool.
    pub async fn accept_mcp_tool(&self, id: ToolId) -> Result<Tool, StoreError> {
        self.run(move |catalog| async move { catalog.accept_mcp_tool(id).await }).await
    }

    /// Rejects the change of a tool, which stays out of service until the server changes it again.
    pub async fn reject_mcp_tool(&self, id: ToolId) -> Result<(), StoreError> {
        self.run(move |catalog| async move { catalog.reject_mcp_tool(id).await }).await
    }

    /// Returns the servers of a tenant with changed tools that are neither accepted nor rejected.
    pub async fn mcp_servers_to_review(&self, tenant: &TenantId) -> Result<Vec<BundleSlug>, StoreError> {
        self.state.servers_to_review(tenant).await.map_err(failed_to("read the changed MCP tools"))
    }
}

fn decode(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

pub(super) fn encode(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}

/// Returns the definition of a tool with the settings of its server.
fn with_settings(tool: &Tool, server: &McpServer) -> ToolSpec {
    let mut spec = ToolSpec::clone(&tool.spec);
    server.apply_settings(&mut spec);
    spec
}

/// The digest of the accepted definition, and of the one that waits for approval.
struct Pin {
    /// Empty for a tool that was never accepted.
    digest: String,
    offered_digest: Option<String>,
    /// The digest of the definition that was rejected.
    rejected_digest: Option<String>,
    /// The findings about the definition that the server lists, as JSON.
    findings: Option<String>,
}

impl CatalogState {
    async fn put_mcp_server(&self, server: &McpServer) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        session.put_mcp_server(server).await?;
        session.finish().await.map(drop)
    }

    fn bundle_of(&self, server: &McpServer) -> Bundle {
        let now = self.db.now();
        Bundle {
            id: BundleId(time::new_id(&*self.db.clock)),
            tenant: server.tenant.clone(),
            slug: server.id.clone(),
            display_name: server.id.to_string(),
            description: "The tools of an MCP server".to_owned(),
            enabled: true,
            kind: BundleKind::Mcp,
            created_at: now,
            modified_at: now,
            soft_deleted_at: None,
        }
    }

    async fn delete_mcp_server(&self, tenant: &TenantId, id: &BundleSlug) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        session.delete_mcp_server(tenant, id).await?;
        session.finish().await.map(drop)
    }

    async fn set_mcp_tools(&self, server: &McpServer, tools: Vec<ImportedTool>) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        let bundle = session.bundle_by_slug(&server.tenant, &server.id).await.map_err(failed_to(TOOLS))?;
        // The server was deleted while it responded.
        let Some(bundle) = bundle else { return Ok(()) };
        session.update_tools(server, &bundle, tools).await.map_err(failed_to(TOOLS))?;
        if session.is_unmarked() {
            return Ok(());
        }
        session.finish().await.map(drop)
    }

    async fn changed_mcp_tools(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Vec<PendingToolChange>, sqlx::Error> {
        let sql = format!(
            "{} JOIN mcp_pins m ON m.tool_id = t.id WHERE b.tenant = $1 AND b.slug = $2 AND m.offered IS NOT NULL \
             ORDER BY t.name",
            rows::TOOL.replace(
                "SELECT ",
                "SELECT m.offered AS offered, m.offered_digest AS offered_digest, m.digest AS pinned, \
                 m.findings AS findings, m.rejected_digest AS rejected_digest, "
            )
        );
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(tenant.as_str())
            .bind(id.as_str())
            .fetch_all(&self.db.engine.pool)
            .await?;
        rows.iter()
            .map(|row| {
                let offered = serde_json::from_str(row.try_get("offered")?).map_err(decode)?;
                let digest = |column: &str| row.try_get::<Option<String>, _>(column);
                let rejected = digest("offered_digest")? == digest("rejected_digest")?;
                Ok(PendingToolChange {
                    tool: rows::tool(row)?,
                    offered,
                    rejected,
                    is_new: row.try_get::<&str, _>("pinned")?.is_empty(),
                    findings: rows::optional_json_column(row, "findings")?.unwrap_or_default(),
                })
            })
            .collect()
    }

    async fn reject_mcp_tool(&self, id: ToolId) -> Result<(), StoreError> {
        let action = "reject the change of the tool";
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        let sql =
            "UPDATE mcp_pins SET rejected_digest = offered_digest WHERE tool_id = $1 AND offered IS NOT NULL";
        let done = sqlx::query(sql).bind(id.to_string()).execute(&mut *session.tx).await;
        if done.map_err(failed_to(action))?.rows_affected() == 0 {
            let message = format!("`{}` has no pending change to reject", tool.spec.name);
            return Err(StoreError::Conflict(message));
        }
        session.mark_tool_changed(id);
        session.set_mcp_fault(&tool, Some(REJECTED)).await.map_err(failed_to(action))?;
        session.mark_reviewed(&tool.tenant, &tool.bundle).await.map_err(failed_to(action))?;
        session.finish().await.map(drop)
    }

    /// Returns the servers with changed tools that are neither accepted nor rejected.
    async fn servers_to_review(&self, tenant: &TenantId) -> Result<Vec<BundleSlug>, sqlx::Error> {
        let sql = "SELECT DISTINCT b.slug AS slug FROM mcp_pins m JOIN tools t ON t.id = m.tool_id \
                   JOIN bundles b ON b.id = t.bundle_id WHERE b.tenant = $1 AND m.offered IS NOT NULL \
                   AND (m.rejected_digest IS NULL OR m.rejected_digest <> m.offered_digest)";
        let found = sqlx::query(sql).bind(tenant.as_str()).fetch_all(&self.db.engine.pool).await?;
        found.iter().map(|row| rows::parse_column(row, "slug")).collect()
    }

    async fn accept_mcp_tool(&self, id: ToolId) -> Result<Tool, StoreError> {
        let action = "accept the tool";
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        let Some((digest, mut offered)) = session.offered(id).await.map_err(failed_to(action))? else {
            let message = format!("`{}` has no pending change to accept", tool.spec.name);
            return Err(StoreError::Conflict(message));
        };
        (offered.policy, offered.execution) = (tool.spec.policy, tool.spec.execution.clone());
        session.replace_mcp_tool(&tool, &offered, &digest).await.map_err(failed_to(action))?;
        session.mark_reviewed(&tool.tenant, &tool.bundle).await.map_err(failed_to(action))?;
        session.finish().await?;
        let mut session = self.session().await?;
        session.tool(id).await
    }
}

impl Session<'_> {
    /// Creates or updates a server and the bundle of its tools.
    pub(super) async fn put_mcp_server(&mut self, server: &McpServer) -> Result<(), StoreError> {
        let bundle = self.bundle_by_slug(&server.tenant, &server.id).await.map_err(failed_to(STORE))?;
        let known = self.has_mcp_server(&server.tenant, &server.id).await.map_err(failed_to(STORE))?;
        match bundle {
            // A session that touches nothing stores nothing.
            Some(bundle) if known => {
                self.mark_bundle_changed(bundle.id);
                self.apply_settings(&bundle, server).await.map_err(failed_to(STORE))?;
            }
            Some(_) => {
                let message = format!("bundle `{}` already exists; choose another id", server.id);
                return Err(StoreError::Conflict(message));
            }
            None => self.save_bundle(&self.catalog.bundle_of(server)).await.map_err(failed_to(STORE))?,
        }
        // A change of the configuration does not undo a review.
        let stored = self.newest(server).await.map_err(failed_to(STORE))?;
        let server = McpServer { reviewed_at: server.reviewed_at.max(stored.reviewed_at), ..server.clone() };
        self.save_mcp_server(&server).await.map_err(failed_to(STORE))
    }

    /// Deletes a server, its bundle and its tools.
    pub(super) async fn delete_mcp_server(
        &mut self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<(), StoreError> {
        let action = "delete the MCP server";
        if !self.remove_mcp_server(tenant, id).await.map_err(failed_to(action))? {
            return Err(StoreError::not_found("MCP server", id));
        }
        let login = haft_core::mcp::login_key(id);
        refresh::forget(&mut self.tx, tenant, &login).await.map_err(failed_to(action))?;
        let provider = haft_core::mcp::mcp_provider(id.as_str());
        forget_provider(&mut self.tx, tenant, &provider).await.map_err(failed_to(action))?;
        if let Some(bundle) = self.bundle_by_slug(tenant, id).await.map_err(failed_to(action))? {
            for tool in self.tools_in(bundle.id).await.map_err(failed_to(action))? {
                self.remove_tool(tool.id).await.map_err(failed_to(action))?;
                self.remove_pin(tool.id).await.map_err(failed_to(action))?;
            }
            self.remove_bundle(bundle.id).await.map_err(failed_to(action))?;
        }
        Ok(())
    }

    /// Returns the servers of a tenant by id.
    pub(super) async fn mcp_servers_of(&mut self, tenant: &TenantId) -> Result<Vec<McpServer>, sqlx::Error> {
        let query = sqlx::query("SELECT body FROM mcp_servers WHERE tenant = $1 ORDER BY id");
        let found = query.bind(tenant.as_str()).fetch_all(&mut *self.tx).await?;
        found.iter().map(|row| serde_json::from_str(row.try_get(0)?).map_err(decode)).collect()
    }

    async fn has_mcp_server(&mut self, tenant: &TenantId, id: &BundleSlug) -> Result<bool, sqlx::Error> {
        let found = sqlx::query("SELECT 1 FROM mcp_servers WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(id.as_str())
            .fetch_optional(&mut *self.tx)
            .await?;
        Ok(found.is_some())
    }

    pub(super) async fn save_mcp_server(&mut self, server: &McpServer) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO mcp_servers (tenant, id, body) VALUES ($1, $2, $3) \
             ON CONFLICT (tenant, id) DO UPDATE SET body = excluded.body",
        )
        .bind(server.tenant.as_str())
        .bind(server.id.as_str())
        .bind(serde_json::to_string(server).map_err(encode)?)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    /// Applies changed settings at once, without waiting for the next list of the server.
    async fn apply_settings(&mut self, bundle: &Bundle, server: &McpServer) -> Result<(), sqlx::Error> {
        for tool in self.tools_in(bundle.id).await? {
            let spec = with_settings(&tool, server);
            if spec != *tool.spec {
                self.append_revision(&tool, &spec, self.db.now()).await?;
                sqlx::query("UPDATE tools SET published_revision = revision WHERE id = $1")
                    .bind(tool.id.to_string())
                    .execute(&mut *self.tx)
                    .await?;
            }
        }
        Ok(())
    }

    /// Returns the stored configuration, which may be newer than the one of a list in progress.
    pub(super) async fn newest(&mut self, server: &McpServer) -> Result<McpServer, sqlx::Error> {
        let row = sqlx::query("SELECT body FROM mcp_servers WHERE tenant = $1 AND id = $2")
            .bind(server.tenant.as_str())
            .bind(server.id.as_str())
            .fetch_optional(&mut *self.tx)
            .await?;
        let Some(row) = row else { return Ok(server.clone()) };
        serde_json::from_str(row.try_get(0)?).map_err(decode)
    }

    async fn remove_mcp_server(&mut self, tenant: &TenantId, id: &BundleSlug) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("DELETE FROM mcp_servers WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(id.as_str())
            .execute(&mut *self.tx)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    pub(super) async fn tools_in(&mut self, bundle: BundleId) -> Result<Vec<Tool>, sqlx::Error> {
        let sql = AssertSqlSafe(format!("{} WHERE t.bundle_id = $1", rows::TOOL));
        let rows = sqlx::query(sql).bind(bundle.to_string()).fetch_all(&mut *self.tx).await?;
        rows.iter().map(rows::tool).collect()
    }

    async fn update_tools(
        &mut self,
        server: &McpServer,
        bundle: &Bundle,
        tools: Vec<ImportedTool>,
    ) -> Result<(), sqlx::Error> {
        let mut stored: HashMap<ToolName, Tool> =
            self.tools_in(bundle.id).await?.into_iter().map(|tool| (tool.spec.name.clone(), tool)).collect();
        let mut pins = self.pins(bundle.id).await?;
        let newest = self.newest(server).await?;
        for ImportedTool { mut spec, digest, findings } in tools {
            newest.apply_settings(&mut spec);
            let Some(tool) = stored.remove(&spec.name) else {
                match limits::check_tool_room(&mut self.tx, &bundle.tenant, &spec).await {
                    Ok(()) => self.add_mcp_tool(&newest, bundle, (&spec, &digest), &findings).await?,
                    Err(error) => {
                        tracing::warn!(server = %server.id, tool = %spec.name, %error, "tool of an MCP server not stored");
                    }
                }
                continue;
            };
            let pin = pins.remove(&tool.id.to_string());
            let known = pin.as_ref().and_then(|pin| pin.findings.clone());
            match pin {
                Some(pin) if pin.digest == digest => self.keep_accepted(&tool, &pin, &newest).await?,
                Some(pin) if Finding::any_hard(&findings) => {
                    let reason = fault_of(&server.id, &spec.name, &findings);
                    self.hold_change(&tool, &pin, (&spec, &digest), &reason).await?;
                }
                Some(pin) if !newest.accept_changes => {
                    let reason = if pin.digest.is_empty() { NEW } else { CHANGED };
                    self.hold_change(&tool, &pin, (&spec, &digest), reason).await?;
                }
                // Every change is stored as a revision: a server that changes constantly must not fill the store.
                Some(pin) if self.recent_revisions(tool.id).await? >= MAX_AUTO_ACCEPTED => {
                    self.hold_change(&tool, &pin, (&spec, &digest), CHANGES_TOO_OFTEN).await?;
                }
                _ => self.replace_mcp_tool(&tool, &spec, &digest).await?,
            }
            self.set_findings(tool.id, known.as_deref(), &findings).await?;
        }
        for tool in stored.into_values() {
            // A change that is no longer offered cannot be accepted.
            if let Some(pin) = pins.remove(&tool.id.to_string()).filter(|pin| pin.offered_digest.is_some()) {
                self.pin(tool.id, &pin.digest).await?;
                self.mark_tool_changed(tool.id);
            }
            self.set_mcp_fault(&tool, Some(UNLISTED)).await?;
        }
        Ok(())
    }

    pub(super) async fn insert_mcp_tool(
        &mut self,
        bundle: &Bundle,
        spec: &ToolSpec,
        digest: &str,
    ) -> Result<ToolId, sqlx::Error> {
        let id = ToolId(time::new_id(&*self.db.clock));
        let insert = ToolInsert {
            id,
            bundle,
            spec,
            status: Status::Published,
            enabled: true,
            source: Source::Mcp,
            file: ToolFile::default(),
            at: self.db.now(),
        };
        self.insert_tool(insert).await?;
        self.pin(id, digest).await?;
        Ok(id)
    }

    async fn recent_revisions(&mut self, id: ToolId) -> Result<i64, sqlx::Error> {
        let since = self.db.now() - AUTO_ACCEPT_WINDOW;
        // The first revision is not a change.
        let sql = "SELECT COUNT(*) FROM revisions WHERE tool_id = $1 AND created_at > $2 AND number > 1";
        let row = sqlx::query(sql)
            .bind(id.to_string())
            .bind(since.as_microsecond())
            .fetch_one(&mut *self.tx)
            .await?;
        row.try_get(0)
    }

    /// Keeps the accepted definition, which the server lists (again); only the settings of the server may differ.
    async fn keep_accepted(&mut self, tool: &Tool, pin: &Pin, server: &McpServer) -> Result<(), sqlx::Error> {
        let spec = with_settings(tool, server);
        if spec != *tool.spec {
            return self.replace_mcp_tool(tool, &spec, &pin.digest).await;
        }
        if pin.offered_digest.is_some() {
            self.pin(tool.id, &pin.digest).await?;
        }
        self.set_mcp_fault(tool, None).await
    }

    async fn hold_change(
        &mut self,
        tool: &Tool,
        pin: &Pin,
        (spec, digest): (&ToolSpec, &str),
        reason: &str,
    ) -> Result<(), sqlx::Error> {
        let reason = if pin.rejected_digest.as_deref() == Some(digest) { REJECTED } else { reason };
        if pin.offered_digest.as_deref() != Some(digest) {
            self.offer(tool.id, spec, digest).await?;
        }
        self.set_mcp_fault(tool, Some(reason)).await
    }

    /// Stores the definition that waits for approval.
    pub(super) async fn offer(
        &mut self,
        id: ToolId,
        spec: &ToolSpec,
        digest: &str,
    ) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE mcp_pins SET offered_digest = $1, offered = $2 WHERE tool_id = $3")
            .bind(digest)
            .bind(serde_json::to_string(spec).map_err(encode)?)
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.mark_tool_changed(id);
        Ok(())
    }

    async fn replace_mcp_tool(
        &mut self,
        tool: &Tool,
        spec: &ToolSpec,
        digest: &str,
    ) -> Result<(), sqlx::Error> {
        self.append_revision(tool, spec, self.db.now()).await?;
        sqlx::query("UPDATE tools SET published_revision = revision, fault = NULL WHERE id = $1")
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.pin(tool.id, digest).await
    }

    async fn set_mcp_fault(&mut self, tool: &Tool, reason: Option<&str>) -> Result<(), sqlx::Error> {
        if tool.fault.as_deref() == reason {
            return Ok(());
        }
        sqlx::query("UPDATE tools SET fault = $1 WHERE id = $2")
            .bind(reason)
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.mark_tool_changed(tool.id);
        Ok(())
    }

    async fn pin(&mut self, id: ToolId, digest: &str) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO mcp_pins (tool_id, digest) VALUES ($1, $2) ON CONFLICT (tool_id) DO UPDATE SET \
             digest = excluded.digest, offered_digest = NULL, offered = NULL, rejected_digest = NULL",
        )
        .bind(id.to_string())
        .bind(digest)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn pins(&mut self, bundle: BundleId) -> Result<HashMap<String, Pin>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT p.tool_id, p.digest, p.offered_digest, p.rejected_digest, p.findings FROM mcp_pins p \
             JOIN tools t ON t.id = p.tool_id WHERE t.bundle_id = $1",
        )
        .bind(bundle.to_string())
        .fetch_all(&mut *self.tx)
        .await?;
        rows.iter()
            .map(|row| {
                let pin = Pin {
                    digest: row.try_get(1)?,
                    offered_digest: row.try_get(2)?,
                    rejected_digest: row.try_get(3)?,
                    findings: row.try_get(4)?,
                };
                Ok((row.try_get(0)?, pin))
            })
            .collect()
    }

    async fn offered(&mut self, id: ToolId) -> Result<Option<(String, ToolSpec)>, sqlx::Error> {
        let row = sqlx::query(
            "SELECT offered_digest, offered FROM mcp_pins WHERE tool_id = $1 AND offered IS NOT NULL",
        )
        .bind(id.to_string())
        .fetch_optional(&mut *self.tx)
        .await?;
        row.map(|row| {
            let offered = serde_json::from_str(row.try_get(1)?).map_err(decode)?;
            Ok((row.try_get(0)?, offered))
        })
        .transpose()
    }

    async fn remove_pin(&mut self, id: ToolId) -> Result<(), sqlx::Error> {
        sqlx::query("DELETE FROM mcp_pins WHERE tool_id = $1")
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }
}
