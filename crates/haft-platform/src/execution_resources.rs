//! The resources that tools run with: processes, folders, outgoing connections, and one executor per kind.

use std::sync::Arc;

use haft_agent::model::ModelEgress;
use haft_builtins::{BuiltInParts, PlatformSettings};
use haft_core::Clock;
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::secret::{Secret, SecretSource};
use haft_executors::artifact::ArtifactExecutor;
use haft_executors::egress::{Egress, EgressRules, RulesError};
use haft_executors::exec::ExecExecutor;
use haft_executors::files::{FileReadExecutor, FileWriteExecutor, Files, Root, RootsError, WORKSPACE};
use haft_executors::http::HttpExecutor;
use haft_executors::process::Processes;
use haft_executors::python::{PythonEnvironments, PythonExecutor, PythonPool};
use haft_executors::retrieval::RetrievalExecutor;
use haft_executors::script::ScriptExecutor;
use haft_mcp::client::{McpClients, McpExecutor};
use haft_runtime::executors::Executors;
use haft_runtime::registry::Registry;
use haft_runtime::steps::StepsExecutor;
use haft_sandbox::{Sandbox, SandboxError};
use haft_store::Store;
use haft_wasm::{CacheSettings, TenantFolders, WasmExecutor, WasmFolder, WasmNetwork, WasmSettings};

use crate::artifact_host::{ArtifactHandle, ArtifactHost};
use crate::home::{PACKAGES, TENANT_FILES};
use crate::mcp_connections;
use crate::retrieval::{HostParts, RetrievalHandle, RetrievalHost};
use crate::settings::Settings;
use crate::start_error::StartError;

/// The resources that tools run with.
pub struct ExecutionResources {
    pub processes: Processes,
    pub files: Files,
    pub egress: Egress,
    pub python_environments: PythonEnvironments,
    mcp: Arc<McpExecutor>,
    steps: Arc<StepsExecutor>,
    /// The pipelines and artifacts, which are connected when the store is open.
    retrieval: Arc<RetrievalHandle>,
    artifacts: Arc<ArtifactHandle>,
}

impl ExecutionResources {
    /// Prepares the resources as configured.
    pub fn new(settings: &Settings) -> Result<Self, StartError> {
        let processes = processes(settings)?;
        Ok(Self {
            files: files(settings)?,
            egress: egress(settings)?,
            python_environments: PythonEnvironments::new(
                processes.clone(),
                &settings.home,
                settings.python.clone(),
            ),
            processes,
            mcp: Arc::default(),
            steps: Arc::default(),
            retrieval: Arc::default(),
            artifacts: Arc::default(),
        })
    }

    /// Returns an executor for each kind except functions, which the embedding program provides.
    pub fn executors(&self, settings: &Settings, clock: &Arc<dyn Clock>, local_token: &Secret) -> Executors {
        let interpreters =
            PythonPool::new(self.processes.clone()).with_environments(self.python_environments.clone());
        let bundles = settings.database_url.is_none().then(|| settings.home.clone());
        let scripts = ScriptExecutor::new(self.processes.clone(), interpreters.clone());
        // What runs the sources of artifacts.
        let runtimes = Executors::default()
            .with(Arc::new(scripts.with_home(bundles.clone())))
            .with(Arc::new(wasm(settings, local_token, &self.files, self.egress.clone())));
        runtimes
            .clone()
            .with(Arc::new(ArtifactExecutor::new(runtimes, Some(Arc::clone(&self.artifacts) as _))))
            .with(Arc::new(RetrievalExecutor::new(Arc::clone(&self.retrieval) as _)))
            .with(Arc::new(HttpExecutor::new(self.egress.clone(), Arc::clone(clock))))
            .with(Arc::new(
                PythonExecutor::new(interpreters, bundles).with_packages(settings.home.join(PACKAGES)),
            ))
            .with(Arc::new(ExecExecutor::new(self.processes.clone())))
            .with(Arc::new(FileReadExecutor::new(self.files.clone())))
            .with(Arc::new(FileWriteExecutor::new(self.files.clone())))
            .with(Arc::clone(&self.steps) as _)
            .with(Arc::clone(&self.mcp) as _)
    }

    /// Creates the registry and connects the executor of `steps` tools to it.
    pub fn registry(&self, executors: Executors) -> Arc<Registry> {
        let registry = Arc::new(Registry::new(executors));
        self.steps.connect(&registry);
        registry
    }

    /// Returns what the built-in tools run with.
    pub fn built_in_parts(&self, settings: &Settings, clock: &Arc<dyn Clock>) -> BuiltInParts {
        BuiltInParts {
            egress: self.egress.clone(),
            files: Some(self.files.clone()),
            clock: Arc::clone(clock),
            platform: PlatformSettings::new(settings.built_ins.platform.clone()),
            emails_per_minute: settings.built_ins.emails_per_minute,
        }
    }

    /// Opens the retrieval pipelines and connects their executor to them.
    pub async fn retrieval_host(
        &self,
        settings: &Settings,
        store: &Arc<Store>,
        secrets: &Arc<dyn SecretSource>,
        models: &ModelEgress,
    ) -> Result<Arc<RetrievalHost>, StoreError> {
        let parts = HostParts {
            store: Arc::clone(store),
            secrets: Arc::clone(secrets),
            egress: self.egress.clone(),
            models: models.clone(),
            settings: settings.retrieval,
        };
        let host = RetrievalHost::open(parts).await?;
        self.retrieval.connect(&host);
        Ok(host)
    }

    /// Opens the code artifacts and connects their executor to them.
    pub async fn artifact_host(&self, store: &Arc<Store>) -> Result<Arc<ArtifactHost>, StoreError> {
        let host = ArtifactHost::open(Arc::clone(store)).await?;
        self.artifacts.connect(&host);
        Ok(host)
    }

    /// Creates the clients of the stored MCP servers and connects the MCP executor to them.
    pub fn mcp_clients(&self, secrets: &Arc<dyn SecretSource>, store: &Arc<Store>) -> Arc<McpClients> {
        let clients = mcp_connections::clients(self.processes.sandbox(), self.egress.clone(), secrets, store);
        self.mcp.connect(&clients);
        clients
    }
}

/// Compiled code is cached in the home folder and authenticated with the local token, which only its owner knows.
fn wasm(settings: &Settings, local_token: &Secret, files: &Files, egress: Egress) -> WasmExecutor {
    let folder = settings.home.join("cache").join("wasm");
    // If only some hosts are allowed, name lookups could leak data to others.
    let names = settings.egress.allowed_hosts.is_empty();
    let network = WasmNetwork { allows: Arc::new(move |address| egress.allows(address)), names };
    WasmExecutor::new(WasmSettings {
        home: settings.database_url.is_none().then(|| settings.home.clone()),
        cache: Some(CacheSettings { folder, key: local_token.clone() }),
        limits: settings.wasm,
        tenants: Some(Arc::new(FileRoots(files.clone()))),
        network: Some(network),
        ..WasmSettings::default()
    })
}

/// The file roots of tenants, for `wasm` tools.
#[derive(Debug)]
struct FileRoots(Files);

impl TenantFolders for FileRoots {
    fn folders(&self, tenant: &TenantId) -> Vec<WasmFolder> {
        let folder = |root: &Root| WasmFolder {
            name: root.name.clone(),
            path: root.path.clone(),
            read_only: root.read_only,
            make: root.make,
        };
        self.0.roots(tenant).iter().map(folder).collect()
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

fn egress(settings: &Settings) -> Result<Egress, RulesError> {
    Egress::new(&EgressRules {
        allowed_hosts: settings.egress.allowed_hosts.clone(),
        private_hosts: settings.egress.private_hosts.clone(),
    })
}

/// Prepares the sandbox. The home folder, which holds keys and the database, is hidden in it.
fn processes(settings: &Settings) -> Result<Processes, SandboxError> {
    let sandbox = &settings.sandbox;
    let sandbox = Sandbox::open(haft_sandbox::Settings {
        engine: sandbox.engine,
        scratch: settings.home.join("run"),
        hidden: vec![settings.home.clone()],
        read_only: sandbox.read_only.clone(),
        image: sandbox.image.clone(),
    })?;
    Ok(Processes::new(sandbox, settings.sandbox.processes.clone()))
}

/// Returns the folders of file tools; the default is a workspace in the home folder, created on first use.
fn files(settings: &Settings) -> Result<Files, RootsError> {
    let configured = &settings.files;
    let mut roots: Vec<Root> =
        configured.sandboxes.iter().map(|(name, path)| Root::new(name, path.clone())).collect();
    if roots.is_empty() {
        roots.push(Root { make: true, ..Root::new(WORKSPACE, settings.home.join("workspace")) });
    }
    for name in &configured.read_only {
        let root = roots.iter_mut().find(|root| root.name == *name);
        root.ok_or_else(|| RootsError::Unknown(name.clone()))?.read_only = true;
    }
    Ok(Files::new(roots)?.with_tenant_folder(settings.home.join(TENANT_FILES)))
}
