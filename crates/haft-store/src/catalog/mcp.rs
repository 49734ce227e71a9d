//! MCP servers, and the tools that they list.

use std::collections::HashMap;

use haft_core::bundle::Bundle;
use haft_core::catalog::StoreError;
use haft_core::id::{BundleId, ToolId};
use haft_core::mcp::McpServer;
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::spec::{Policy, ToolSpec};
use haft_core::tool::{Source, Status, Tool};
use haft_definition::mcp_import::ImportedTool;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};

use super::insert::Fresh;
use super::queries::Filed;
use crate::engine::fault;
use crate::rows;
use crate::session::Session;
use crate::store::{Inner, Store};
use crate::time;
use crate::vault::refresh;

const STORE: &str = "store the MCP server";
const TOOLS: &str = "store the tools of an MCP server";
const GONE: &str = "the MCP server does not list it any more";
const CHANGED: &str = "the MCP server changed it: look at the difference, then accept it";

const TOO_OFTEN: &str =
    "the MCP server changes it too often to be followed by itself: look at the difference, then accept it";

/// How many changes of one tool are taken over without being asked, within [`FOLLOWED_WITHIN`].
const MAX_FOLLOWED: i64 = 10;
const FOLLOWED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// A tool that a server changed, and that waits for someone to agree.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingToolChange {
    /// The tool, with the definition that was agreed to.
    pub tool: Tool,
    /// What the server lists now.
    pub offered: ToolSpec,
}

impl Store {
    /// Returns every server that is configured.
    pub async fn mcp_servers(&self) -> Result<Vec<McpServer>, StoreError> {
        let rows = sqlx::query("SELECT body FROM mcp_servers ORDER BY tenant, id")
            .fetch_all(&self.inner.engine.pool)
            .await
            .map_err(fault("read the MCP servers"))?;
        let read = |row| serde_json::from_str(sqlx::Row::try_get(row, 0)?).map_err(decode);
        rows.iter().map(read).collect::<Result<_, _>>().map_err(fault("read the MCP servers"))
    }

    /// Stores a server, new or changed, and the bundle that holds its tools.
    pub async fn put_mcp_server(&self, server: McpServer) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.put_mcp_server(&server).await }).await
    }

    /// Forgets a server, its bundle and its tools.
    pub async fn delete_mcp_server(&self, tenant: TenantId, id: BundleSlug) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.delete_mcp_server(&tenant, &id).await }).await
    }

    /// Takes what a server lists. New tools come in; one that differs from what was agreed to is set aside, unless
    /// the server's changes are accepted; one that is gone stays, out of service.
    pub async fn set_mcp_tools(&self, server: McpServer, tools: Vec<ImportedTool>) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.set_mcp_tools(&server, tools).await }).await
    }

    /// Returns what was set aside.
    pub async fn changed_mcp_tools(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Vec<PendingToolChange>, StoreError> {
        self.inner.changed_mcp_tools(tenant, id).await.map_err(fault("read what MCP servers changed"))
    }

    /// Agrees to what a server made of a tool.
    pub async fn accept_mcp_tool(&self, id: ToolId) -> Result<Tool, StoreError> {
        self.run(move |inner| async move { inner.accept_mcp_tool(id).await }).await
    }
}

fn decode(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

fn encode(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}

/// What was agreed to of a tool, and what is offered instead.
struct Pin {
    digest: String,
    offered_digest: Option<String>,
}

impl Inner {
    async fn put_mcp_server(&self, server: &McpServer) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        let bundle = session.bundle_by_slug(&server.tenant, &server.id).await.map_err(fault(STORE))?;
        let known = session.has_mcp_server(&server.tenant, &server.id).await.map_err(fault(STORE))?;
        match bundle {
            // A change that touches nothing is not stored.
            Some(bundle) if known => {
                session.touch_bundle(bundle.id);
                session.follow_policy(&bundle, server.policy).await.map_err(fault(STORE))?;
            }
            Some(_) => {
                let message = format!("there is a bundle `{}` already; choose another id", server.id);
                return Err(StoreError::Conflict(message));
            }
            None => session.save_bundle(&self.bundle_of(server)).await.map_err(fault(STORE))?,
        }
        session.save_mcp_server(server).await.map_err(fault(STORE))?;
        session.finish().await.map(drop)
    }

    /// The bundle counts as built in: its content comes from the server, and only its switch is the user's.
    fn bundle_of(&self, server: &McpServer) -> Bundle {
        let now = self.now();
        Bundle {
            id: BundleId(time::new_id(&*self.clock)),
            tenant: server.tenant.clone(),
            slug: server.id.clone(),
            display_name: server.id.to_string(),
            description: "The tools of an MCP server".to_owned(),
            enabled: true,
            built_in: true,
            created_at: now,
            modified_at: now,
            soft_deleted_at: None,
        }
    }

    async fn delete_mcp_server(&self, tenant: &TenantId, id: &BundleSlug) -> Result<(), StoreError> {
        let doing = "delete the MCP server";
        let mut session = self.session().await?;
        if !session.remove_mcp_server(tenant, id).await.map_err(fault(doing))? {
            return Err(StoreError::not_found("MCP server", id));
        }
        let login = haft_core::mcp::login_key(id);
        refresh::forget(&mut session.tx, tenant, &login).await.map_err(fault(doing))?;
        if let Some(bundle) = session.bundle_by_slug(tenant, id).await.map_err(fault(doing))? {
            for tool in session.tools_in(bundle.id).await.map_err(fault(doing))? {
                session.remove_tool(tool.id).await.map_err(fault(doing))?;
                session.remove_pin(tool.id).await.map_err(fault(doing))?;
            }
            session.remove_bundle(bundle.id).await.map_err(fault(doing))?;
        }
        session.finish().await.map(drop)
    }

    async fn set_mcp_tools(&self, server: &McpServer, tools: Vec<ImportedTool>) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        let bundle = session.bundle_by_slug(&server.tenant, &server.id).await.map_err(fault(TOOLS))?;
        // It was deleted while it answered.
        let Some(bundle) = bundle else { return Ok(()) };
        session.take_tools(server, &bundle, tools).await.map_err(fault(TOOLS))?;
        if session.is_untouched() {
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
            rows::TOOL.replace("SELECT ", "SELECT m.offered AS offered, ")
        );
        let rows = sqlx::query(AssertSqlSafe(sql))
            .bind(tenant.as_str())
            .bind(id.as_str())
            .fetch_all(&self.engine.pool)
            .await?;
        rows.iter()
            .map(|row| {
                let offered = serde_json::from_str(row.try_get("offered")?).map_err(decode)?;
                Ok(PendingToolChange { tool: rows::tool(row)?, offered })
            })
            .collect()
    }

    async fn accept_mcp_tool(&self, id: ToolId) -> Result<Tool, StoreError> {
        let doing = "accept the tool";
        let mut session = self.session().await?;
        let tool = session.tool(id).await?;
        let Some((digest, mut offered)) = session.offered(id).await.map_err(fault(doing))? else {
            let message = format!("`{}` is as it was agreed to; there is nothing to accept", tool.spec.name);
            return Err(StoreError::Conflict(message));
        };
        offered.policy = tool.spec.policy;
        session.replace_mcp_tool(&tool, &offered, &digest).await.map_err(fault(doing))?;
        session.finish().await?;
        let mut session = self.session().await?;
        session.tool(id).await
    }
}

impl Session<'_> {
    async fn has_mcp_server(&mut self, tenant: &TenantId, id: &BundleSlug) -> Result<bool, sqlx::Error> {
        let found = sqlx::query("SELECT 1 FROM mcp_servers WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(id.as_str())
            .fetch_optional(&mut *self.tx)
            .await?;
        Ok(found.is_some())
    }

    /// Tells whether a bundle is that of a server: its content comes from there alone.
    pub(crate) async fn is_mcp_bundle(&mut self, bundle: &Bundle) -> Result<bool, sqlx::Error> {
        Ok(bundle.built_in && self.has_mcp_server(&bundle.tenant, &bundle.slug).await?)
    }

    async fn save_mcp_server(&mut self, server: &McpServer) -> Result<(), sqlx::Error> {
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

    /// Who may call the tools of a server is so from here on, not only once the server was asked again.
    async fn follow_policy(&mut self, bundle: &Bundle, policy: Policy) -> Result<(), sqlx::Error> {
        for tool in self.tools_in(bundle.id).await? {
            if tool.spec.policy != policy {
                let spec = ToolSpec { policy, ..ToolSpec::clone(&tool.spec) };
                self.append_revision(&tool, &spec, self.inner.now()).await?;
                sqlx::query("UPDATE tools SET published_revision = revision WHERE id = $1")
                    .bind(tool.id.to_string())
                    .execute(&mut *self.tx)
                    .await?;
            }
        }
        Ok(())
    }

    /// Returns who may call the tools of a server, as it is stored now: a list may have been asked for before.
    async fn policy_of(&mut self, server: &McpServer) -> Result<Policy, sqlx::Error> {
        let row = sqlx::query("SELECT body FROM mcp_servers WHERE tenant = $1 AND id = $2")
            .bind(server.tenant.as_str())
            .bind(server.id.as_str())
            .fetch_optional(&mut *self.tx)
            .await?;
        let Some(row) = row else { return Ok(server.policy) };
        let stored: McpServer = serde_json::from_str(row.try_get(0)?).map_err(decode)?;
        Ok(stored.policy)
    }

    async fn remove_mcp_server(&mut self, tenant: &TenantId, id: &BundleSlug) -> Result<bool, sqlx::Error> {
        let done = sqlx::query("DELETE FROM mcp_servers WHERE tenant = $1 AND id = $2")
            .bind(tenant.as_str())
            .bind(id.as_str())
            .execute(&mut *self.tx)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    async fn tools_in(&mut self, bundle: BundleId) -> Result<Vec<Tool>, sqlx::Error> {
        let sql = AssertSqlSafe(format!("{} WHERE t.bundle_id = $1", rows::TOOL));
        let rows = sqlx::query(sql).bind(bundle.to_string()).fetch_all(&mut *self.tx).await?;
        rows.iter().map(rows::tool).collect()
    }

    async fn take_tools(
        &mut self,
        server: &McpServer,
        bundle: &Bundle,
        tools: Vec<ImportedTool>,
    ) -> Result<(), sqlx::Error> {
        let mut stored: HashMap<ToolName, Tool> =
            self.tools_in(bundle.id).await?.into_iter().map(|tool| (tool.spec.name.clone(), tool)).collect();
        let mut pins = self.pins(bundle.id).await?;
        let policy = self.policy_of(server).await?;
        for ImportedTool { mut spec, digest } in tools {
            spec.policy = policy;
            let Some(tool) = stored.remove(&spec.name) else {
                self.insert_mcp_tool(bundle, &spec, &digest).await?;
                continue;
            };
            match pins.remove(&tool.id.to_string()) {
                Some(pin) if pin.digest == digest => self.as_agreed(&tool, &pin, spec.policy).await?,
                Some(pin) if !server.accept_changes => {
                    self.set_aside(&tool, &pin, (&spec, &digest), CHANGED).await?;
                }
                // Each change is a revision that is kept: a server that always says something else may not fill the
                // store.
                Some(pin) if self.revised_lately(tool.id).await? >= MAX_FOLLOWED => {
                    self.set_aside(&tool, &pin, (&spec, &digest), TOO_OFTEN).await?;
                }
                _ => self.replace_mcp_tool(&tool, &spec, &digest).await?,
            }
        }
        for tool in stored.into_values() {
            // What is not offered any more cannot be accepted.
            if let Some(pin) = pins.remove(&tool.id.to_string()).filter(|pin| pin.offered_digest.is_some()) {
                self.pin(tool.id, &pin.digest).await?;
                self.touch_tool(tool.id);
            }
            self.set_mcp_fault(&tool, Some(GONE)).await?;
        }
        Ok(())
    }

    async fn insert_mcp_tool(
        &mut self,
        bundle: &Bundle,
        spec: &ToolSpec,
        digest: &str,
    ) -> Result<(), sqlx::Error> {
        let id = ToolId(time::new_id(&*self.inner.clock));
        let fresh = Fresh {
            id,
            bundle,
            spec,
            status: Status::Published,
            enabled: true,
            source: Source::Mcp,
            filed: Filed::default(),
            at: self.inner.now(),
        };
        self.insert_tool(fresh).await?;
        self.pin(id, digest).await
    }

    async fn revised_lately(&mut self, id: ToolId) -> Result<i64, sqlx::Error> {
        let since = self.inner.now() - FOLLOWED_WITHIN;
        // The first one is not a change.
        let sql = "SELECT COUNT(*) FROM revisions WHERE tool_id = $1 AND created_at > $2 AND number > 1";
        let row = sqlx::query(sql)
            .bind(id.to_string())
            .bind(since.as_microsecond())
            .fetch_one(&mut *self.tx)
            .await?;
        row.try_get(0)
    }

    /// The server lists what was agreed to, perhaps again. Who may call it is not the server's to say.
    async fn as_agreed(&mut self, tool: &Tool, pin: &Pin, policy: Policy) -> Result<(), sqlx::Error> {
        if tool.spec.policy != policy {
            let spec = ToolSpec { policy, ..ToolSpec::clone(&tool.spec) };
            return self.replace_mcp_tool(tool, &spec, &pin.digest).await;
        }
        if pin.offered_digest.is_some() {
            self.pin(tool.id, &pin.digest).await?;
        }
        self.set_mcp_fault(tool, None).await
    }

    async fn set_aside(
        &mut self,
        tool: &Tool,
        pin: &Pin,
        (spec, digest): (&ToolSpec, &str),
        why: &str,
    ) -> Result<(), sqlx::Error> {
        if pin.offered_digest.as_deref() != Some(digest) {
            sqlx::query("UPDATE mcp_pins SET offered_digest = $1, offered = $2 WHERE tool_id = $3")
                .bind(digest)
                .bind(serde_json::to_string(spec).map_err(encode)?)
                .bind(tool.id.to_string())
                .execute(&mut *self.tx)
                .await?;
            self.touch_tool(tool.id);
        }
        self.set_mcp_fault(tool, Some(why)).await
    }

    async fn replace_mcp_tool(
        &mut self,
        tool: &Tool,
        spec: &ToolSpec,
        digest: &str,
    ) -> Result<(), sqlx::Error> {
        self.append_revision(tool, spec, self.inner.now()).await?;
        sqlx::query("UPDATE tools SET published_revision = revision, fault = NULL WHERE id = $1")
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.pin(tool.id, digest).await
    }

    async fn set_mcp_fault(&mut self, tool: &Tool, why: Option<&str>) -> Result<(), sqlx::Error> {
        if tool.fault.as_deref() == why {
            return Ok(());
        }
        sqlx::query("UPDATE tools SET fault = $1 WHERE id = $2")
            .bind(why)
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.touch_tool(tool.id);
        Ok(())
    }

    async fn pin(&mut self, id: ToolId, digest: &str) -> Result<(), sqlx::Error> {
        sqlx::query(
            "INSERT INTO mcp_pins (tool_id, digest) VALUES ($1, $2) ON CONFLICT (tool_id) DO UPDATE SET \
             digest = excluded.digest, offered_digest = NULL, offered = NULL",
        )
        .bind(id.to_string())
        .bind(digest)
        .execute(&mut *self.tx)
        .await?;
        Ok(())
    }

    async fn pins(&mut self, bundle: BundleId) -> Result<HashMap<String, Pin>, sqlx::Error> {
        let rows = sqlx::query(
            "SELECT p.tool_id, p.digest, p.offered_digest FROM mcp_pins p JOIN tools t ON t.id = p.tool_id \
             WHERE t.bundle_id = $1",
        )
        .bind(bundle.to_string())
        .fetch_all(&mut *self.tx)
        .await?;
        rows.iter()
            .map(|row| {
                Ok((row.try_get(0)?, Pin { digest: row.try_get(1)?, offered_digest: row.try_get(2)? }))
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
