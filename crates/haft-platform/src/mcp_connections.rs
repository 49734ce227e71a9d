//! Connections to the MCP servers whose tools are used: configured in the store, kept open while haft serves.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::finding::Finding;
use haft_core::hash;
use haft_core::mcp::{ListedTool, McpServer};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::secret::SecretSource;
use haft_definition::mcp_import::{McpImport, import};
use haft_definition::scan::Scanner;
use haft_executors::egress::Egress;
use haft_mcp::client::{ClientParts, McpClients, McpServerStore};
use haft_sandbox::Sandbox;
use haft_store::Store;

use crate::context::Context;

/// How often the configured servers are reloaded: another process may have changed them.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// How often the list of a server that cannot announce changes is read.
const POLL_INTERVAL: Duration = Duration::from_mins(1);

/// Creates the clients of the stored servers, without connecting.
pub fn clients(
    sandbox: &Sandbox,
    egress: Egress,
    secrets: &Arc<dyn SecretSource>,
    store: &Arc<Store>,
) -> Arc<McpClients> {
    Arc::new(McpClients::new(ClientParts {
        sandbox: sandbox.clone(),
        egress,
        secrets: Arc::clone(secrets),
        store: Arc::new(StoredServers { store: Arc::clone(store), scans: Arc::default() }),
        poll_interval: POLL_INTERVAL,
    }))
}

/// Scans and stores the tools that servers list.
struct StoredServers {
    store: Arc<Store>,
    /// The last scan of each server: most lists are the same as the one before.
    scans: Arc<Mutex<HashMap<(TenantId, BundleSlug), LastScan>>>,
}

/// The findings of a scan by the digests of the tools.
struct LastScan {
    /// The digest of the names of the other tools.
    others: String,
    findings: HashMap<String, Vec<Finding>>,
}

/// Imports the tools of a server with the findings about them; tools that the last scan has seen are not scanned again.
fn import_scanned(
    server: &McpServer,
    tools: &[ListedTool],
    others: &[String],
    last: Option<LastScan>,
) -> (McpImport, LastScan) {
    let digest_of_others = hash::of_value(&others).unwrap_or_default();
    let known =
        last.filter(|last| last.others == digest_of_others).map(|last| last.findings).unwrap_or_default();
    let mut scanner = Scanner::new(tools, others.iter().map(String::as_str));
    let mut findings = HashMap::new();
    let imported = import(server, tools, |tool| {
        let digest = tool.digest();
        let found = known.get(&digest).cloned().unwrap_or_else(|| scanner.tool(tool));
        findings.insert(digest, found.clone());
        found
    });
    (imported, LastScan { others: digest_of_others, findings })
}

impl McpServerStore for StoredServers {
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>> {
        Box::pin(async move {
            let servers = self.store.catalog().mcp_servers().await?;
            let keys: HashSet<_> = servers.iter().map(|server| (&server.tenant, &server.id)).collect();
            let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
            scans.retain(|(tenant, id), _| keys.contains(&(tenant, id)));
            drop(scans);
            drop(keys);
            Ok(servers)
        })
    }

    fn listed<'a>(
        &'a self,
        server: &'a McpServer,
        tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let others = self.store.catalog().tool_names_beside(&server.tenant, &server.id).await?;
            let (key, scans) = ((server.tenant.clone(), server.id.clone()), Arc::clone(&self.scans));
            let scanned = server.clone();
            // A long list takes seconds.
            let scan = tokio::task::spawn_blocking(move || {
                let last = scans.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                let (imported, scan) = import_scanned(&scanned, &tools, &others, last);
                scans.lock().unwrap_or_else(PoisonError::into_inner).insert(key, scan);
                imported
            });
            let imported = scan
                .await
                .map_err(|error| StoreError::unavailable("scan the tools of an MCP server", error))?;
            self.store.catalog().set_mcp_tools(server.clone(), imported.tools).await?;
            Ok(imported.refused.iter().map(|(tool, problem)| format!("{tool}: {problem}")).collect())
        })
    }
}

/// Stores the servers that the configuration declares, and deletes those that it no longer declares.
pub async fn declare_servers(app: &Context) -> Result<(), StoreError> {
    let settings = &app.settings().mcp;
    let Some(declared) = settings.servers.as_ref() else { return Ok(()) };
    let file = declared.file.display().to_string();
    let mut stored = app.store().catalog().mcp_servers().await?;
    for server in &declared.servers {
        let position = stored.iter().position(|old| old.tenant == server.tenant && old.id == server.id);
        let old = position.map(|position| stored.swap_remove(position));
        let now = app.now();
        let (created_at, modified_at) =
            old.as_ref().map_or((now, now), |old| (old.created_at, old.modified_at));
        let server = McpServer {
            declared_in: Some(file.clone()),
            created_at,
            modified_at,
            reviewed_at: old.as_ref().and_then(|old| old.reviewed_at),
            ..server.clone()
        };
        if old.as_ref() == Some(&server) {
            continue;
        }
        let server = McpServer { modified_at: now, ..server };
        match app.store().catalog().put_mcp_server(server).await {
            // A conflict with one server does not prevent the start.
            Err(StoreError::Conflict(reason)) => {
                tracing::error!(file, reason, "skipped an MCP server of the configuration");
            }
            other => other?,
        }
    }
    for removed in stored.into_iter().filter(|old| old.declared_in.as_ref() == Some(&file)) {
        app.store().catalog().delete_mcp_server(removed.tenant, removed.id).await?;
    }
    Ok(())
}

/// Keeps the configured servers connected, until dropped.
pub async fn keep_connected(app: &Context) {
    app.mcp_clients().connect_all();
    loop {
        if let Err(error) = app.mcp_clients().reload().await {
            tracing::warn!(%error, "failed to reload the MCP servers");
        }
        tokio::time::sleep(RELOAD_INTERVAL).await;
    }
}
