//! The connection to one server: connects, reads the list of tools, and reconnects after a failure.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use haft_core::account::AccountUser;
use haft_core::backoff::Backoff;
use haft_core::mcp::CredentialMode;
use haft_core::mcp::{McpServer, Phase, ServerState, Transport};
use haft_core::problem::excerpt;
use haft_sandbox::Running;
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, DiscoverRequest, PingRequest, ProtocolVersion, ServerCapabilities, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::clients::ClientParts;
use super::config::{ConfigRenderer, Scrubber};
use super::endpoint::{self, HttpEndpoint};
use super::errors::{self, Health};
use super::handler::{NEWEST_INITIALIZED, NotificationHandler};
use super::listing::{self, Listing};
use super::message_limit::max_message_bytes;
use super::oauth::Auth;
use super::probe;
use super::stateless::StatelessCaller;
use super::stderr::StderrTail;
use super::stdio::{self, StartOptions};

/// The timeout of a request other than a call.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an idle connection is checked.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The longest wait between connection attempts.
const MAX_BACKOFF: Duration = Duration::from_mins(1);
/// The shortest time between two reads of the list, however often a server announces a change.
const MIN_LIST_INTERVAL: Duration = Duration::from_secs(1);
/// How many rejected tools are shown.
const MAX_REJECTED_SHOWN: usize = 20;
/// After this many consecutive failures calls fail immediately until the server is connected again.
const CIRCUIT_BREAKER_FAILURES: u32 = 3;

/// An open connection, as calls use it.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    /// Sends calls directly, for stateless HTTP servers.
    pub(super) stateless: Option<Arc<StatelessCaller>>,
    pub(super) handler: NotificationHandler,
    pub(super) scrubber: Scrubber,
}

/// The connection to one server. Dropping it closes the connection and kills a program.
pub(super) struct Connection {
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    /// The current configuration; its transport never changes.
    server: Mutex<McpServer>,
    state: Mutex<ServerState>,
    tail: StderrTail,
    link: watch::Sender<Option<Link>>,
    /// Counts the reads of the list.
    list_reads: watch::Sender<u64>,
    /// Requests a new connection attempt or another read of the list.
    wake: Notify,
    /// Provides access tokens.
    auth: Mutex<Option<Arc<Auth>>>,
    /// Whether the egress guard denied the last connection.
    is_denied: AtomicBool,
}

impl Shared {
    fn server(&self) -> McpServer {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, change: impl FnOnce(&mut ServerState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Replaces the token provider; the challenge of the server is kept.
    fn set_auth(&self, auth: Option<Arc<Auth>>) {
        let mut current = self.auth.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(before), Some(auth)) = (&*current, &auth) {
            auth.set_challenge(before.challenge());
        }
        *current = auth;
    }
}

/// Why a connection ended.
struct Disconnect {
    message: String,
    needs_auth: bool,
    /// Whether the egress guard denied the connection.
    is_denied: bool,
}

impl Disconnect {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), needs_auth: false, is_denied: false }
    }

    fn needs_auth(message: String) -> Self {
        Self { needs_auth: true, ..Self::new(message) }
    }
}

/// Why a call has no connection.
pub(super) enum LinkError {
    /// The server is unavailable.
    NotConnected(String),
    /// The egress guard denies the server.
    Denied(String),
    /// The server requires a login.
    NeedsAuth(String),
}

/// An initialized connection.
struct Session {
    service: RunningService<RoleClient, NotificationHandler>,
    link: Link,
    auth: Option<Arc<Auth>>,
    /// The program, killed on drop.
    _program: Option<Running>,
}

impl Connection {
    /// Opens a connection and keeps it open until dropped.
    pub(super) fn open(server: McpServer, parts: &Arc<ClientParts>) -> Self {
        let user = AccountUser { tenant: server.tenant.clone(), actor: None };
        Self::open_for(server, parts, user)
    }

    /// Opens a connection with the accounts of a person.
    pub(super) fn open_for(server: McpServer, parts: &Arc<ClientParts>, user: AccountUser) -> Self {
        let state = ServerState { phase: pending_phase(&server.transport), ..ServerState::disconnected() };
        let shared = Arc::new(Shared {
            server: Mutex::new(server.clone()),
            state: Mutex::new(state),
            tail: StderrTail::default(),
            link: watch::Sender::new(None),
            list_reads: watch::Sender::new(0),
            wake: Notify::new(),
            auth: Mutex::default(),
            is_denied: AtomicBool::new(false),
        });
        let task = ConnectionTask { server, user, parts: Arc::clone(parts), shared: Arc::clone(&shared) };
        let task = AbortOnDropHandle::new(tokio::spawn(task.run()));
        Self { shared, _task: task }
    }

    /// Returns the configuration of the server.
    pub(super) fn server(&self) -> McpServer {
        self.shared.server()
    }

    /// Returns whose credentials the connections to the server use.
    pub(super) fn credentials(&self) -> CredentialMode {
        self.shared.server.lock().unwrap_or_else(PoisonError::into_inner).credentials
    }

    /// Applies a configuration with the same transport and message limit; returns `false` where they differ. Settings of
    /// tools take effect with the next read of the list.
    pub(super) fn update(&self, server: &McpServer) -> bool {
        let mut known = self.shared.server.lock().unwrap_or_else(PoisonError::into_inner);
        if known.transport != server.transport || max_message_bytes(&known) != max_message_bytes(server) {
            return false;
        }
        let tool_settings =
            |server: &McpServer| (server.accept_changes, server.policy, server.prefix.clone());
        if tool_settings(&known) != tool_settings(server) {
            self.shared.wake.notify_one();
        }
        known.clone_from(server);
        true
    }

    /// Returns the token provider after the first connection attempt; `None` where the server needs none.
    pub(super) async fn auth(&self) -> Option<Arc<Auth>> {
        let mut link = self.shared.link.subscribe();
        loop {
            link.borrow_and_update();
            if !self.state().phase.is_pending() {
                return self.shared.auth.lock().unwrap_or_else(PoisonError::into_inner).clone();
            }
            link.changed().await.ok()?;
        }
    }

    /// Returns the state of the connection.
    pub(super) fn state(&self) -> ServerState {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        state.stderr = self.shared.tail.lines();
        state
    }

    /// Returns the open connection; waits while it is being opened, unless it keeps failing.
    pub(super) async fn link(&self) -> Result<Link, LinkError> {
        let mut link = self.shared.link.subscribe();
        loop {
            if let Some(link) = link.borrow_and_update().clone() {
                return Ok(link);
            }
            let state = self.state();
            let why = || state.error.clone().unwrap_or_else(|| "not connected".to_owned());
            // Another attempt would be denied, too.
            if self.shared.is_denied.load(Ordering::Relaxed) {
                return Err(LinkError::Denied(why()));
            }
            if state.phase == Phase::NeedsAuth {
                return Err(LinkError::NeedsAuth(why()));
            }
            if state.failures >= CIRCUIT_BREAKER_FAILURES {
                return Err(LinkError::NotConnected(why()));
            }
            if link.changed().await.is_err() {
                return Err(LinkError::NotConnected("the server was removed".to_owned()));
            }
        }
    }

    /// Records what a failed call says about the server, and checks whether it still responds.
    pub(super) fn report_failure(&self, link: &Link, error: &ServiceError) {
        let health = errors::health(error);
        if health == Health::Gone {
            let message = link.scrubber.clean(errors::request_message(error));
            self.shared.set(|state| {
                if state.phase == Phase::Connected {
                    (state.phase, state.error) = (Phase::Error, Some(message));
                }
            });
        }
        if health != Health::Alive {
            link.handler.check.notify_one();
        }
    }

    /// Checks whether the server still responds, after a call timed out.
    pub(super) fn check(&self) {
        if let Some(link) = &*self.shared.link.borrow() {
            link.handler.check.notify_one();
        }
    }

    /// Reads the list again, reconnecting if needed; waits for the list or the failure.
    pub(super) async fn refresh(&self) -> Result<(), String> {
        let (mut list_reads, mut link) = (self.shared.list_reads.subscribe(), self.shared.link.subscribe());
        let before = self.state();
        if !before.phase.is_pending() {
            self.shared.wake.notify_one();
        }
        let result = async {
            loop {
                tokio::select! {
                    biased;
                    listed = list_reads.changed() => return listed.map_err(|_| "the server was removed".to_owned()),
                    _ = link.changed() => {
                        let state = self.state();
                        if state.failures > before.failures {
                            return Err(state.error.unwrap_or_default());
                        }
                    }
                }
            }
        };
        let limit = self.server().start_timeout() + REQUEST_TIMEOUT;
        timeout(limit, result)
            .await
            .unwrap_or_else(|_| Err(format!("timeout ({}) exceeded", haft_core::duration::format(limit))))
    }
}

/// Keeps a connection open.
struct ConnectionTask {
    server: McpServer,
    /// Whose accounts it uses.
    user: AccountUser,
    parts: Arc<ClientParts>,
    shared: Arc<Shared>,
}

impl ConnectionTask {
    async fn run(self) {
        let mut failures: u32 = 0;
        loop {
            self.shared.set(|state| state.phase = pending_phase(&self.server.transport));
            self.shared.tail.start_program();
            let limit = self.shared.server().start_timeout();
            let disconnect = match timeout(limit, self.connect()).await {
                Ok(Ok(session)) => self.serve(session, &mut failures).await,
                Ok(Err(disconnect)) => disconnect,
                Err(_) => Disconnect::new(format!(
                    "start timeout ({}) exceeded; raise it with `haft mcp-server update {} --start-timeout DURATION`",
                    haft_core::duration::format(limit),
                    self.server.id
                )),
            };
            self.shared.link.send_replace(None);
            failures = failures.saturating_add(1);
            let message = self.with_stderr(disconnect.message).await;
            tracing::info!(server = %self.server.id, tenant = %self.server.tenant, error = message, "an MCP server is not connected");
            self.shared.set(|state| {
                state.phase = if disconnect.needs_auth { Phase::NeedsAuth } else { Phase::Error };
                state.error = Some(message);
                state.failures = failures;
            });
            self.shared.is_denied.store(disconnect.is_denied, Ordering::Relaxed);
            // Wakes those who wait for a connection.
            self.shared.link.send_replace(None);
            tokio::select! {
                () = tokio::time::sleep(backoff(failures)) => {}
                () = self.shared.wake.notified() => {}
            }
        }
    }

    /// Adds the last lines of standard error, which often name the cause.
    async fn with_stderr(&self, message: String) -> String {
        let Transport::Stdio(program) = &self.server.transport else { return message };
        tokio::time::sleep(Duration::from_millis(50)).await;
        let last = self.shared.tail.last(3);
        if let Some(message) = stdio::missing_program(program, &last) {
            return message;
        }
        if last.is_empty() { message } else { format!("{message}; stderr: {}", last.join(" / ")) }
    }

    async fn connect(&self) -> Result<Session, Disconnect> {
        let handler = NotificationHandler::default();
        match &self.server.transport {
            Transport::Stdio(stdio) => {
                let stdio = &stdio::confined(stdio, &self.server.tenant).map_err(Disconnect::new)?;
                let mut renderer = ConfigRenderer::new(self.user.clone(), &self.parts.secrets);
                renderer.hide_literals(&self.server.transport);
                let options = StartOptions {
                    tail: &self.shared.tail,
                    handler: &handler,
                    max_message_bytes: max_message_bytes(&self.server),
                    workspace: None,
                };
                let started = stdio::start(&self.parts.sandbox, stdio, renderer, options).await;
                let (program, scrubber) = started.map_err(Disconnect::new)?;
                let served = probe::serve(handler.clone(), program.transport).await;
                let service = served.map_err(|error| self.connect_failure(&error, &scrubber))?;
                Ok(session(service, handler, scrubber, Some(program.running)))
            }
            Transport::Http(http) => {
                let HttpEndpoint { client, url, scrubber } =
                    endpoint::resolve(&self.parts, &self.server, http, &self.user, &handler)
                        .await
                        .map_err(Disconnect::new)?;
                let auth = client.auth.clone();
                self.shared.set_auth(auth.clone());
                let config = StreamableHttpClientTransportConfig::with_uri(url.clone());
                let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
                let served = serve_client_with_lifecycle(handler.clone(), transport, lifecycle()).await;
                let service = served.map_err(|error| self.connect_failure(&error, &scrubber))?;
                let mut session = session(service, handler.clone(), scrubber, None);
                if let Some(info) =
                    session.link.peer.peer_info().filter(|info| is_stateless(&info.protocol_version))
                {
                    session.link.stateless =
                        StatelessCaller::new(client, &url, &info.protocol_version, handler)
                            .ok()
                            .map(Arc::new);
                }
                Ok(Session { auth, ..session })
            }
        }
    }

    /// Reads the list and keeps the connection until it ends.
    async fn serve(&self, session: Session, failures: &mut u32) -> Disconnect {
        let Session { service, link, auth, _program } = session;
        let info = link.peer.peer_info();
        let version = info.as_ref().map(|info| &info.protocol_version);
        if let Some(message) = version.and_then(errors::unsupported_version) {
            return Disconnect::new(message);
        }
        let rejected = async || match &auth {
            Some(auth) => auth.rejected.notified().await,
            None => std::future::pending().await,
        };
        let disconnect = |error: ServiceError| {
            // Some servers require a login only for requests after the first.
            let needs_auth = auth.is_some() && rejected().now_or_never().is_some();
            let message = if needs_auth {
                self.login_message()
            } else {
                link.scrubber.clean(errors::request_message(&error))
            };
            Disconnect { needs_auth, ..Disconnect::new(message) }
        };
        if let Err(error) = self.list(&link).await {
            return disconnect(error);
        }
        *failures = 0;
        self.shared.is_denied.store(false, Ordering::Relaxed);
        self.set_connected();
        self.shared.set(|state| {
            state.failures = 0;
            state.protocol = info.as_ref().map(|info| info.protocol_version.to_string());
            state.server_info = info
                .as_ref()
                .and_then(|info| info.server_info.as_ref())
                .map(|info| excerpt(&format!("{} {}", info.name, info.version), 200));
        });
        self.shared.link.send_replace(Some(link.clone()));
        self.shared.list_reads.send_modify(|count| *count += 1);
        let stateless = info.as_ref().is_some_and(|info| is_stateless(&info.protocol_version));
        if !info.is_some_and(|info| announces_changes(&info.capabilities)) {
            link.handler.is_silent.store(true, Ordering::Relaxed);
        }
        let _subscription = stateless.then(|| AbortOnDropHandle::new(tokio::spawn(subscribe(link.clone()))));
        let mut ended = std::pin::pin!(service.waiting());
        let interval = |period| tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        let (mut pings, mut polls) = (interval(PING_INTERVAL), interval(self.parts.poll_interval));
        loop {
            tokio::select! {
                biased;
                () = rejected() => return Disconnect::needs_auth(self.login_message()),
                _ = &mut ended => return Disconnect::new("the connection was closed"),
                () = link.handler.list_changed.notified() => {}
                () = self.shared.wake.notified() => {}
                () = check(&link, &mut pings) => {
                    if let Err(error) = ping(&link.peer, stateless).await {
                        return disconnect(error);
                    }
                    self.set_connected();
                    continue;
                }
                _ = polls.tick() => if !link.handler.is_silent.load(Ordering::Relaxed) { continue },
            }
            if let Err(error) = self.list(&link).await {
                return disconnect(error);
            }
            self.shared.list_reads.send_modify(|count| *count += 1);
            tokio::time::sleep(MIN_LIST_INTERVAL).await;
        }
    }

    fn set_connected(&self) {
        self.shared.set(|state| (state.phase, state.error) = (Phase::Connected, None));
    }

    fn connect_failure(&self, error: &ClientInitializeError, scrubber: &Scrubber) -> Disconnect {
        let needs_auth = error.is_authorization_required();
        if needs_auth {
            return Disconnect::needs_auth(self.login_message());
        }
        let message = excerpt(&scrubber.clean(errors::connect_message(error)), 500);
        Disconnect { is_denied: errors::is_denied(error), ..Disconnect::new(message) }
    }

    fn login_message(&self) -> String {
        let id = &self.server.id;
        if self.shared.auth.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            format!("login required: run `haft mcp-server login {id}`, or add a token to its headers")
        } else {
            "the server rejected the configured `Authorization` header".to_owned()
        }
    }

    /// Reads the list and stores it.
    async fn list(&self, link: &Link) -> Result<(), ServiceError> {
        let Listing { tools, mut rejected } = listing::read(&link.peer, REQUEST_TIMEOUT).await?;
        let listed = tools.len();
        if let Some(stateless) = &link.stateless {
            stateless.set_tools(&tools);
        }
        let mut accepted = 0;
        match self.parts.store.listed(&self.shared.server(), tools).await {
            Ok(more) => {
                accepted = listed.saturating_sub(more.len());
                rejected.extend(more);
            }
            Err(error) => {
                tracing::error!(server = %self.server.id, %error, "failed to store the tools of an MCP server");
            }
        }
        let more = rejected.len().saturating_sub(MAX_REJECTED_SHOWN);
        rejected.truncate(MAX_REJECTED_SHOWN);
        // The reasons quote the server, which knows its secrets.
        let mut rejected: Vec<String> =
            rejected.into_iter().map(|reason| link.scrubber.clean(reason)).collect();
        if more > 0 {
            rejected.push(format!("and {more} more"));
        }
        for reason in &rejected {
            tracing::warn!(server = %self.server.id, reason, "rejected a tool of an MCP server");
        }
        self.shared.set(|state| {
            state.tools = accepted;
            state.refused = rejected;
        });
        Ok(())
    }
}

/// Returns the protocol versions to connect with over HTTP.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(NEWEST_INITIALIZED),
    }
}

/// Returns the phase until the first response of a server.
fn pending_phase(transport: &Transport) -> Phase {
    match transport {
        Transport::Stdio(_) => Phase::Starting,
        Transport::Http(_) => Phase::Connecting,
    }
}

fn session(
    service: RunningService<RoleClient, NotificationHandler>,
    handler: NotificationHandler,
    scrubber: Scrubber,
    program: Option<Running>,
) -> Session {
    let link = Link { peer: service.peer().clone(), stateless: None, handler, scrubber };
    Session { service, link, auth: None, _program: program }
}

/// Waits for the time of the next ping, or for a failed call.
async fn check(link: &Link, pings: &mut tokio::time::Interval) {
    tokio::select! {
        () = link.handler.check.notified() => {}
        _ = pings.tick() => {}
    }
}

/// Returns whether a server declares that it announces changes of its list.
fn announces_changes(capabilities: &ServerCapabilities) -> bool {
    capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
}

/// Returns whether servers of a version have no sessions.
fn is_stateless(version: &ProtocolVersion) -> bool {
    *version >= ProtocolVersion::V_2026_07_28
}

/// Subscribes to list changes of a stateless server. When the subscription ends, as after a restart of the server, the
/// list is read again.
async fn subscribe(link: Link) {
    let mut failures = 0;
    loop {
        let start = tokio::time::Instant::now();
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match link.peer.listen(filter).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    link.handler.list_changed.notify_one();
                }
            }
            // The server does not support subscriptions.
            Err(ServiceError::McpError(_)) => return link.handler.is_silent.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
        // The interval grows for a server that keeps ending the subscription.
        failures = if start.elapsed() > MAX_BACKOFF { 1 } else { failures + 1 };
        tokio::time::sleep(backoff(failures)).await;
        link.handler.list_changed.notify_one();
    }
}

async fn ping(peer: &Peer<RoleClient>, stateless: bool) -> Result<(), ServiceError> {
    // Version 2026-07-28 has no `ping`.
    let request = if stateless {
        ClientRequest::DiscoverRequest(DiscoverRequest::default())
    } else {
        ClientRequest::PingRequest(PingRequest::default())
    };
    match timeout(REQUEST_TIMEOUT, peer.send_request(request)).await {
        // Any response shows that the server is alive.
        Ok(Ok(_) | Err(ServiceError::McpError(_))) => Ok(()),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ServiceError::Timeout { timeout: REQUEST_TIMEOUT }),
    }
}

/// Returns an exponential backoff with jitter, starting at one second.
fn backoff(failures: u32) -> Duration {
    const WAITS: Backoff = Backoff::new(Duration::from_secs(1), MAX_BACKOFF).spread(0.25);
    WAITS.wait(failures.saturating_sub(1), haft_runtime::retry::random())
}
