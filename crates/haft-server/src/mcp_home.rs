//! The MCP servers of an installation: configured in the store, kept connected while it serves.

use std::sync::Arc;
use std::time::Duration;

use haft_core::Work;
use haft_core::catalog::StoreError;
use haft_core::mcp::{Listed, McpServer, import};
use haft_core::secret::SecretSource;
use haft_mcp::client::{ClientParts, McpClients, McpHome};
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
        home: Arc::new(StoredServers(Arc::clone(store))),
    }))
}

/// Keeps what servers list in the store.
struct StoredServers(Arc<Store>);

impl McpHome for StoredServers {
    fn servers(&self) -> Work<'_, Result<Vec<McpServer>, StoreError>> {
        Box::pin(self.0.mcp_servers())
    }

    fn listed<'a>(&'a self, server: &'a McpServer, tools: Vec<Listed>) -> Work<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let made = import(server, &tools);
            for (tool, problem) in &made.refused {
                tracing::warn!(server = %server.id, tool, %problem, "a tool of an MCP server was not taken");
            }
            self.0.set_mcp_tools(server.clone(), made.tools).await
        })
    }
}

impl App {
    /// Keeps the servers connected as they are configured, until dropped.
    pub(crate) async fn keep_mcp_servers(&self) {
        self.mcp_clients().follow();
        loop {
            if let Err(error) = self.mcp_clients().reload().await {
                tracing::warn!(%error, "the MCP servers could not be read");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
