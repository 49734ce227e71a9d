//! An open installation: builds the [`Context`] of the capabilities and the services above it. No capability depends on it.

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft_agent::model::{ModelEgress, ModelEgressError};
use haft_core::Clock;
use haft_core::catalog::{ChangeSink, StoreError};
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretSource};
use haft_core::spec::ToolSpec;
use haft_executors::egress::EgressRules;
use haft_executors::python::PythonEnvironments;
use haft_executors::secret_sources::{SecretSources, SourceSettingsError};
use haft_mcp::client::McpClients;
use haft_oauth::mac::MacKey;
use haft_runtime::clock::SystemClock;
use haft_runtime::function::{FunctionExecutor, Functions};
use haft_runtime::limits::LimitSettings;
use haft_runtime::pipeline::{Pipeline, PipelineParts, TenantLimitSource, WaitingCalls};
use haft_runtime::queue::QueueRunner;
use haft_runtime::registry::Registry;
use haft_runtime::stages::Stage;
use haft_store::{Blobs, ReindexReport, Store, StoreSettings};
use haft_workspace::Limits;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::account_exchange::Exchanges;
use crate::account_source::AccountSource;
use crate::artifact_host::ArtifactHost;
use crate::attempt_limit::AttemptLimit;
use crate::built_ins::{LateServices, install};
use crate::client_documents::ClientDocuments;
use crate::context::Context;
use crate::events::{EventHub, EventSink};
use crate::execution_resources::ExecutionResources;
use crate::issuers::Issuers;
use crate::known_agents::KnownAgents;
use crate::late::Late;
use crate::mcp_approvals::McpApprovals;
use crate::mcp_resources::McpPackages;
use crate::metrics::{Gauges, Metrics};
use crate::models::ModelConnections;
use crate::policy::PolicyState;
use crate::rendering::RenderKey;
use crate::results::ResultStore;
use crate::retrieval::RetrievalHost;
use crate::runs::{AgentCallExecutor, RunEngine};
use crate::search::ToolSearch;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::start_error::StartError;
use crate::stream_limit::StreamLimit;
use crate::supervisor::LoopStates;
use crate::workspaces::WorkspaceHost;
use crate::{local_token, mcp_connections, toolsets};

/// How often the usage counters are written.
const USAGE_INTERVAL: Duration = Duration::from_secs(5);
/// How often the last use of tokens is written.
const TOKEN_USE_INTERVAL: Duration = Duration::from_mins(1);
/// How long only changes of people, tokens and sessions are loaded before all of them are.
const FULL_RELOAD_INTERVAL: Duration = Duration::from_mins(10);
/// How long a request for metrics waits for the store.
const METRICS_TIMEOUT: Duration = Duration::from_secs(2);

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

/// An open installation: its context, and the services that need it.
pub struct Installation {
    context: Arc<Context>,
    runs: Arc<RunEngine>,
    mcp_packages: Arc<McpPackages>,
    results: Arc<ResultStore>,
    render_key: RenderKey,
    metrics: Arc<Metrics>,
    python_environments: PythonEnvironments,
    maintenance: Arc<LoopStates>,
    streams: Arc<StreamLimit>,
    wrong_codes: AttemptLimit,
    queue_stop: CancellationToken,
}

impl Deref for Installation {
    type Target = Arc<Context>;

    fn deref(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Installation {
    /// Opens an installation.
    pub async fn open(settings: Settings) -> Result<Arc<Self>, StartError> {
        Self::open_with(settings, Extensions::default()).await
    }

    /// Opens an installation with a program's own functions and tools.
    #[expect(clippy::too_many_lines, reason = "one line per part of the installation")]
    pub async fn open_with(settings: Settings, extensions: Extensions) -> Result<Arc<Self>, StartError> {
        let local_token = open_home(&settings)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let resources = ExecutionResources::new(&settings)?;
        let Extensions { functions, built_ins, stages } = extensions;
        let (late_runs, services, access) = (Late::default(), LateServices::default(), Arc::default());
        let specs = {
            // Dropped at once, so that the future stays small.
            let parts = settings.built_ins.enabled.then(|| resources.built_in_parts(&settings, &clock));
            install(parts.as_ref(), &functions, built_ins, &services)?
        };
        let executors = resources
            .executors(&settings, &clock, &local_token)
            .with(Arc::new(AgentCallExecutor::new(late_runs.clone())))
            .with(Arc::new(FunctionExecutor::new(functions)));
        let registry = resources.registry(executors);
        let (search, events, sink) = followers(&registry);
        let store = open_store(&settings, &clock, sink, specs).await?;
        let policy = PolicyState::load(&store).await?;
        let metrics = Arc::new(Metrics::new(settings.metrics.top_tools));
        let issuers = Arc::new(Issuers::new(&settings.sign_on)?);
        let exchanges = Exchanges::new(&issuers, &clock);
        let secrets = secrets(&settings, (&store, &access), &resources, &clock, exchanges)?;
        let secret_source: Arc<dyn SecretSource> = Arc::clone(&secrets) as _;
        let hosts = Hosts::open(&resources, &settings, &store, &secret_source, &clock).await?;
        let blobs = Blobs::open(&settings.home, &settings.blobs)?;
        let workspaces = WorkspaceHost::open(&settings.home, Arc::clone(&store), &blobs, Limits::default())?;
        let results = Arc::new(ResultStore::new(&settings, &store, blobs));
        let pipeline = Arc::new(Pipeline::new(PipelineParts {
            registry: Arc::clone(&registry),
            ledger: Some(Arc::new(store.calls().clone()) as _),
            waiting: Some(waiting_calls(&settings, &store)),
            policy: Arc::clone(policy.handle()),
            observer: Some(metrics.observer()),
            rejections: Some(metrics.rejections()),
            secrets: secret_source,
            clock: Arc::clone(&clock),
            stages,
            max_running: settings.server.max_running_calls,
            limits: limit_settings(&settings, &store),
            tenant_limits: Some(tenant_limits(&access)),
            workspace: None,
            workspaces: Some(workspaces.for_calls()),
            results: Some(Arc::clone(&results) as _),
        }));
        let application_key = MacKey::new(&store.signing_key("applications").await?);
        let context = Arc::new(Context {
            issuers,
            settings,
            store,
            registry,
            pipeline,
            clock,
            policy,
            access,
            secrets,
            events,
            search,
            local_token,
            files: resources.files,
            sandbox: resources.processes.sandbox().clone(),
            egress: resources.egress,
            mcp_clients: hosts.mcp_clients,
            models: hosts.models,
            agents: hosts.agents,
            retrieval: hosts.retrieval,
            artifacts: hosts.artifacts,
            workspaces,
            application_key,
            client_documents: ClientDocuments::default(),
            document_failures: AttemptLimit::default(),
            device_polls: Notify::new(),
        });
        let app = Arc::new(Self {
            runs: Arc::new(RunEngine::new(Arc::clone(&context))),
            mcp_packages: Arc::clone(&services.packages),
            results,
            render_key: RenderKey::new(context.store.signing_key("render").await?),
            metrics,
            python_environments: resources.python_environments,
            maintenance: Arc::default(),
            streams: StreamLimit::new((&context.settings.server).into()),
            wrong_codes: AttemptLimit::default(),
            queue_stop: CancellationToken::new(),
            context,
        });
        app.prepare(&services.context, &late_runs).await?;
        Ok(app)
    }

    /// Loads and stores what needs the whole installation.
    async fn prepare(&self, context: &Late<Context>, runs: &Late<RunEngine>) -> Result<(), StoreError> {
        context.set(&self.context);
        runs.set(&self.runs);
        self.retrieval.connect(&self.pipeline);
        self.store.access().ensure_local_owner().await?;
        self.reload_access().await?;
        mcp_connections::declare_servers(self).await?;
        toolsets::start(self).await;
        Ok(())
    }

    /// Probes the sandbox before the first tool needs it, and logs the result.
    pub async fn probe_sandbox(&self) {
        self.sandbox.probe_report(self.sandbox.settings().engine).await;
    }

    /// Rebuilds the index of the definitions from their files.
    pub async fn reindex(&self) -> Result<ReindexReport, StoreError> {
        self.store.catalog().reindex().await
    }

    /// Writes pending counters and closes the store.
    pub async fn close(&self) {
        self.save_usage().await;
        self.save_token_uses().await;
        self.store.close().await;
    }

    /// Returns the context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns the limit of streams that stay open.
    pub fn streams(&self) -> &Arc<StreamLimit> {
        &self.streams
    }

    /// Returns the limit of wrong codes of logins.
    pub fn wrong_codes(&self) -> &AttemptLimit {
        &self.wrong_codes
    }

    /// Returns the runs of agents on this node.
    pub fn runs(&self) -> &Arc<RunEngine> {
        &self.runs
    }

    /// Returns the results of calls.
    pub fn results(&self) -> &ResultStore {
        &self.results
    }

    /// Returns the key by which the addresses of rendered results are signed.
    pub fn render_key(&self) -> &RenderKey {
        &self.render_key
    }

    /// Returns the packages whose skills MCP clients and tools read.
    pub fn mcp_packages(&self) -> &Arc<McpPackages> {
        &self.mcp_packages
    }

    /// Returns the decisions that persons make at MCP clients.
    pub fn mcp_approvals(&self) -> Arc<McpApprovals> {
        Arc::new(McpApprovals(Arc::clone(&self.context)))
    }

    /// Returns the installed packages of Python tools.
    pub fn python_environments(&self) -> &PythonEnvironments {
        &self.python_environments
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
        let counted = tokio::time::timeout(METRICS_TIMEOUT, self.store.limits().waiting_counts()).await;
        let waiting = counted.ok().and_then(Result::ok);
        self.metrics.text(&Gauges {
            tools: self.registry.snapshot().len(),
            running_calls: self.pipeline.running(),
            waiting,
        })
    }

    /// Runs queued calls until it is stopped.
    pub async fn run_queue(self: Arc<Self>) {
        let app = Arc::clone(&self);
        let runner = QueueRunner {
            pipeline: Arc::clone(&self.pipeline),
            queue: Arc::new(self.store.calls().clone()) as _,
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

    /// Reloads tenants, tokens and sessions when other processes change them, until dropped.
    pub async fn follow_access(&self) {
        let mut changes = self.store.access().token_changes();
        let mut full = tokio::time::interval(FULL_RELOAD_INTERVAL);
        full.tick().await;
        // At the start too: what changed before, for example while this loop was down, is not signalled again.
        loop {
            if let Err(error) = self.reload_access().await {
                tracing::error!(error = %error, "failed to reload the tokens");
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return;
                },
                // The store removes what has expired without a signal.
                _ = full.tick() => self.access.forget_generation().await,
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
        let access = self.store.access();
        if !uses.tokens.is_empty()
            && let Err(error) = access.record_token_use(uses.tokens).await
        {
            tracing::warn!(error = %error, "failed to write the last use of tokens");
        }
        if !uses.actors.is_empty()
            && let Err(error) = access.record_actor_use(uses.actors).await
        {
            tracing::warn!(error = %error, "failed to write when people were last seen");
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
        if let Err(error) = self.store.catalog().add_usage(calls).await {
            tracing::warn!(error = %error, "failed to write the usage counters");
        }
    }
}

/// Returns the values of `${…}`: stored credentials, the configured environment variables, and the sources outside of haft.
fn secrets(
    settings: &Settings,
    (store, access): (&Arc<Store>, &Arc<Access>),
    resources: &ExecutionResources,
    clock: &Arc<dyn Clock>,
    exchanges: Exchanges,
) -> Result<Arc<Secrets>, SourceSettingsError> {
    let sources = SecretSources::open(&settings.secrets.sources, resources.processes.clone(), clock)?;
    Ok(Arc::new_cyclic(|secrets: &Weak<Secrets>| Secrets {
        store: Arc::clone(store),
        environment: settings.secrets.environment.iter().cloned().collect(),
        access: Arc::clone(access),
        sources,
        accounts: Arc::new(AccountSource {
            store: Arc::clone(store),
            egress: resources.egress.clone(),
            public_url: settings.mcp.public_url.clone(),
            exchanges,
            secrets: secrets.clone() as _,
        }),
    }))
}

/// Returns the observers of store changes: search, live events, and the sink that notifies them and the registry.
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

/// The state of models, agents, pipelines, artifacts and MCP servers on this node.
struct Hosts {
    models: ModelConnections,
    agents: KnownAgents,
    retrieval: Arc<RetrievalHost>,
    artifacts: Arc<ArtifactHost>,
    mcp_clients: Arc<McpClients>,
}

impl Hosts {
    async fn open(
        resources: &ExecutionResources,
        settings: &Settings,
        store: &Arc<Store>,
        secrets: &Arc<dyn SecretSource>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let egress = model_egress(settings, clock)?;
        Ok(Self {
            retrieval: resources.retrieval_host(settings, store, secrets, &egress).await?,
            artifacts: resources.artifact_host(store).await?,
            agents: KnownAgents::open(Arc::clone(store)).await?,
            models: ModelConnections::new(settings.models.clone(), egress, Arc::clone(secrets)),
            mcp_clients: resources.mcp_clients(secrets, store),
        })
    }
}

/// Opens the store with the built-in tools.
async fn open_store(
    settings: &Settings,
    clock: &Arc<dyn Clock>,
    sink: Arc<dyn ChangeSink>,
    built_ins: Vec<ToolSpec>,
) -> Result<Arc<Store>, StoreError> {
    let store = Store::open(store_settings(settings), Arc::clone(clock), sink).await?;
    store.catalog().set_built_ins(built_ins).await?;
    Ok(store)
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
        approvals: Arc::new(store.approvals().clone()) as _,
        queue: Arc::new(store.calls().clone()) as _,
        approval_lifetime: settings.approvals.lifetime,
        max_queued: settings.queue.max_queued,
    }
}

fn limit_settings(settings: &Settings, store: &Arc<Store>) -> LimitSettings {
    LimitSettings {
        session_calls_per_minute: settings.limits.session_calls_per_minute,
        identical_calls: settings.limits.identical_calls,
        shared: store.limits().is_shared().then(|| Arc::new(store.limits().clone()) as _),
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
