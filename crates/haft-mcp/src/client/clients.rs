//! All servers that are configured.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::mcp::{ListedTool, McpServer, ServerState};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::secret::SecretSource;
use haft_runtime::egress::Egress;
use haft_sandbox::Sandbox;

use super::addresses::Addresses;
use super::connection::Connection;
use super::oauth::Pending;

/// Where servers are configured, and what they list is kept.
pub trait McpServerStore: Send + Sync {
    /// Returns every server that is configured.
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>>;
    /// Takes the whole list of a server, each time that it was read; returns which tools it did not take, and why.
    fn listed<'a>(
        &'a self,
        server: &'a McpServer,
        tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}

/// What clients are made of.
pub struct ClientParts {
    /// Where programs run.
    pub sandbox: Sandbox,
    /// Where requests pass.
    pub egress: Egress,
    /// Where `${NAME}` finds its value.
    pub secrets: Arc<dyn SecretSource>,
    /// Where servers are configured.
    pub home: Arc<dyn McpServerStore>,
}

type Key = (TenantId, BundleSlug);

/// All servers that are configured, each kept connected. Dropping it ends them all.
pub struct McpClients {
    pub(super) parts: Arc<ClientParts>,
    pub(super) addresses: Addresses,
    pub(super) pending: Pending,
    connections: RwLock<HashMap<Key, Arc<Connection>>>,
    /// Held from the reading of the configuration to its being followed: an older one never comes last.
    reloading: tokio::sync::Mutex<()>,
    /// Whether every server is connected to, and not only one that is called.
    follows: AtomicBool,
}

impl McpClients {
    /// Starts without any.
    pub fn new(parts: ClientParts) -> Self {
        Self {
            addresses: Addresses::new(&parts),
            parts: Arc::new(parts),
            pending: Pending::default(),
            connections: RwLock::default(),
            reloading: tokio::sync::Mutex::default(),
            follows: AtomicBool::new(false),
        }
    }

    /// Takes a server as it is configured now: connects to it, anew where that changed, or lets it go.
    pub fn set(&self, server: McpServer) {
        let key = (server.tenant.clone(), server.id.clone());
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        let known = connections.get(&key).filter(|_| server.enabled);
        if known.is_some_and(|connection| connection.follow(&server)) {
            return;
        }
        if server.enabled {
            connections.insert(key, Arc::new(Connection::open(server, &self.parts)));
        } else {
            connections.remove(&key);
        }
    }

    /// Lets a server go.
    pub fn remove(&self, tenant: &TenantId, id: &BundleSlug) {
        let key = (tenant.clone(), id.clone());
        self.connections.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    /// Connects to a server anew, where it is connected to.
    pub(super) fn restart(&self, tenant: &TenantId, id: &BundleSlug) {
        let key = (tenant.clone(), id.clone());
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = connections.get_mut(&key) {
            *connection = Arc::new(Connection::open(connection.server(), &self.parts));
        }
    }

    /// Returns how a server is doing; nothing where it is not connected to.
    pub fn state(&self, tenant: &TenantId, id: &BundleSlug) -> Option<ServerState> {
        self.connection(tenant, id).map(|connection| connection.state())
    }

    /// Reads the list of a server again, or tries again to connect, and waits for it.
    pub async fn refresh(&self, tenant: &TenantId, id: &BundleSlug) -> Result<(), CallError> {
        let connection = self.for_call(tenant, id).await?;
        connection.refresh().await.map_err(|why| not_connected(id, &why))
    }

    /// Says that every server is to be connected to, as a program does that goes on to serve.
    pub fn follow(&self) {
        self.follows.store(true, Ordering::Release);
    }

    /// Takes all servers as they are configured now.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let _turn = self.reloading.lock().await;
        let servers = self.parts.home.servers().await?;
        let keys: HashSet<Key> =
            servers.iter().map(|server| (server.tenant.clone(), server.id.clone())).collect();
        self.connections.write().unwrap_or_else(PoisonError::into_inner).retain(|key, _| keys.contains(key));
        for server in servers {
            if self.follows.load(Ordering::Acquire) || self.connection(&server.tenant, &server.id).is_some() {
                self.set(server);
            }
        }
        Ok(())
    }

    /// Returns a server for a call; one that nobody has connected to yet is connected to now.
    pub(super) async fn for_call(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Arc<Connection>, CallError> {
        if let Some(connection) = self.connection(tenant, id) {
            return Ok(connection);
        }
        let _turn = self.reloading.lock().await;
        let all = self.parts.home.servers().await;
        let all = all.map_err(|error| CallError::internal(error.to_string()))?;
        let found = all.into_iter().find(|server| server.tenant == *tenant && server.id == *id);
        self.set(found.ok_or_else(|| not_connected(id, "it is not configured"))?);
        self.connection(tenant, id).ok_or_else(|| not_connected(id, "it is switched off"))
    }

    pub(super) fn connection(&self, tenant: &TenantId, id: &BundleSlug) -> Option<Arc<Connection>> {
        let key = (tenant.clone(), id.clone());
        self.connections.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

pub(super) fn not_connected(id: &dyn Display, why: &str) -> CallError {
    CallError::new(ErrorCode::Network, format!("the MCP server `{id}` is not connected: {why}"))
        .for_model("the server of this tool cannot be reached at present")
}
