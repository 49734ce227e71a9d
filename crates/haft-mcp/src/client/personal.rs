//! Connections with the accounts of people: one per server and person, opened with the first call and closed when idle.
//!
//! The versions of the accounts are compared at every call, so a connection never outlives the account that it was opened
//! with, wherever that was revoked or replaced.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::account::AccountUser;
use haft_core::id::ActorId;
use haft_core::mcp::{McpServer, Phase};
use haft_core::name::{BundleSlug, TenantId};

use super::ad_hoc::quiet_parts;
use super::clients::ClientParts;
use super::connection::Connection;

/// How many connections can be open.
const MAX_CONNECTIONS: usize = 256;
/// How long a connection stays open after its last call.
const IDLE_TIMEOUT: Duration = Duration::from_mins(10);

type Key = (TenantId, BundleSlug, ActorId);

/// The connections, by server and person.
pub(super) struct PersonalConnections {
    /// For the connections whose lists of tools are not stored.
    quiet: Arc<ClientParts>,
    open: Mutex<HashMap<Key, PersonalConnection>>,
}

struct PersonalConnection {
    connection: Arc<Connection>,
    /// The versions of the accounts that it was opened with.
    versions: Vec<i64>,
    /// Whether its list of tools is that of the server, because the server has no shared connection.
    lists: bool,
    last_used: Instant,
}

impl PersonalConnections {
    pub(super) fn new(parts: &ClientParts) -> Self {
        Self { quiet: Arc::new(quiet_parts(parts)), open: Mutex::default() }
    }

    /// Returns the connection of a person to a server, opening it if needed.
    pub(super) fn connection(
        &self,
        parts: &Arc<ClientParts>,
        shared: &Connection,
        (user, actor): (&AccountUser, ActorId),
        versions: Vec<i64>,
    ) -> Arc<Connection> {
        let (now, server) = (Instant::now(), shared.server());
        let key = (server.tenant.clone(), server.id.clone(), actor);
        let mut open = self.open();
        if let Some(known) = open.get_mut(&key)
            && known.versions == versions
            && known.connection.update(&server)
        {
            known.last_used = now;
            return Arc::clone(&known.connection);
        }
        open.remove(&key);
        while open.len() >= MAX_CONNECTIONS {
            let oldest = open.iter().min_by_key(|(_, known)| known.last_used).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            open.remove(&oldest);
        }
        let is_listed = |known: (&Key, &PersonalConnection)| {
            known.1.lists && known.0.0 == server.tenant && known.0.1 == server.id
        };
        let lists = shared.state().phase != Phase::Connected && !open.iter().any(is_listed);
        let parts = if lists { parts } else { &self.quiet };
        let connection = Arc::new(Connection::open_for(server, parts, user.clone()));
        let entry =
            PersonalConnection { connection: Arc::clone(&connection), versions, lists, last_used: now };
        open.insert(key, entry);
        connection
    }

    /// Closes the connections of a person to a server, or to all servers.
    pub(super) fn close(&self, tenant: &TenantId, actor: ActorId) {
        self.open().retain(|(of, _, person), _| of != tenant || *person != actor);
    }

    /// Closes the connections that are idle, and those to servers that are gone.
    pub(super) fn sweep(&self, servers: &[McpServer]) {
        let now = Instant::now();
        self.open().retain(|(tenant, id, _), known| {
            let is_known = |server: &McpServer| {
                server.enabled
                    && !server.credentials.is_shared()
                    && server.tenant == *tenant
                    && server.id == *id
            };
            now.duration_since(known.last_used) < IDLE_TIMEOUT && servers.iter().any(is_known)
        });
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Key, PersonalConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
