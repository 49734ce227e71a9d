//! Servers that a definition names by their address alone: connected to when a tool of theirs is first called, and kept
//! for the calls after it. They are not configured, so nothing that they list is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use haft_core::mcp::{ListedTool, McpServer, StreamableHttp, Transport};
use haft_core::name::{BundleSlug, NameError, TenantId};
use haft_core::{BoxFuture, hash};

use super::clients::{ClientParts, McpServerStore};
use super::connection::Connection;

/// How many are kept at most, and for how long after the last call.
const MAX_COUNT: usize = 64;
const KEPT: Duration = Duration::from_mins(10);

/// What a definition says of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
}

impl Address {
    /// Returns the server as if it were configured, under a name that nothing else has.
    fn server(&self, tenant: &TenantId) -> Result<McpServer, NameError> {
        let mut digest = hash::of_bytes(format!("{self:?}").as_bytes());
        digest.truncate(12);
        let (url, headers) = (self.url.clone(), self.headers.clone());
        let id = BundleSlug::new(&format!("address-{digest}"))?;
        let transport = Transport::Http(StreamableHttp { url, headers, oauth: None });
        Ok(McpServer { accept_changes: true, ..McpServer::new(id, tenant.clone(), transport) })
    }
}

type Key = (TenantId, Address);

/// The servers that are connected to by their address.
pub(super) struct Addresses {
    parts: Arc<ClientParts>,
    connections: Mutex<HashMap<Key, (Arc<Connection>, Instant)>>,
}

impl Addresses {
    pub(super) fn new(parts: &ClientParts) -> Self {
        let parts = ClientParts {
            sandbox: parts.sandbox.clone(),
            egress: parts.egress.clone(),
            secrets: Arc::clone(&parts.secrets),
            home: Arc::new(Nowhere),
        };
        Self { parts: Arc::new(parts), connections: Mutex::default() }
    }

    /// Returns the connection to a server, made now where there is none.
    pub(super) fn connection(
        &self,
        tenant: &TenantId,
        address: &Address,
    ) -> Result<Arc<Connection>, NameError> {
        let now = Instant::now();
        let key = (tenant.clone(), address.clone());
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((connection, used)) = connections.get_mut(&key) {
            *used = now;
            return Ok(Arc::clone(connection));
        }
        let server = address.server(tenant)?;
        connections.retain(|_, (_, used)| now.duration_since(*used) < KEPT);
        while connections.len() >= MAX_COUNT {
            let oldest = connections.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            connections.remove(&oldest);
        }
        let connection = Arc::new(Connection::open(server, &self.parts));
        connections.insert(key, (Arc::clone(&connection), now));
        Ok(connection)
    }
}

/// Where nothing is configured and nothing is kept.
struct Nowhere;

impl McpServerStore for Nowhere {
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
