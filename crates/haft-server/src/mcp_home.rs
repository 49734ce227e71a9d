//! The MCP servers of an installation: configured in the store, kept connected while it serves.

use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::mcp::{ListedTool, McpServer};
use haft_core::secret::SecretSource;
use haft_definition::mcp_import::import;
use haft_mcp::client::{ClientParts, McpClients, McpServerStore};
use haft_runtime::egress::Egress;
use haft_sandbox::Sandbox;
use haft_store::Store;

use crate::app::App;

/// How often the configured servers are looked up: another process may have changed them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Makes the clients of the servers that a store knows. Nothing is connected to yet.
pub(crate) fn clients(
    sandbox: &Sandbox,
    egress: Egress,
    secrets: &Arc<dyn SecretSource>,
    store: &Arc<Store>,
) -> Arc<McpClients> {
    Arc::new(McpClients::new(ClientParts {
        sandbox: sandbox.clone(),
        egress,
        secrets: Arc::clone(secrets),
        store: Arc::new(StoredServers(Arc::clone(store))),
    }))
}

/// Keeps what servers list in the store.
struct StoredServers(Arc<Store>);

impl McpServerStore for StoredServers {
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>> {
        Box::pin(self.0.mcp_servers())
    }

    fn listed<'a>(
        &'a self,
        server: &'a McpServer,
        tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let made = import(server, &tools);
            self.0.set_mcp_tools(server.clone(), made.tools).await?;
            Ok(made.refused.iter().map(|(tool, problem)| format!("{tool}: {problem}")).collect())
        })
    }
}

impl App {
    /// Takes the servers that the configuration declares, and forgets those that it no longer does.
    pub(crate) async fn declare_mcp_servers(&self) -> Result<(), StoreError> {
        let settings = &self.settings().mcp;
        let Some(declared) = settings.servers.as_ref() else { return Ok(()) };
        let file = declared.file.display().to_string();
        let mut known = self.store().mcp_servers().await?;
        for server in &declared.servers {
            let at = known.iter().position(|old| old.tenant == server.tenant && old.id == server.id);
            let old = at.map(|at| known.swap_remove(at));
            let now = self.now();
            let (created_at, modified_at) =
                old.as_ref().map_or((now, now), |old| (old.created_at, old.modified_at));
            let server =
                McpServer { declared_in: Some(file.clone()), created_at, modified_at, ..server.clone() };
            if old.as_ref() == Some(&server) {
                continue;
            }
            let server = McpServer { modified_at: now, ..server };
            match self.store().put_mcp_server(server).await {
                // One that cannot be used keeps nothing else from starting.
                Err(StoreError::Conflict(why)) => {
                    tracing::error!(file, why, "a declared MCP server is left out");
                }
                other => other?,
            }
        }
        for gone in known.into_iter().filter(|old| old.declared_in.as_ref() == Some(&file)) {
            self.store().delete_mcp_server(gone.tenant, gone.id).await?;
        }
        Ok(())
    }

    /// Keeps the servers connected as they are configured, until dropped.
    pub(crate) async fn keep_mcp_servers(&self) {
        self.mcp_clients().connect_all();
        loop {
            if let Err(error) = self.mcp_clients().reload().await {
                tracing::warn!(%error, "the MCP servers could not be read");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
