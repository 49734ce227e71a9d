//! The review of the tools of MCP servers: findings of the scan, new tools that wait, and reviewed servers.

use haft_core::bundle::Bundle;
use haft_core::catalog::StoreError;
use haft_core::finding::{Finding, Severity};
use haft_core::id::ToolId;
use haft_core::mcp::McpServer;
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::ToolSpec;
use sqlx::Row as _;

use super::mcp::{NEW, encode};
use super::session::Session;
use super::state::{Catalog, CatalogState};
use crate::engine::failed_to;
use crate::rows;

/// The maximum number of names of other tools that a scan compares.
const MAX_OTHER_NAMES: i64 = 50_000;
/// The maximum number of tools whose findings are listed.
const MAX_TOOLS_WITH_FINDINGS: i64 = 1000;

impl Catalog {
    /// Returns the names of the tools of a tenant outside a bundle, with the built-in tools.
    pub async fn tool_names_beside(
        &self,
        tenant: &TenantId,
        bundle: &BundleSlug,
    ) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT t.name AS name FROM tools t JOIN bundles b ON b.id = t.bundle_id \
                   WHERE (b.kind = 'built_in' OR (b.tenant = $1 AND b.slug <> $2)) AND t.gone_at IS NULL \
                   ORDER BY name LIMIT $3";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(bundle.as_str())
            .bind(MAX_OTHER_NAMES)
            .fetch_all(&self.state.db.engine.pool)
            .await;
        let names = found.and_then(|rows| rows.iter().map(|row| row.try_get("name")).collect());
        names.map_err(failed_to("read the names of tools"))
    }

    /// Returns the findings about the tools of a server, hard ones first.
    pub async fn mcp_findings(&self, tenant: &TenantId, id: &BundleSlug) -> Result<Vec<Finding>, StoreError> {
        self.state.mcp_findings(tenant, id).await.map_err(failed_to("read the findings about an MCP server"))
    }

    /// Marks a server as reviewed: from now on, its new tools wait for review.
    pub async fn review_mcp_server(&self, tenant: TenantId, id: BundleSlug) -> Result<McpServer, StoreError> {
        self.run(|catalog| async move { catalog.review_mcp_server(&tenant, &id).await }).await
    }
}

/// Returns why a tool with hard findings waits for review.
pub(super) fn fault_of(server: &BundleSlug, tool: &ToolName, findings: &[Finding]) -> String {
    let hard: Vec<&Finding> = findings.iter().filter(|finding| finding.severity == Severity::Hard).collect();
    let first = hard.first().map_or("", |finding| finding.message.as_str());
    let more = match hard.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    format!(
        "the scan of this tool found {first}{more}; review it with `haft mcp-server changes {server}`, and accept it with \
         `haft mcp-server accept {server} {tool}`"
    )
}

impl CatalogState {
    async fn mcp_findings(&self, tenant: &TenantId, id: &BundleSlug) -> Result<Vec<Finding>, sqlx::Error> {
        let sql = "SELECT m.findings AS findings FROM mcp_pins m JOIN tools t ON t.id = m.tool_id \
                   JOIN bundles b ON b.id = t.bundle_id WHERE b.tenant = $1 AND b.slug = $2 \
                   AND m.findings IS NOT NULL ORDER BY t.name LIMIT $3";
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(id.as_str())
            .bind(MAX_TOOLS_WITH_FINDINGS)
            .fetch_all(&self.db.engine.pool)
            .await?;
        let mut findings = Vec::new();
        for row in &found {
            findings.extend(rows::json_column::<Vec<Finding>>(row, "findings")?);
        }
        findings.sort_by_key(|finding| finding.severity);
        Ok(findings)
    }

    async fn review_mcp_server(&self, tenant: &TenantId, id: &BundleSlug) -> Result<McpServer, StoreError> {
        let action = "mark the MCP server as reviewed";
        let mut session = self.session().await?;
        let bundle = session.bundle_by_slug(tenant, id).await.map_err(failed_to(action))?;
        let bundle = bundle.ok_or_else(|| StoreError::not_found("MCP server", id))?;
        session.mark_bundle_changed(bundle.id);
        let server = session.mark_reviewed(tenant, id).await.map_err(failed_to(action))?;
        session.finish().await?;
        server.ok_or_else(|| StoreError::not_found("MCP server", id))
    }
}

impl Session<'_> {
    /// Adds a tool that the server lists for the first time. It waits for review if the scan found something hard in it,
    /// or if the server holds new tools.
    pub(super) async fn add_mcp_tool(
        &mut self,
        server: &McpServer,
        bundle: &Bundle,
        (spec, digest): (&ToolSpec, &str),
        findings: &[Finding],
    ) -> Result<(), sqlx::Error> {
        let reason = if Finding::any_hard(findings) {
            Some(fault_of(&server.id, &spec.name, findings))
        } else {
            server.holds_new_tools().then(|| NEW.to_owned())
        };
        // A tool that waits has no accepted definition.
        let accepted = if reason.is_none() { digest } else { "" };
        let id = self.insert_mcp_tool(bundle, spec, accepted).await?;
        if let Some(reason) = reason {
            self.offer(id, spec, digest).await?;
            sqlx::query("UPDATE tools SET fault = $1 WHERE id = $2")
                .bind(reason)
                .bind(id.to_string())
                .execute(&mut *self.tx)
                .await?;
        }
        self.set_findings(id, None, findings).await
    }

    /// Stores the findings about the definition that the server lists; `known` is what is stored, as JSON.
    pub(super) async fn set_findings(
        &mut self,
        id: ToolId,
        known: Option<&str>,
        findings: &[Finding],
    ) -> Result<(), sqlx::Error> {
        let text = (!findings.is_empty()).then(|| serde_json::to_string(findings)).transpose();
        let text = text.map_err(encode)?;
        if text.as_deref() == known {
            return Ok(());
        }
        sqlx::query("UPDATE mcp_pins SET findings = $1 WHERE tool_id = $2")
            .bind(text)
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.mark_tool_changed(id);
        Ok(())
    }

    /// Stores that somebody reviewed a server, and returns it.
    pub(super) async fn mark_reviewed(
        &mut self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Option<McpServer>, sqlx::Error> {
        let servers = self.mcp_servers_of(tenant).await?;
        let Some(server) = servers.into_iter().find(|server| server.id == *id) else { return Ok(None) };
        let server = McpServer { reviewed_at: Some(self.db.now()), ..server };
        self.save_mcp_server(&server).await?;
        Ok(Some(server))
    }
}
