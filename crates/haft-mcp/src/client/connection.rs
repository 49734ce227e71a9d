//! One server, kept connected.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use haft_core::mcp::{McpServer, Phase, ServerState, Transport};
use haft_core::problem::excerpt;
use haft_sandbox::Running;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, DiscoverRequest, PingRequest, ProtocolVersion, SubscriptionFilter};
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
use super::direct::Direct;
use super::filled::{Filler, Scrubber};
use super::handler::Listener;
use super::listing::{self, Listing};
use super::oauth::Auth;
use super::opening::{self, Opened};
use super::stderr::Tail;
use super::stdio;
use super::words;

/// How long a server may take to be ready: many are fetched by a package manager first.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// How long one answer that is no call may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// How often a server that says nothing is asked whether it is there.
const ASK_EVERY: Duration = Duration::from_secs(30);
/// The longest wait between attempts.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// Lists are not read more often than this, however often a server says that they changed.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// How many reasons are shown why tools were not taken.
const SHOWN_REFUSED: usize = 20;
/// So many failures in a row, and calls are refused at once until it is there again.
const BREAKS_AFTER: u32 = 3;

/// What a call needs of a server that answers.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    /// The shorter way for calls, where there is one.
    pub(super) direct: Option<Arc<Direct>>,
    pub(super) listener: Listener,
    pub(super) scrubber: Scrubber,
}

/// One server. Dropping it ends the connection, and the program where there is one.
pub(super) struct Connection {
    shared: Arc<Shared>,
    _task: AbortOnDropHandle<()>,
}

struct Shared {
    /// As it is configured now; how it is reached stays the same.
    server: Mutex<McpServer>,
    state: Mutex<ServerState>,
    tail: Tail,
    link: watch::Sender<Option<Link>>,
    /// Counts the lists that were read.
    lists: watch::Sender<u64>,
    /// Asks to try again, or to read the list again, now.
    wake: Notify,
    /// Who gets its tokens.
    auth: Mutex<Option<Arc<Auth>>>,
}

impl Shared {
    fn server(&self) -> McpServer {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, change: impl FnOnce(&mut ServerState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes who gets the tokens from here on; what the server wants is still what it wanted.
    fn follow(&self, auth: Option<Arc<Auth>>) {
        let mut place = self.auth.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(before), Some(auth)) = (&*place, &auth) {
            auth.wants(before.challenge());
        }
        *place = auth;
    }
}

/// Why a server is not there.
struct Gone {
    why: String,
    needs_auth: bool,
}

impl Gone {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), needs_auth: false }
    }
}

/// A server that answers.
struct Session {
    service: RunningService<RoleClient, Listener>,
    link: Link,
    auth: Option<Arc<Auth>>,
    /// The program, which ends when this is dropped.
    _program: Option<Running>,
}

impl Connection {
    /// Starts to connect, and goes on until dropped.
    pub(super) fn open(server: McpServer, parts: &Arc<ClientParts>) -> Self {
        let state = ServerState {
            phase: Phase::Connecting,
            error: None,
            stderr: Vec::new(),
            server_info: None,
            protocol: None,
            tools: 0,
            refused: Vec::new(),
            failures: 0,
        };
        let shared = Arc::new(Shared {
            server: Mutex::new(server.clone()),
            state: Mutex::new(state),
            tail: Tail::default(),
            link: watch::Sender::new(None),
            lists: watch::Sender::new(0),
            wake: Notify::new(),
            auth: Mutex::default(),
        });
        let keeper = Keeper { server, parts: Arc::clone(parts), shared: Arc::clone(&shared) };
        let task = AbortOnDropHandle::new(tokio::spawn(keeper.keep()));
        Self { shared, _task: task }
    }

    /// Returns its configuration.
    pub(super) fn server(&self) -> McpServer {
        self.shared.server()
    }

    /// Takes a configuration that does not change how it is reached; tells whether it is one. What it says of tools
    /// holds as soon as the list was read again.
    pub(super) fn follow(&self, server: &McpServer) -> bool {
        let mut known = self.shared.server.lock().unwrap_or_else(PoisonError::into_inner);
        if known.transport != server.transport {
            return false;
        }
        let of_tools = |server: &McpServer| (server.accept_changes, server.policy, server.prefix.clone());
        if of_tools(&known) != of_tools(server) {
            self.shared.wake.notify_one();
        }
        known.clone_from(server);
        true
    }

    /// Returns who gets its tokens, once it was spoken to; nobody where it takes none of them.
    pub(super) async fn auth(&self) -> Option<Arc<Auth>> {
        let mut link = self.shared.link.subscribe();
        loop {
            link.borrow_and_update();
            if self.state().phase != Phase::Connecting {
                return self.shared.auth.lock().unwrap_or_else(PoisonError::into_inner).clone();
            }
            link.changed().await.ok()?;
        }
    }

    /// Returns how it is doing.
    pub(super) fn state(&self) -> ServerState {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        state.stderr = self.shared.tail.lines();
        state
    }

    /// Returns what a call needs; waits while it is being connected, but not while it fails again and again.
    pub(super) async fn link(&self) -> Result<Link, String> {
        let mut link = self.shared.link.subscribe();
        loop {
            if let Some(link) = link.borrow_and_update().clone() {
                return Ok(link);
            }
            let state = self.state();
            if state.phase == Phase::NeedsAuth || state.failures >= BREAKS_AFTER {
                return Err(state.error.unwrap_or_else(|| "it is not connected".to_owned()));
            }
            if link.changed().await.is_err() {
                return Err("it was removed".to_owned());
            }
        }
    }

    /// Reads the list again, or tries again to connect; waits for the list, or for the failure.
    pub(super) async fn refresh(&self) -> Result<(), String> {
        let (mut lists, mut link) = (self.shared.lists.subscribe(), self.shared.link.subscribe());
        let before = self.state();
        if before.phase != Phase::Connecting {
            self.shared.wake.notify_one();
        }
        let told = async {
            loop {
                tokio::select! {
                    biased;
                    listed = lists.changed() => return listed.map_err(|_| "it was removed".to_owned()),
                    _ = link.changed() => {
                        let state = self.state();
                        if state.failures > before.failures {
                            return Err(state.error.unwrap_or_default());
                        }
                    }
                }
            }
        };
        timeout(READY_WITHIN, told)
            .await
            .unwrap_or_else(|_| Err("the server did not answer in time".to_owned()))
    }
}

/// Connects, holds, and connects again.
struct Keeper {
    server: McpServer,
    parts: Arc<ClientParts>,
    shared: Arc<Shared>,
}

impl Keeper {
    async fn keep(self) {
        let mut failures: u32 = 0;
        loop {
            self.shared.set(|state| state.phase = Phase::Connecting);
            self.shared.tail.begin();
            let gone = match timeout(READY_WITHIN, self.connect()).await {
                Ok(Ok(session)) => self.hold(session, &mut failures).await,
                Ok(Err(gone)) => gone,
                Err(_) => Gone::new(format!("it was not ready within {} seconds", READY_WITHIN.as_secs())),
            };
            self.shared.link.send_replace(None);
            failures = failures.saturating_add(1);
            let why = self.with_last_words(gone.why).await;
            tracing::info!(server = %self.server.id, tenant = %self.server.tenant, error = why, "an MCP server is gone");
            self.shared.set(|state| {
                state.phase = if gone.needs_auth { Phase::NeedsAuth } else { Phase::Error };
                state.error = Some(why);
                state.failures = failures;
            });
            // Whoever waits for a connection looks at the state again.
            self.shared.link.send_replace(None);
            tokio::select! {
                () = tokio::time::sleep(wait(failures)) => {}
                () = self.shared.wake.notified() => {}
            }
        }
    }

    /// What a program wrote before it ended often says why.
    async fn with_last_words(&self, why: String) -> String {
        if matches!(self.server.transport, Transport::Http(_)) {
            return why;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let last = self.shared.tail.last(3);
        if last.is_empty() { why } else { format!("{why}; it wrote: {}", last.join(" / ")) }
    }

    async fn connect(&self) -> Result<Session, Gone> {
        let listener = Listener::default();
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            // The newest version that begins in the older way.
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        match &self.server.transport {
            Transport::Stdio(stdio) => {
                let mut filler = Filler::new(&self.server.tenant, &self.parts.secrets);
                filler.hide_literals(&self.server.transport);
                let started = stdio::start(&self.parts.sandbox, stdio, filler, &self.shared.tail).await;
                let (program, scrubber) = started.map_err(Gone::new)?;
                let served = serve_client_with_lifecycle(listener.clone(), program.transport, mode).await;
                let service = served.map_err(|error| self.not_begun(&error, &scrubber))?;
                Ok(session(service, listener, scrubber, Some(program.running)))
            }
            Transport::Http(http) => {
                let Opened { client, url, scrubber } =
                    opening::open(&self.parts, &self.server, http, &listener).await.map_err(Gone::new)?;
                let auth = client.auth.clone();
                self.shared.follow(auth.clone());
                let config = StreamableHttpClientTransportConfig::with_uri(url.clone());
                let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
                let served = serve_client_with_lifecycle(listener.clone(), transport, mode).await;
                let service = served.map_err(|error| self.not_begun(&error, &scrubber))?;
                let mut session = session(service, listener.clone(), scrubber, None);
                if let Some(info) =
                    session.link.peer.peer_info().filter(|info| is_newer(&info.protocol_version))
                {
                    session.link.direct =
                        Direct::new(client, &url, &info.protocol_version, listener).ok().map(Arc::new);
                }
                Ok(Session { auth, ..session })
            }
        }
    }

    /// Reads the list and stays until the server is gone.
    async fn hold(&self, session: Session, failures: &mut u32) -> Gone {
        let Session { service, link, auth, _program } = session;
        let info = link.peer.peer_info();
        if let Some(why) = info.as_ref().and_then(|info| words::of_version(&info.protocol_version)) {
            return Gone::new(why);
        }
        let refused = async || match &auth {
            Some(auth) => auth.refused.notified().await,
            None => std::future::pending().await,
        };
        let clean = |error: ServiceError| {
            // Some servers want a login only once they are asked for something.
            let needs_auth = auth.is_some() && refused().now_or_never().is_some();
            let why =
                if needs_auth { self.wants_login() } else { link.scrubber.clean(words::of_request(&error)) };
            Gone { why, needs_auth }
        };
        if let Err(error) = self.list(&link).await {
            return clean(error);
        }
        *failures = 0;
        self.shared.set(|state| {
            state.phase = Phase::Connected;
            state.error = None;
            state.failures = 0;
            state.protocol = info.as_ref().map(|info| info.protocol_version.to_string());
            state.server_info = info
                .as_ref()
                .and_then(|info| info.server_info.as_ref())
                .map(|info| excerpt(&format!("{} {}", info.name, info.version), 200));
        });
        self.shared.link.send_replace(Some(link.clone()));
        self.shared.lists.send_modify(|count| *count += 1);
        let newer = info.is_some_and(|info| is_newer(&info.protocol_version));
        let _told = newer.then(|| AbortOnDropHandle::new(tokio::spawn(subscribe(link.clone()))));
        let mut over = std::pin::pin!(service.waiting());
        let mut ask = tokio::time::interval_at(tokio::time::Instant::now() + ASK_EVERY, ASK_EVERY);
        loop {
            tokio::select! {
                biased;
                () = refused() => return Gone { why: self.wants_login(), needs_auth: true },
                _ = &mut over => return Gone::new("the connection ended"),
                () = link.listener.list_changed.notified() => {}
                () = self.shared.wake.notified() => {}
                _ = ask.tick() => {
                    if let Err(error) = answers(&link.peer, newer).await {
                        return clean(error);
                    }
                    continue;
                }
            }
            if let Err(error) = self.list(&link).await {
                return clean(error);
            }
            self.shared.lists.send_modify(|count| *count += 1);
            tokio::time::sleep(LIST_EVERY).await;
        }
    }

    fn not_begun(&self, error: &ClientInitializeError, scrubber: &Scrubber) -> Gone {
        let needs_auth = error.is_authorization_required();
        let why = if needs_auth {
            self.wants_login()
        } else {
            excerpt(&scrubber.clean(words::of_opening(error)), 500)
        };
        Gone { why, needs_auth }
    }

    fn wants_login(&self) -> String {
        let id = &self.server.id;
        if self.shared.auth.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            format!(
                "the server wants a login: run `haft mcp-server login {id}`, or put a token into its headers"
            )
        } else {
            "the server does not take the `Authorization` header that is configured".to_owned()
        }
    }

    /// Reads the whole list and hands it on.
    async fn list(&self, link: &Link) -> Result<(), ServiceError> {
        let Listing { tools, mut refused } = listing::read(&link.peer, ANSWERS_WITHIN).await?;
        let listed = tools.len();
        if let Some(direct) = &link.direct {
            direct.learn(&tools);
        }
        let mut taken = 0;
        match self.parts.home.listed(&self.shared.server(), tools).await {
            Ok(more) => {
                taken = listed.saturating_sub(more.len());
                refused.extend(more);
            }
            Err(error) => {
                tracing::error!(server = %self.server.id, %error, "the tools of an MCP server could not be stored");
            }
        }
        let more = refused.len().saturating_sub(SHOWN_REFUSED);
        refused.truncate(SHOWN_REFUSED);
        // The words are the server's, which knows the secrets that it was given.
        let mut refused: Vec<String> = refused.into_iter().map(|why| link.scrubber.clean(why)).collect();
        if more > 0 {
            refused.push(format!("and {more} more"));
        }
        for why in &refused {
            tracing::warn!(server = %self.server.id, why, "a tool of an MCP server was not taken");
        }
        self.shared.set(|state| {
            state.tools = taken;
            state.refused = refused;
        });
        Ok(())
    }
}

fn session(
    service: RunningService<RoleClient, Listener>,
    listener: Listener,
    scrubber: Scrubber,
    program: Option<Running>,
) -> Session {
    let link = Link { peer: service.peer().clone(), direct: None, listener, scrubber };
    Session { service, link, auth: None, _program: program }
}

/// Tells whether a server keeps no session.
fn is_newer(version: &ProtocolVersion) -> bool {
    *version >= ProtocolVersion::V_2026_07_28
}

/// Hears of changes as servers of the newer kind tell them. Where that ends, as when the server was started anew, the
/// list is looked at again.
async fn subscribe(link: Link) {
    let mut failures = 0;
    loop {
        let begun = tokio::time::Instant::now();
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match link.peer.listen(filter).await {
            Ok(mut subscription) => {
                while let Ok(Some(_)) = subscription.next().await {
                    link.listener.list_changed.notify_one();
                }
            }
            // It tells nothing.
            Err(ServiceError::McpError(_)) => return,
            Err(_) => {}
        }
        // One that ends it again and again is asked less and less often.
        failures = if begun.elapsed() > MAX_WAIT { 1 } else { failures + 1 };
        tokio::time::sleep(wait(failures)).await;
        link.listener.list_changed.notify_one();
    }
}

async fn answers(peer: &Peer<RoleClient>, newer: bool) -> Result<(), ServiceError> {
    // The newer kind knows no ping.
    let ping = if newer {
        ClientRequest::DiscoverRequest(DiscoverRequest::default())
    } else {
        ClientRequest::PingRequest(PingRequest::default())
    };
    match timeout(ANSWERS_WITHIN, peer.send_request(ping)).await {
        // That it does not know the question is an answer.
        Ok(Ok(_) | Err(ServiceError::McpError(_))) => Ok(()),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ServiceError::Timeout { timeout: ANSWERS_WITHIN }),
    }
}

/// A second after the first failure, then twice as long each time; spread, so that many do not come at once.
fn wait(failures: u32) -> Duration {
    let longest =
        Duration::from_secs(1).saturating_mul(1 << failures.saturating_sub(1).min(10)).min(MAX_WAIT);
    let spread = f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX);
    longest.mul_f64(0.75 + spread / 4.0)
}
