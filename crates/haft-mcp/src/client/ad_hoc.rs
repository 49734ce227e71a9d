//! Connections to servers that a tool definition names by URL. A connection opens with the first call and stays open for
//! later ones. These servers are not configured, so their lists of tools are not stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use haft_core::mcp::{ListedTool, McpServer, StreamableHttp, Transport};
use haft_core::name::{BundleSlug, NameError, TenantId};
use haft_core::{BoxFuture, hash};

use super::clients::{ClientParts, McpServerStore};
use super::connection::Connection;

/// How many connections can be open.
const MAX_CONNECTIONS: usize = 64;
/// How long a connection stays open after its last call.
const IDLE_TIMEOUT: Duration = Duration::from_mins(10);

/// The URL and the headers of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ServerAddress {
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
}

impl ServerAddress {
    /// Returns a server configuration with a unique id.
    fn server(&self, tenant: &TenantId) -> Result<McpServer, NameError> {
        let mut digest = hash::of_bytes(format!("{self:?}").as_bytes());
        digest.truncate(12);
        let (url, headers) = (self.url.clone(), self.headers.clone());
        let id = BundleSlug::new(&format!("address-{digest}"))?;
        let transport = Transport::Http(StreamableHttp { url, headers, oauth: None });
        Ok(McpServer { accept_changes: true, ..McpServer::new(id, tenant.clone(), transport) })
    }
}

type Key = (TenantId, ServerAddress);

/// The connections, by tenant and address.
pub(super) struct AdHocConnections {
    parts: Arc<ClientParts>,
    connections: Mutex<HashMap<Key, (Arc<Connection>, Instant)>>,
}

impl AdHocConnections {
    pub(super) fn new(parts: &ClientParts) -> Self {
        Self { parts: Arc::new(quiet_parts(parts)), connections: Mutex::default() }
    }

    /// Returns the connection to a server, opening it if needed.
    pub(super) fn connection(
        &self,
        tenant: &TenantId,
        address: &ServerAddress,
    ) -> Result<Arc<Connection>, NameError> {
        let now = Instant::now();
        let key = (tenant.clone(), address.clone());
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((connection, last_used)) = connections.get_mut(&key) {
            *last_used = now;
            return Ok(Arc::clone(connection));
        }
        let server = address.server(tenant)?;
        connections.retain(|_, (_, last_used)| now.duration_since(*last_used) < IDLE_TIMEOUT);
        while connections.len() >= MAX_CONNECTIONS {
            let oldest =
                connections.iter().min_by_key(|(_, (_, last_used))| *last_used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            connections.remove(&oldest);
        }
        let connection = Arc::new(Connection::open(server, &self.parts));
        connections.insert(key, (Arc::clone(&connection), now));
        Ok(connection)
    }
}

/// Returns the dependencies of connections whose lists of tools are not stored.
pub(super) fn quiet_parts(parts: &ClientParts) -> ClientParts {
    ClientParts {
        sandbox: parts.sandbox.clone(),
        egress: parts.egress.clone(),
        secrets: Arc::clone(&parts.secrets),
        store: Arc::new(NoStore),
        // The list is not used.
        poll_interval: Duration::from_hours(24),
    }
}

/// Stores nothing.
struct NoStore;

impl McpServerStore for NoStore {
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn listed<'a>(
        &'a self,
        _server: &'a McpServer,
        _tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
