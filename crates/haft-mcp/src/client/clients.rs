//! The configured servers: their connections, and logging in to them.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::account::{AccountId, AccountUser, Accounts};
use haft_core::catalog::StoreError;
use haft_core::id::ActorId;
use haft_core::mcp::{CredentialMode, mcp_provider, providers_of_server};
use haft_core::mcp::{ListedTool, McpServer, ServerState};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::secret::{Secret, SecretSource};
use haft_executors::egress::Egress;
use haft_sandbox::Sandbox;
use url::Url;

use super::ad_hoc::AdHocConnections;
use super::connection::Connection;
use super::endpoint;
use super::oauth::{self, BegunLogin, Callback, LoginStore, OAuthError};
use super::personal::PersonalConnections;
use super::workspace_program::WorkspacePrograms;

/// Stores the configuration of servers and the tools that they list.
pub trait McpServerStore: Send + Sync {
    /// Returns all configured servers.
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>>;
    /// Stores the complete list of a server after each read; returns the rejected tools with reasons.
    fn listed<'a>(
        &'a self,
        server: &'a McpServer,
        tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}

/// The dependencies of [`McpClients`].
pub struct ClientParts {
    /// Runs the programs of stdio servers.
    pub sandbox: Sandbox,
    /// Sends requests to HTTP servers.
    pub egress: Egress,
    /// Resolves `${NAME}` in configurations.
    pub secrets: Arc<dyn SecretSource>,
    /// Stores the configuration of servers.
    pub store: Arc<dyn McpServerStore>,
    /// How often the list of a server that cannot announce changes is read.
    pub poll_interval: Duration,
}

type Key = (TenantId, BundleSlug);

/// The connections to the configured servers. Dropping it closes them all.
pub struct McpClients {
    parts: Arc<ClientParts>,
    pub(super) ad_hoc: AdHocConnections,
    pub(super) workspace_programs: WorkspacePrograms,
    personal: PersonalConnections,
    connections: RwLock<HashMap<Key, Arc<Connection>>>,
    /// Held while a configuration is read and applied, so that an older one is never applied last.
    reload_lock: tokio::sync::Mutex<()>,
    /// Whether all servers are connected, not only those with calls.
    connects_all: AtomicBool,
}

impl McpClients {
    /// Creates the clients, without any connection.
    pub fn new(parts: ClientParts) -> Self {
        Self {
            ad_hoc: AdHocConnections::new(&parts),
            workspace_programs: WorkspacePrograms::default(),
            personal: PersonalConnections::new(&parts),
            parts: Arc::new(parts),
            connections: RwLock::default(),
            reload_lock: tokio::sync::Mutex::default(),
            connects_all: AtomicBool::new(false),
        }
    }

    /// Applies the configuration of a server: connects, reconnects where its transport changed, or disconnects.
    pub fn set(&self, server: McpServer) {
        let key = (server.tenant.clone(), server.id.clone());
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        let known = connections.get(&key).filter(|_| server.enabled);
        if known.is_some_and(|connection| connection.update(&server)) {
            return;
        }
        if server.enabled {
            connections.insert(key, Arc::new(Connection::open(server, &self.parts)));
        } else {
            connections.remove(&key);
        }
    }

    /// Returns the dependencies.
    pub(super) fn parts(&self) -> &ClientParts {
        &self.parts
    }

    /// Disconnects a server.
    pub fn remove(&self, tenant: &TenantId, id: &BundleSlug) {
        let key = (tenant.clone(), id.clone());
        self.connections.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }

    /// Reconnects a connected server.
    fn reconnect(&self, tenant: &TenantId, id: &BundleSlug) {
        let key = (tenant.clone(), id.clone());
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = connections.get_mut(&key) {
            *connection = Arc::new(Connection::open(connection.server(), &self.parts));
        }
    }

    /// Returns the state of a server; `None` where there is no connection.
    pub fn state(&self, tenant: &TenantId, id: &BundleSlug) -> Option<ServerState> {
        self.connection(tenant, id).map(|connection| connection.state())
    }

    /// Returns the states of all servers with a connection.
    pub fn states(&self) -> Vec<((TenantId, BundleSlug), ServerState)> {
        let connections = self.connections.read().unwrap_or_else(PoisonError::into_inner);
        connections.iter().map(|(key, connection)| (key.clone(), connection.state())).collect()
    }

    /// Reads the tools of a server again, reconnecting if needed, and waits for the result.
    pub async fn refresh(&self, tenant: &TenantId, id: &BundleSlug) -> Result<(), CallError> {
        let connection = self.connect(tenant, id).await?;
        connection.refresh().await.map_err(|why| not_connected(id, &why))
    }

    /// Connects all servers on the next reload, for programs that keep serving.
    pub fn connect_all(&self) {
        self.connects_all.store(true, Ordering::Release);
    }

    /// Applies the current configuration of all servers.
    pub async fn reload(&self) -> Result<(), StoreError> {
        let _guard = self.reload_lock.lock().await;
        let servers = self.parts.store.servers().await?;
        let keys: HashSet<Key> =
            servers.iter().map(|server| (server.tenant.clone(), server.id.clone())).collect();
        self.connections.write().unwrap_or_else(PoisonError::into_inner).retain(|key, _| keys.contains(key));
        self.personal.sweep(&servers);
        for server in servers {
            if self.connects_all.load(Ordering::Acquire)
                || self.connection(&server.tenant, &server.id).is_some()
            {
                self.set(server);
            }
        }
        Ok(())
    }

    /// Returns the connection of a server, connecting it on the first call.
    pub(super) async fn connect(
        &self,
        tenant: &TenantId,
        id: &BundleSlug,
    ) -> Result<Arc<Connection>, CallError> {
        if let Some(connection) = self.connection(tenant, id) {
            return Ok(connection);
        }
        let _guard = self.reload_lock.lock().await;
        let all = self.parts.store.servers().await;
        let all = all.map_err(|error| CallError::internal(error.to_string()))?;
        let found = all.into_iter().find(|server| server.tenant == *tenant && server.id == *id);
        self.set(found.ok_or_else(|| not_connected(id, "not configured"))?);
        self.connection(tenant, id).ok_or_else(|| not_connected(id, "disabled"))
    }

    /// Returns the connection that a call of somebody uses, and whose accounts it uses: those of that person, or none.
    pub(super) async fn connect_for(
        &self,
        user: &AccountUser,
        id: &BundleSlug,
    ) -> Result<UsedConnection, CallError> {
        let shared = self.connect(&user.tenant, id).await?;
        let mode = shared.credentials();
        if mode.is_shared() {
            return Ok(UsedConnection { connection: shared, person: None });
        }
        let versions = match self.account_versions(user, &shared.server()).await {
            Ok(versions) => versions,
            Err(error)
                if error.code == ErrorCode::CredentialRequired && mode == CredentialMode::PersonOrShared =>
            {
                return Ok(UsedConnection { connection: shared, person: None });
            }
            Err(error) => return Err(error),
        };
        // Without an actor, all that the server needs is shared.
        let Some(actor) = user.actor else { return Ok(UsedConnection { connection: shared, person: None }) };
        let connection = self.personal.connection(&self.parts, &shared, (user, actor), versions);
        Ok(UsedConnection { connection, person: Some(user.clone()) })
    }

    /// Returns the versions of the accounts that the connection of somebody needs.
    async fn account_versions(&self, user: &AccountUser, server: &McpServer) -> Result<Vec<i64>, CallError> {
        let accounts = self.accounts()?;
        let mut versions = Vec::new();
        for provider in providers_of_server(server) {
            let version = accounts.version(user, &provider).await?;
            versions.push(version.ok_or_else(|| accounts.required(user, &provider))?);
        }
        Ok(versions)
    }

    fn accounts(&self) -> Result<Arc<dyn Accounts>, CallError> {
        let accounts = self.parts.secrets.accounts();
        accounts.ok_or_else(|| CallError::internal("this program has no accounts of people"))
    }

    /// Notes that a server no longer accepts the login of a person; returns the error of the call.
    pub(super) async fn login_rejected(&self, user: &AccountUser, id: &BundleSlug) -> CallError {
        let provider = mcp_provider(id.as_str());
        match self.accounts() {
            Ok(accounts) => {
                accounts.expire(user, &provider).await;
                accounts.required(user, &provider)
            }
            Err(error) => error,
        }
    }

    /// Opens the connections of a person that need a new account: the tools of a server without a shared login are known
    /// when the first person has connected one.
    pub async fn account_connected(&self, account: &AccountId) {
        self.close_person(&account.tenant, account.actor);
        let servers = match self.parts.store.servers().await {
            Ok(servers) => servers,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot read the MCP servers");
                return;
            }
        };
        let user = AccountUser { tenant: account.tenant.clone(), actor: Some(account.actor) };
        let needs_it = |server: &McpServer| {
            server.tenant == account.tenant
                && server.enabled
                && !server.credentials.is_shared()
                && providers_of_server(server).contains(&account.provider)
        };
        for server in servers.into_iter().filter(needs_it) {
            if let Err(error) = self.connect_for(&user, &server.id).await {
                tracing::debug!(server = %server.id, %error, "no connection of a person yet");
            }
        }
    }

    /// Closes the connections of a person.
    pub fn close_person(&self, tenant: &TenantId, actor: ActorId) {
        self.personal.close(tenant, actor);
    }

    /// Begins a login to a server: the shared one, or that of a person.
    pub async fn begin_login(
        &self,
        id: &BundleSlug,
        user: &AccountUser,
        redirect: &str,
    ) -> Result<BegunLogin, OAuthError> {
        let redirect = Url::parse(redirect)
            .map_err(|error| OAuthError::Configuration(format!("invalid redirect URL: {error}")))?;
        let connection = self.connect(&user.tenant, id).await;
        let connection = connection.map_err(|error| OAuthError::Configuration(error.message))?;
        let Some(auth) = connection.auth().await else {
            let message = "no login needed: the server is a program, or its headers contain a token";
            return Err(OAuthError::Configuration(message.to_owned()));
        };
        let store = endpoint::login_store(&self.parts, &connection.server(), user);
        oauth::begin(&Arc::new(auth.with_store(store)), &redirect).await
    }

    /// Completes the shared login to a server and reconnects it.
    pub async fn finish_login(
        &self,
        (tenant, id): (&TenantId, &BundleSlug),
        data: &Secret,
        callback: Callback,
    ) -> Result<(), OAuthError> {
        let store = LoginStore::shared((tenant, id), self.parts.secrets.refresh_tokens());
        oauth::finish(&self.parts.egress, &store, data, callback).await?;
        self.reconnect(tenant, id);
        Ok(())
    }

    /// Deletes the shared login to a server and the client registered for it; returns whether there was one.
    pub async fn logout(&self, server: &McpServer) -> Result<bool, OAuthError> {
        let store = LoginStore::shared((&server.tenant, &server.id), self.parts.secrets.refresh_tokens());
        let existed = store.delete().await?;
        self.reconnect(&server.tenant, &server.id);
        Ok(existed)
    }

    fn connection(&self, tenant: &TenantId, id: &BundleSlug) -> Option<Arc<Connection>> {
        let key = (tenant.clone(), id.clone());
        self.connections.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

/// The connection of a call.
pub(super) struct UsedConnection {
    pub(super) connection: Arc<Connection>,
    /// Whose accounts it uses; `None` if it is shared.
    pub(super) person: Option<AccountUser>,
}

pub(super) fn not_connected(id: &dyn Display, why: &str) -> CallError {
    CallError::new(ErrorCode::Network, format!("MCP server `{id}` is not connected: {why}"))
        .for_model("the server of this tool is unavailable")
}
