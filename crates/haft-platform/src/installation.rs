//! An open installation: store, registry and pipeline, and what the capabilities need from them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_agent::model::{ModelEgress, ModelEgressError};
use haft_core::catalog::{ChangeSink, StoreError};
use haft_core::id::TokenId;
use haft_core::ledger::Ledger;
use haft_core::name::{NameError, TenantId};
use haft_core::principal::AllowList;
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_core::token::{Role, TokenRecord};
use haft_core::{Clock, Timestamp, hash};
use haft_executors::egress::{Egress, EgressRules, RulesError};
use haft_executors::files::{Files, RootsError};
use haft_executors::python::PythonEnvironments;
use haft_mcp::client::McpClients;
use haft_runtime::clock::SystemClock;
use haft_runtime::function::{FunctionExecutor, Functions};
use haft_runtime::limits::LimitSettings;
use haft_runtime::pipeline::{Pipeline, PipelineParts, TenantLimitSource, WaitingCalls};
use haft_runtime::queue::QueueRunner;
use haft_runtime::registry::Registry;
use haft_runtime::stages::Stage;
use haft_sandbox::{Sandbox, SandboxError};
use haft_store::{Blobs, ReindexReport, Store, StoreSettings};
use haft_workspace::{Limits, WorkspaceError};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::access::{Access, AccessRecords};
use crate::agents::{KnownAgents, ModelConnections};
use crate::artifacts::ArtifactHost;
use crate::built_ins::{InstallationHandle, Installed, install};
use crate::events::{EventHub, EventSink};
use crate::execution_resources::ExecutionResources;
use crate::local_token::{self, LocalTokenError};
use crate::maintenance::LoopStates;
use crate::mcp_approvals::McpApprovals;
use crate::mcp_resources::McpPackages;
use crate::metrics::{Gauges, Metrics};
use crate::policy::{LoadPolicyError, PolicyState};
use crate::rendering::RenderKey;
use crate::results::ResultStore;
use crate::retrieval::RetrievalHost;
use crate::runs::{AgentCallExecutor, RunEngine};
use crate::search::ToolSearch;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::workspaces::WorkspaceHost;
use crate::{mcp_connections, tenant_files, toolsets};

/// How often the usage counters are written.
const USAGE_INTERVAL: Duration = Duration::from_secs(5);
/// How often the last use of tokens is written.
const TOKEN_USE_INTERVAL: Duration = Duration::from_mins(1);
/// How long a request for metrics waits for the store.
const METRICS_TIMEOUT: Duration = Duration::from_secs(2);

/// An error that prevents an installation from opening.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The home folder cannot be created.
    #[error("cannot create the home folder `{}`", path.display())]
    Home {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The local token cannot be read or created.
    #[error(transparent)]
    LocalToken(#[from] LocalTokenError),
    /// The egress rules are invalid.
    #[error(transparent)]
    Egress(#[from] RulesError),
    /// The sandbox cannot be prepared.
    #[error("cannot prepare the sandbox")]
    Sandbox(#[from] SandboxError),
    /// The folders of file tools are invalid.
    #[error("invalid setting `files`: {0}")]
    Files(#[from] RootsError),
    /// A built-in tool has an invalid name.
    #[error("cannot create the built-in tools")]
    BuiltIns(#[from] NameError),
    /// The stored policy cannot be used.
    #[error("cannot load the policy")]
    Policy(#[from] LoadPolicyError),
    /// The folder of the files of workspaces cannot be opened.
    #[error("cannot open the workspaces")]
    Workspaces(#[from] WorkspaceError),
    /// The addresses of model servers are invalid.
    #[error("invalid setting `models.private_urls`: {0}")]
    Models(#[from] ModelEgressError),
    /// The store cannot be opened.
    #[error("cannot open the store")]
    Store(#[from] StoreError),
}

/// What an embedding program adds: functions, built-in tools that use them, and stages.
#[derive(Default)]
pub struct Extensions {
    /// Functions that definitions can refer to.
    pub functions: Functions,
    /// Tools that are compiled in.
    pub built_ins: Vec<ToolSpec>,
    /// Stages around every call, outermost first; they run inside the stages of the server.
    pub stages: Vec<Arc<dyn Stage>>,
}

/// An open installation.
pub struct Installation {
    settings: Settings,
    store: Arc<Store>,
    registry: Arc<Registry>,
    pipeline: Arc<Pipeline>,
    clock: Arc<dyn Clock>,
    policy: PolicyState,
    access: Arc<Access>,
    files: Files,
    local_token: Secret,
    metrics: Arc<Metrics>,
    sandbox: Sandbox,
    python_environments: PythonEnvironments,
    egress: Egress,
    mcp_clients: Arc<McpClients>,
    mcp_packages: Arc<McpPackages>,
    handle: InstallationHandle,
    workspaces: Arc<WorkspaceHost>,
    results: Arc<ResultStore>,
    render_key: RenderKey,
    search: Arc<ToolSearch>,
    events: Arc<EventHub>,
    queue_stop: CancellationToken,
    runs: RunEngine,
    retrieval: Arc<RetrievalHost>,
    artifacts: Arc<ArtifactHost>,
    maintenance: Arc<LoopStates>,
}

impl Installation {
    /// Opens an installation.
    pub async fn open(settings: Settings) -> Result<Arc<Self>, StartError> {
        Self::open_with(settings, Extensions::default()).await
    }

    /// Opens an installation with a program's own functions and tools.
    pub async fn open_with(settings: Settings, extensions: Extensions) -> Result<Arc<Self>, StartError> {
        let local_token = open_home(&settings)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let resources = ExecutionResources::new(&settings)?;
        let Extensions { functions, built_ins, stages } = extensions;
        let Installed { specs, handle } = {
            // Dropped at once, so that the future stays small.
            let parts = settings.built_ins.enabled.then(|| resources.built_in_parts(&settings, &clock));
            install(parts.as_ref(), &functions, built_ins)?
        };
        let executors = resources
            .executors(&settings, &clock, &local_token)
            .with(Arc::new(AgentCallExecutor::new(handle.clone())))
            .with(Arc::new(FunctionExecutor::new(functions)));
        let registry = resources.registry(executors);
        let (search, events, sink) = followers(&registry);
        let store = Store::open(store_settings(&settings), Arc::clone(&clock), sink).await?;
        store.set_built_ins(specs).await?;
        let policy = PolicyState::load(&store).await?;
        let metrics = Arc::new(Metrics::new(settings.metrics.top_tools));
        let access = Arc::new(Access::default());
        let secrets = secret_source(&settings, &store, &access);
        let model_egress = model_egress(&settings, &clock)?;
        let retrieval = resources.retrieval_host(&settings, &store, &secrets, &model_egress).await?;
        let artifacts = resources.artifact_host(&store).await?;
        let agents = KnownAgents::open(Arc::clone(&store)).await?;
        let runs = RunEngine::new(ModelConnections::new(model_egress, Arc::clone(&secrets)), agents);
        let mcp_clients = resources.mcp_clients(&secrets, &store);
        let blobs = Blobs::open(&settings.home, &settings.blobs)?;
        let workspaces = WorkspaceHost::open(&settings.home, Arc::clone(&store), &blobs, Limits::default())?;
        let results = Arc::new(ResultStore::new(&settings, &store, blobs));
        let render_key = RenderKey::new(store.signing_key("render").await?);
        let pipeline = Arc::new(Pipeline::new(PipelineParts {
            registry: Arc::clone(&registry),
            ledger: Some(Arc::clone(&store) as _),
            waiting: Some(waiting_calls(&settings, &store)),
            policy: Arc::clone(policy.handle()),
            observer: Some(metrics.observer()),
            rejections: Some(metrics.rejections()),
            secrets,
            clock: Arc::clone(&clock),
            stages,
            max_running: settings.server.max_running_calls,
            limits: limit_settings(&settings, &store),
            tenant_limits: Some(tenant_limits(&access)),
            workspace: None,
            workspaces: Some(workspaces.for_calls()),
            results: Some(Arc::clone(&results) as _),
        }));
        let app = Arc::new(Self {
            settings,
            store,
            registry,
            search,
            events,
            pipeline,
            clock,
            policy,
            access,
            files: resources.files,
            local_token,
            metrics,
            sandbox: resources.processes.sandbox().clone(),
            python_environments: resources.python_environments,
            egress: resources.egress,
            mcp_clients,
            mcp_packages: Arc::new(McpPackages::new(handle.clone())),
            handle: handle.clone(),
            workspaces,
            results,
            render_key,
            queue_stop: CancellationToken::new(),
            runs,
            retrieval,
            artifacts,
            maintenance: Arc::default(),
        });
        handle.set(&app);
        app.prepare().await?;
        Ok(app)
    }

    /// Loads and stores what needs the whole installation.
    async fn prepare(self: &Arc<Self>) -> Result<(), StoreError> {
        self.retrieval.connect(&self.pipeline);
        self.reload_access().await?;
        mcp_connections::declare_servers(self).await?;
        toolsets::start(self).await;
        Ok(())
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns an admin token for the owner of the home folder.
    pub fn local_token(&self) -> Secret {
        self.settings.token.clone().unwrap_or_else(|| self.local_token.clone())
    }

    /// Compiles every definition, so that lists show which are ready; a server does this in the background.
    pub async fn verify(&self) {
        let registry = Arc::clone(&self.registry);
        if let Err(error) = tokio::task::spawn_blocking(move || registry.verify()).await {
            tracing::error!(error = %error, "failed to compile the definitions");
        }
    }

    /// Probes the sandbox before the first tool needs it, and logs the result.
    pub async fn probe_sandbox(&self) {
        self.sandbox.probe_report(self.sandbox.settings().engine).await;
    }

    /// Rebuilds the index of the definitions from their files.
    pub async fn reindex(&self) -> Result<ReindexReport, StoreError> {
        self.store.reindex().await
    }

    /// Writes pending counters and closes the store.
    pub async fn close(&self) {
        self.save_usage().await;
        self.save_token_uses().await;
        self.store.close().await;
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub fn ledger(&self) -> &dyn Ledger {
        &*self.store
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn search(&self) -> &Arc<ToolSearch> {
        &self.search
    }

    /// Returns the live events.
    pub fn events(&self) -> &Arc<EventHub> {
        &self.events
    }

    /// Returns the runs of agents on this node.
    pub fn runs(&self) -> &RunEngine {
        &self.runs
    }

    /// Returns the retrieval pipelines on this node.
    pub fn retrieval(&self) -> &Arc<RetrievalHost> {
        &self.retrieval
    }

    /// Returns the code artifacts.
    pub fn artifacts(&self) -> &ArtifactHost {
        &self.artifacts
    }

    /// Returns the clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// Returns the workspaces of this node.
    pub fn workspaces(&self) -> &Arc<WorkspaceHost> {
        &self.workspaces
    }

    /// Returns the results of calls.
    pub fn results(&self) -> &ResultStore {
        &self.results
    }

    /// Returns the key by which the addresses of rendered results are signed.
    pub fn render_key(&self) -> &RenderKey {
        &self.render_key
    }

    /// Returns the guard of outgoing connections.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    pub fn mcp_clients(&self) -> &McpClients {
        &self.mcp_clients
    }

    /// Returns the packages whose skills MCP clients and tools read.
    pub fn mcp_packages(&self) -> &Arc<McpPackages> {
        &self.mcp_packages
    }

    /// Returns the decisions that persons make at MCP clients.
    pub fn mcp_approvals(&self) -> Arc<McpApprovals> {
        Arc::new(McpApprovals(self.handle.clone()))
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the installed packages of Python tools.
    pub fn python_environments(&self) -> &PythonEnvironments {
        &self.python_environments
    }

    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Returns the policy rules.
    pub fn policy(&self) -> &PolicyState {
        &self.policy
    }

    /// Returns which background loops run.
    pub fn maintenance(&self) -> &Arc<LoopStates> {
        &self.maintenance
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns all metrics in the text format of Prometheus. The counts of the store are left out if it is unavailable.
    pub async fn metrics_text(&self) -> String {
        let counted = tokio::time::timeout(METRICS_TIMEOUT, self.store.waiting_counts()).await;
        let waiting = counted.ok().and_then(Result::ok);
        self.metrics.text(&Gauges {
            tools: self.registry.snapshot().len(),
            running_calls: self.pipeline.running(),
            waiting,
        })
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reloads tenants, tokens and sessions after a change.
    pub async fn reload_access(&self) -> Result<(), StoreError> {
        let _turn = self.access.reload.lock().await;
        let mut tokens = self.store.tokens().await?;
        tokens.push(self.admin("local", &self.local_token));
        if let Some(token) = &self.settings.token {
            tokens.push(self.admin("environment", token));
        }
        let (tenants, sessions) = (self.store.tenants().await?, self.store.sessions().await?);
        let lost = self.access.replace(AccessRecords { tenants, tokens, sessions });
        lost.stopped.iter().for_each(|tenant| self.pipeline.stop_tenant(tenant));
        tenant_files::apply(&self.settings, &self.files, &self.access.tenants(), lost.gone).await;
        Ok(())
    }

    fn admin(&self, name: &str, token: &Secret) -> TokenRecord {
        TokenRecord {
            // Nil: it is not a stored token.
            id: TokenId(Uuid::nil()),
            tenant: TenantId::default_tenant(),
            name: name.to_owned(),
            hash: hash::of_bytes(token.expose().as_bytes()),
            role: Role::Admin,
            elevated: true,
            platform: true,
            tools: AllowList::default(),
            rate_limit: None,
            created_at: self.now(),
            expires_at: None,
            last_used_at: None,
            previous: None,
        }
    }

    /// Runs queued calls until it is stopped.
    pub async fn run_queue(self: Arc<Self>) {
        let app = Arc::clone(&self);
        let runner = QueueRunner {
            pipeline: Arc::clone(&self.pipeline),
            queue: Arc::clone(&self.store) as _,
            workers: self.settings.queue.workers,
            current_principal: Arc::new(move |principal| app.access.current(principal, app.now())),
            on_end: Arc::new(|_| {}),
        };
        runner.run(self.queue_stop.clone()).await;
    }

    /// Returns a token that is cancelled when nothing further is claimed from the queue.
    pub fn queue_stop(&self) -> &CancellationToken {
        &self.queue_stop
    }

    /// Claims no further calls from the queue.
    pub fn stop_queue(&self) {
        self.queue_stop.cancel();
    }

    /// Returns whether `${NAME}` has a value.
    pub async fn has_secret(&self, tenant: &TenantId, name: &str) -> Result<bool, SecretError> {
        let is_configured = self.settings.secrets.environment.iter().any(|(known, _)| known == name);
        let may_read = || self.access.tenant(tenant).is_some_and(|tenant| tenant.may_read_variable(name));
        Ok((is_configured && may_read()) || self.store.secret(tenant, name).await?.is_some())
    }

    /// Reloads tenants, tokens and sessions when other processes change them, until dropped.
    pub async fn follow_access(&self) {
        let mut changes = self.store.token_changes();
        // At the start too: what changed before, for example while this loop was down, is not signalled again.
        loop {
            if let Err(error) = self.reload_access().await {
                tracing::error!(error = %error, "failed to reload the tokens");
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Writes when tokens were last used, until dropped.
    pub async fn save_token_uses_periodically(&self) {
        loop {
            tokio::time::sleep(TOKEN_USE_INTERVAL).await;
            self.save_token_uses().await;
        }
    }

    async fn save_token_uses(&self) {
        let uses = self.access.take_uses();
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.touch_tokens(uses).await {
            tracing::warn!(error = %error, "failed to write the last use of tokens");
        }
    }

    /// Writes the usage counters periodically, until dropped.
    pub async fn save_usage_periodically(&self) {
        loop {
            tokio::time::sleep(USAGE_INTERVAL).await;
            self.metrics.run_upkeep();
            self.save_usage().await;
        }
    }

    async fn save_usage(&self) {
        let calls = self.registry.take_usage();
        if calls.is_empty() {
            return;
        }
        if let Err(error) = self.store.add_usage(calls).await {
            tracing::warn!(error = %error, "failed to write the usage counters");
        }
    }
}

/// Returns the values of `${NAME}`: stored credentials, and the configured environment variables.
fn secret_source(settings: &Settings, store: &Arc<Store>, access: &Arc<Access>) -> Arc<dyn SecretSource> {
    Arc::new(Secrets {
        store: Arc::clone(store),
        environment: settings.secrets.environment.iter().cloned().collect(),
        access: Arc::clone(access),
    })
}

/// Returns what follows the changes of the store: search, live events, and the sink that tells them and the registry.
fn followers(registry: &Arc<Registry>) -> (Arc<ToolSearch>, Arc<EventHub>, Arc<dyn ChangeSink>) {
    let search = Arc::new(ToolSearch::new(Arc::clone(registry)));
    let hub = Arc::new(EventHub::default());
    let next = Arc::clone(&search) as _;
    let sink = EventSink { hub: Arc::clone(&hub), registry: Arc::clone(registry), next };
    (search, hub, Arc::new(sink))
}

/// Returns the guard of requests to models. Only models may reach the private addresses in `models.private_urls`.
fn model_egress(settings: &Settings, clock: &Arc<dyn Clock>) -> Result<ModelEgress, ModelEgressError> {
    let rules = EgressRules {
        allowed_hosts: settings.egress.allowed_hosts.clone(),
        private_hosts: settings.egress.private_hosts.clone(),
    };
    ModelEgress::new(&rules, &settings.models.private_urls, Arc::clone(clock))
}

/// Creates the home folder if necessary, and returns its token.
fn open_home(settings: &Settings) -> Result<Secret, StartError> {
    use std::os::unix::fs::DirBuilderExt as _;
    // Only the owner may read the folder: it holds keys and tokens.
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.home);
    created.map_err(|source| StartError::Home { path: settings.home.clone(), source })?;
    Ok(local_token::load_or_create(&settings.home)?)
}

/// Returns the limits of each tenant.
fn tenant_limits(access: &Arc<Access>) -> TenantLimitSource {
    let access = Arc::clone(access);
    Arc::new(move |tenant: &TenantId| access.limits(tenant))
}

/// Returns where calls wait.
fn waiting_calls(settings: &Settings, store: &Arc<Store>) -> WaitingCalls {
    WaitingCalls {
        approvals: Arc::clone(store) as _,
        queue: Arc::clone(store) as _,
        approval_lifetime: settings.approvals.lifetime,
        max_queued: settings.queue.max_queued,
    }
}

fn limit_settings(settings: &Settings, store: &Arc<Store>) -> LimitSettings {
    LimitSettings {
        session_calls_per_minute: settings.limits.session_calls_per_minute,
        identical_calls: settings.limits.identical_calls,
        shared: store.shares_limits().then(|| Arc::clone(store) as _),
    }
}

fn store_settings(settings: &Settings) -> StoreSettings {
    StoreSettings {
        home: Some(settings.home.clone()),
        database_url: settings.database_url.clone(),
        key: settings.key.clone(),
        new_key: settings.new_key.clone(),
        sync: settings.ledger.sync,
        keep_days: settings.ledger.keep_days,
        retention: settings.retention,
        ..StoreSettings::embedded(&settings.home)
    }
}
