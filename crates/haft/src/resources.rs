//! What tools need of the machine, made when the first one needs it: a program that only registers functions opens
//! no folder, reads no certificate and starts no thread.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use haft_core::executor::{Executor, Prepared};
use haft_core::implementation::Kind;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_runtime::clock::SystemClock;
use haft_runtime::egress::{Egress, EgressRules, RulesError};
use haft_runtime::exec::ExecExecutor;
use haft_runtime::executors::Executors;
use haft_runtime::files::{FileReadExecutor, FileWriteExecutor, Files};
use haft_runtime::function::{FunctionExecutor, Functions};
use haft_runtime::http::HttpExecutor;
use haft_runtime::process::Processes;
use haft_runtime::python::{PythonExecutor, PythonPool};
use haft_runtime::script::ScriptExecutor;
use tempfile::TempDir;

/// What tools need of the machine. Clones share it.
#[derive(Clone)]
pub(crate) struct Resources {
    shared: Arc<Shared>,
}

struct Shared {
    egress: EgressRules,
    files: Option<Files>,
    guard: OnceLock<Egress>,
    sandbox: OnceLock<Confined>,
    /// Held while one of them is made.
    making: Mutex<()>,
}

/// The processes of tools, and the folder that is theirs.
struct Confined {
    processes: Processes,
    interpreters: PythonPool,
    _folder: TempDir,
}

impl Resources {
    pub(crate) fn new(egress: EgressRules, files: Option<Files>) -> Self {
        let (guard, sandbox, making) = Default::default();
        Self { shared: Arc::new(Shared { egress, files, guard, sandbox, making }) }
    }

    /// Returns an executor for every kind of tool that a program runs by itself.
    pub(crate) fn executors(&self, functions: Functions) -> Executors {
        let executors = Executors::default().with(Arc::new(FunctionExecutor::new(functions)));
        #[cfg(feature = "wasm")]
        let executors = executors.with(Later::new(Kind::Wasm, self, |_| {
            let settings = haft_wasm::WasmSettings { home: Some(PathBuf::from("/")), ..Default::default() };
            Ok(Arc::new(haft_wasm::WasmExecutor::new(settings)))
        }));
        executors
            .with(Later::new(Kind::Http, self, |resources| {
                let no_client =
                    |error: RulesError| Problem::new("implementation.type", "no_client", error.to_string());
                let egress = resources.egress().map_err(no_client)?;
                Ok(Arc::new(HttpExecutor::new(egress, Arc::new(SystemClock))))
            }))
            .with(Later::new(Kind::Exec, self, |resources| {
                Ok(Arc::new(ExecExecutor::new(resources.confined()?.processes.clone())))
            }))
            .with(Later::new(Kind::Script, self, |resources| {
                let confined = resources.confined()?;
                let (processes, interpreters) = (confined.processes.clone(), confined.interpreters.clone());
                Ok(Arc::new(ScriptExecutor::new(processes, interpreters)))
            }))
            .with(Later::new(Kind::Python, self, |resources| {
                // The path of a definition says where its modules are.
                let home = Some(PathBuf::from("/"));
                Ok(Arc::new(PythonExecutor::new(resources.confined()?.interpreters.clone(), home)))
            }))
            .with(Later::new(Kind::FileRead, self, |resources| {
                Ok(Arc::new(FileReadExecutor::new(resources.files()?)))
            }))
            .with(Later::new(Kind::FileWrite, self, |resources| {
                Ok(Arc::new(FileWriteExecutor::new(resources.files()?)))
            }))
    }

    fn files(&self) -> Result<Files, Problem> {
        self.shared.files.clone().ok_or_else(|| {
            let message = "file tools need a folder; build the set with `Tools::builder().sandbox(path)`";
            Problem::new("implementation.type", "no_sandbox", message)
        })
    }

    pub(crate) fn egress(&self) -> Result<Egress, RulesError> {
        let shared = &self.shared;
        once(&shared.guard, &shared.making, || Egress::new(&shared.egress)).cloned()
    }

    /// Returns what built-in tools may use. Settings of a platform there are none: a program names its own.
    #[cfg(feature = "builtins")]
    pub(crate) fn of_built_ins(&self) -> Result<haft_builtins::BuiltInParts, RulesError> {
        Ok(haft_builtins::BuiltInParts {
            egress: self.egress()?,
            files: self.shared.files.clone(),
            clock: Arc::new(SystemClock),
            platform: haft_builtins::PlatformSettings::default(),
            emails_per_minute: haft_builtins::EMAILS_PER_MINUTE,
        })
    }

    fn confined(&self) -> Result<&Confined, Problem> {
        once(&self.shared.sandbox, &self.shared.making, Confined::open)
    }
}

impl Confined {
    fn open() -> Result<Self, Problem> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("the folder for the processes of tools cannot be made: {error}");
            Problem::new("implementation.type", "no_scratch", message)
        };
        let folder = tempfile::Builder::new().prefix("haft-").tempdir().map_err(|error| failed(&error))?;
        let processes = Processes::with_folder(folder.path()).map_err(|error| failed(&error))?;
        let interpreters = PythonPool::new(processes.clone());
        Ok(Self { processes, interpreters, _folder: folder })
    }
}

/// Makes a thing the first time; a failure is told, and the next one tries again.
fn once<'a, T, E>(
    cell: &'a OnceLock<T>,
    making: &Mutex<()>,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<&'a T, E> {
    if let Some(ready) = cell.get() {
        return Ok(ready);
    }
    let _making = making.lock().unwrap_or_else(PoisonError::into_inner);
    match cell.get() {
        Some(ready) => Ok(ready),
        None => make().map(|new| cell.get_or_init(|| new)),
    }
}

type Make = fn(&Resources) -> Result<Arc<dyn Executor>, Problem>;

/// An executor that is made when the first tool of its kind comes.
struct Later {
    kind: Kind,
    resources: Resources,
    make: Make,
    made: OnceLock<Arc<dyn Executor>>,
    making: Mutex<()>,
}

impl Later {
    #[expect(clippy::new_ret_no_self, reason = "executors are kept as trait objects")]
    fn new(kind: Kind, resources: &Resources, make: Make) -> Arc<dyn Executor> {
        let resources = resources.clone();
        Arc::new(Self { kind, resources, make, made: OnceLock::new(), making: Mutex::default() })
    }

    fn executor(&self) -> Result<&Arc<dyn Executor>, Problem> {
        once(&self.made, &self.making, || (self.make)(&self.resources))
    }
}

impl Executor for Later {
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
