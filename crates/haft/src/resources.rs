//! Executors and the resources they share, created on first use: a program that only registers functions opens no
//! folder, reads no certificate and starts no thread.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use haft_core::executor::{Executor, Prepared};
use haft_core::implementation::Kind;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_executors::egress::{Egress, EgressRules, RulesError};
use haft_executors::exec::ExecExecutor;
use haft_executors::files::{FileReadExecutor, FileWriteExecutor, Files};
use haft_executors::http::HttpExecutor;
use haft_executors::process::Processes;
use haft_executors::python::{PythonEnvironments, PythonExecutor, PythonPool, PythonSettings};
use haft_executors::script::ScriptExecutor;
use haft_runtime::clock::SystemClock;
use haft_runtime::executors::Executors;
use haft_runtime::function::{FunctionExecutor, Functions};
use haft_runtime::steps::StepsExecutor;
use tempfile::TempDir;

/// The network, file and process resources of tools. Clones share them.
#[derive(Clone)]
pub(crate) struct Resources {
    shared: Arc<Shared>,
}

struct Shared {
    egress_rules: EgressRules,
    files: Option<Files>,
    egress: OnceLock<Egress>,
    sandbox: OnceLock<ProcessSandbox>,
    /// Held while one of them is created.
    init: Mutex<()>,
}

/// The processes of tools and their scratch folder.
struct ProcessSandbox {
    processes: Processes,
    interpreters: PythonPool,
    _folder: TempDir,
}

impl Resources {
    pub(crate) fn new(egress: EgressRules, files: Option<Files>) -> Self {
        let (egress_cell, sandbox, init) = Default::default();
        let shared = Shared { egress_rules: egress, files, egress: egress_cell, sandbox, init };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the executors of all kinds of tools that the library supports.
    pub(crate) fn executors(&self, functions: Functions) -> Executors {
        let executors = Executors::default().with(Arc::new(FunctionExecutor::new(functions)));
        #[cfg(feature = "wasm")]
        let executors = executors.with(LazyExecutor::new(Kind::Wasm, self, |_| {
            let settings = haft_wasm::WasmSettings { home: Some(PathBuf::from("/")), ..Default::default() };
            Ok(Arc::new(haft_wasm::WasmExecutor::new(settings)))
        }));
        executors
            .with(Arc::new(StepsExecutor::default()))
            .with(LazyExecutor::new(Kind::Http, self, |resources| {
                let no_client =
                    |error: RulesError| Problem::new("implementation.type", "no_client", error.to_string());
                let egress = resources.egress().map_err(no_client)?;
                Ok(Arc::new(HttpExecutor::new(egress, Arc::new(SystemClock))))
            }))
            .with(LazyExecutor::new(Kind::Exec, self, |resources| {
                Ok(Arc::new(ExecExecutor::new(resources.sandbox()?.processes.clone())))
            }))
            .with(LazyExecutor::new(Kind::Script, self, |resources| {
                let sandbox = resources.sandbox()?;
                let (processes, interpreters) = (sandbox.processes.clone(), sandbox.interpreters.clone());
                // Definitions have absolute paths.
                let home = Some(PathBuf::from("/"));
                Ok(Arc::new(ScriptExecutor::new(processes, interpreters).with_home(home)))
            }))
            .with(LazyExecutor::new(Kind::Python, self, |resources| {
                // Definitions have absolute paths, and their modules are next to them.
                let home = Some(PathBuf::from("/"));
                Ok(Arc::new(PythonExecutor::new(resources.sandbox()?.interpreters.clone(), home)))
            }))
            .with(LazyExecutor::new(Kind::FileRead, self, |resources| {
                Ok(Arc::new(FileReadExecutor::new(resources.files()?)))
            }))
            .with(LazyExecutor::new(Kind::FileWrite, self, |resources| {
                Ok(Arc::new(FileWriteExecutor::new(resources.files()?)))
            }))
    }

    fn files(&self) -> Result<Files, Problem> {
        self.shared.files.clone().ok_or_else(|| {
            let message = "file tools need a sandbox folder; set it with `Tools::builder().sandbox(path)`";
            Problem::new("implementation.type", "no_sandbox", message)
        })
    }

    pub(crate) fn egress(&self) -> Result<Egress, RulesError> {
        let shared = &self.shared;
        get_or_try_init(&shared.egress, &shared.init, || Egress::new(&shared.egress_rules)).cloned()
    }

    /// Returns the resources of the built-in tools. There are no platform settings: the program sets its own.
    #[cfg(feature = "builtins")]
    pub(crate) fn for_built_ins(&self) -> Result<haft_builtins::BuiltInParts, RulesError> {
        Ok(haft_builtins::BuiltInParts {
            egress: self.egress()?,
            files: self.shared.files.clone(),
            clock: Arc::new(SystemClock),
            platform: haft_builtins::PlatformSettings::default(),
            emails_per_minute: haft_builtins::EMAILS_PER_MINUTE,
        })
    }

    fn sandbox(&self) -> Result<&ProcessSandbox, Problem> {
        get_or_try_init(&self.shared.sandbox, &self.shared.init, ProcessSandbox::open)
    }
}

impl ProcessSandbox {
    fn open() -> Result<Self, Problem> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("cannot create the scratch folder for tool processes: {error}");
            Problem::new("implementation.type", "no_scratch", message)
        };
        let folder = tempfile::Builder::new().prefix("haft-").tempdir().map_err(|error| failed(&error))?;
        let processes = Processes::with_folder(folder.path()).map_err(|error| failed(&error))?;
        let environments =
            PythonEnvironments::new(processes.clone(), folder.path(), PythonSettings::default());
        let interpreters = PythonPool::new(processes.clone()).with_environments(environments);
        Ok(Self { processes, interpreters, _folder: folder })
    }
}

/// Initializes the cell on first use. After an error the next call tries again.
fn get_or_try_init<'a, T, E>(
    cell: &'a OnceLock<T>,
    init: &Mutex<()>,
    create: impl FnOnce() -> Result<T, E>,
) -> Result<&'a T, E> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let _init = init.lock().unwrap_or_else(PoisonError::into_inner);
    match cell.get() {
        Some(value) => Ok(value),
        None => create().map(|value| cell.get_or_init(|| value)),
    }
}

type CreateExecutor = fn(&Resources) -> Result<Arc<dyn Executor>, Problem>;

/// An executor that is created for the first tool of its kind.
struct LazyExecutor {
    kind: Kind,
    resources: Resources,
    create: CreateExecutor,
    executor: OnceLock<Arc<dyn Executor>>,
    init: Mutex<()>,
}

impl LazyExecutor {
    #[expect(clippy::new_ret_no_self, reason = "executors are stored as trait objects")]
    fn new(kind: Kind, resources: &Resources, create: CreateExecutor) -> Arc<dyn Executor> {
        let resources = resources.clone();
        Arc::new(Self { kind, resources, create, executor: OnceLock::new(), init: Mutex::default() })
    }

    fn executor(&self) -> Result<&Arc<dyn Executor>, Problem> {
        get_or_try_init(&self.executor, &self.init, || (self.create)(&self.resources))
    }
}

impl Executor for LazyExecutor {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn available(&self, spec: &ToolSpec) -> Result<(), Problem> {
        self.executor()?.available(spec)
    }

    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        self.executor().map_err(|problem| vec![problem])?.prepare(spec, folder)
    }
}
