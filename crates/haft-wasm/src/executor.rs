//! The executor of `wasm` tools.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::{Implementation, Kind, Wasm};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{Problem, join};
use haft_core::spec::ToolSpec;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::cache::Cache;
use crate::compile::Compiler;
use crate::engine::{EngineError, Host};
use crate::entry::Program;
use crate::grants::{CallGrants, Grants};
use crate::guest::{self, CallLimits, Guest};
use crate::memory::Budget;
use crate::settings::WasmSettings;
use crate::source::{self, BundleFile, SourceError, Stamp};
use crate::state::Determinism;
use crate::threads::{StartThread, Threads};

/// How often a file is checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Runs `wasm` tools. The engine starts with the first tool, because it reserves address space.
#[derive(Clone)]
pub struct WasmExecutor {
    settings: Arc<WasmSettings>,
    shared: Arc<OnceLock<Result<Arc<Shared>, String>>>,
}

struct Shared {
    settings: Arc<WasmSettings>,
    host: Host,
    compiler: Compiler,
    threads: Threads,
    permits: Arc<Semaphore>,
    budget: Arc<Budget>,
}

impl WasmExecutor {
    /// Creates the executor.
    pub fn new(settings: WasmSettings) -> Self {
        Self { settings: Arc::new(settings), shared: Arc::default() }
    }

    fn shared(&self) -> Result<&Arc<Shared>, Vec<Problem>> {
        let started = self
            .shared
            .get_or_init(|| Shared::start(&self.settings).map(Arc::new).map_err(|error| error.to_string()));
        started
            .as_ref()
            .map_err(|error| vec![Problem::new("implementation.type", "no_engine", error.clone())])
    }
}

impl Shared {
    /// Starts the engine. A cache that cannot be used is only a slower start.
    fn start(settings: &Arc<WasmSettings>) -> Result<Self, EngineError> {
        let host = Host::new(settings)?;
        let cache = settings.cache.as_ref().and_then(|cache| {
            Cache::open(cache, &host.engine)
                .inspect_err(|error| tracing::warn!(%error, "failed to cache compiled WebAssembly"))
                .ok()
        });
        let compiler = Compiler::new(host.engine.clone(), cache);
        let running = usize::try_from(settings.limits.at_once.max(1)).unwrap_or(1);
        let permits = Arc::new(Semaphore::new(running.min(Semaphore::MAX_PERMITS)));
        let budget = Arc::new(Budget::new(settings.limits.total_memory_bytes));
        let (settings, threads) = (Arc::clone(settings), Threads::default());
        Ok(Self { settings, host, compiler, threads, permits, budget })
    }
}

impl Executor for WasmExecutor {
    fn kind(&self) -> Kind {
        Kind::Wasm
    }

    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let loader = Loader::new(self.shared()?, spec, folder)?;
        let (program, stamp) = loader.load()?;
        if spec.network && matches!(program, Program::Module { .. }) {
            let message = "core modules have no sockets; build a component (`wasm32-wasip2`), or remove it";
            return Err(vec![Problem::new("network", "unsupported", message)]);
        }
        Ok(Arc::new(PreparedWasm {
            limits: CallLimits::new(&spec.execution.limits, self.settings.limits.guest_memory()),
            grants: Arc::new(Grants::new(implementation(spec)?, spec, &self.settings)?),
            determinism: if spec.execution.is_pure { Determinism::Fixed } else { Determinism::Real },
            loader: Arc::new(loader),
            loaded: Mutex::new(Loaded { program: Ok(Arc::new(program)), stamp }),
            since: Instant::now(),
            last_check: AtomicU64::new(0),
        }))
    }
}

/// The source of the binary.
enum Source {
    Inline,
    File(BundleFile),
}

/// Loads the program of a definition, again after each change of its file.
struct Loader {
    shared: Arc<Shared>,
    spec: Arc<ToolSpec>,
    source: Source,
}

impl Loader {
    fn new(shared: &Arc<Shared>, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Self, Vec<Problem>> {
        let wasm = implementation(spec)?;
        let source = match &wasm.file {
            None => Source::Inline,
            Some(file) => {
                let home: Option<&Path> = shared.settings.home.as_deref();
                let location = home.zip(folder).ok_or(SourceError::NoFolder);
                let file = location.and_then(|(home, folder)| BundleFile::new(home.join(folder), file));
                Source::File(file.map_err(|error| vec![file_problem(&error)])?)
            }
        };
        Ok(Self { shared: Arc::clone(shared), spec: Arc::clone(spec), source })
    }

    /// Reads, compiles and links. Blocks, so do not call this on an async worker.
    fn load(&self) -> Result<(Program, Option<Stamp>), Vec<Problem>> {
        let wasm = implementation(&self.spec)?;
        let limit = self.shared.settings.max_module_bytes;
        let (bytes, stamp, field) = match &self.source {
            Source::Inline => {
                let text = wasm.base64.as_deref().unwrap_or_default();
                let bytes = source::decode(text, limit).map_err(|error| {
                    vec![Problem::new("implementation.base64", "invalid_module", error.to_string())]
                })?;
                (bytes, None, "implementation.base64")
            }
            Source::File(file) => {
                let (bytes, stamp) = file.read(limit).map_err(|error| vec![file_problem(&error)])?;
                (bytes, Some(stamp), "implementation.file")
            }
        };
        let code = self
            .shared
            .compiler
            .code(&bytes)
            .map_err(|error| vec![Problem::new(field, "invalid_module", error.to_string())])?;
        let program = Program::new(&self.shared.host, code, &self.spec, wasm.function.as_deref())?;
        Ok((program, stamp))
    }
}

fn implementation(spec: &ToolSpec) -> Result<&Wasm, Vec<Problem>> {
    match &spec.implementation {
        Implementation::Wasm(wasm) => Ok(wasm),
        other => {
            let message = format!("`{}` is not a `wasm` tool", other.kind().as_str());
            Err(vec![Problem::new("implementation.type", "wrong_type", message)])
        }
    }
}

fn file_problem(error: &SourceError) -> Problem {
    Problem::new("implementation.file", "unreadable_file", error.to_string())
}

/// A prepared tool.
struct PreparedWasm {
    loader: Arc<Loader>,
    limits: CallLimits,
    determinism: Determinism,
    grants: Arc<Grants>,
    loaded: Mutex<Loaded>,
    since: Instant,
    /// When the file was last checked, in milliseconds after `since`.
    last_check: AtomicU64,
}

/// The program of one version of the file, or why it could not be loaded.
struct Loaded {
    program: Result<Arc<Program>, String>,
    stamp: Option<Stamp>,
}

impl Prepared for PreparedWasm {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let program = self.program().await?;
            let input = guest::input(&program, args, self.limits.input)?;
            let shared = &self.loader.shared;
            let env = self.grants.environment(call, args).await?;
            let folders = self.grants.folders(call)?;
            let secrets = if env.is_empty() { Vec::new() } else { call.exposed() };
            let permit = acquire(&shared.permits, call.deadline).await?;
            let guest = Guest {
                engine: shared.host.engine.clone(),
                program,
                input,
                limits: self.limits,
                determinism: self.determinism,
                grants: CallGrants { tool: Arc::clone(&self.grants), folders, env },
                secrets,
                budget: Arc::clone(&shared.budget),
                events: call.events.clone(),
                running: shared.host.ticker.running(),
                permit,
            };
            let start_thread = if self.grants.has_io() { StartThread::Guest } else { StartThread::Current };
            let result = shared.threads.run(guest.run(), start_thread, call.deadline).await?;
            if let Some(process) = result.process {
                call.report_process(process);
            }
            result.outcome
        })
    }

    fn works_with_files(&self) -> bool {
        self.grants.uses_workspace()
    }
}

async fn acquire(permits: &Arc<Semaphore>, deadline: Instant) -> Result<OwnedSemaphorePermit, CallError> {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        return Ok(permit);
    }
    let waiting = Arc::clone(permits).acquire_owned();
    match tokio::time::timeout_at(deadline.into(), waiting).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) => Err(CallError::new(ErrorCode::Cancelled, "the server is stopping")),
        Err(_) => {
            let message = "no WebAssembly instance became available before the timeout";
            Err(CallError::new(ErrorCode::Overloaded, message))
        }
    }
}

impl PreparedWasm {
    /// Returns the program, reloaded if its file has changed.
    async fn program(&self) -> Result<Arc<Program>, CallError> {
        if let Source::File(file) = &self.loader.source
            && self.is_check_due()
        {
            self.refresh(file).await?;
        }
        self.lock(|loaded| loaded.program.clone()).map_err(|why| not_ready(&why))
    }

    /// Returns `true` to one caller per check interval.
    fn is_check_due(&self) -> bool {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = u64::try_from(CHECK_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        let last = self.last_check.load(Ordering::Relaxed);
        now.saturating_sub(last) >= every
            && self.last_check.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    async fn refresh(&self, file: &BundleFile) -> Result<(), CallError> {
        let stamp = file.stamp().ok();
        if self.lock(|loaded| loaded.stamp == stamp) {
            return Ok(());
        }
        let loader = Arc::clone(&self.loader);
        let loading = tokio::task::spawn_blocking(move || loader.load());
        let result = loading.await.map_err(|_| CallError::internal("failed to load the module"))?;
        self.lock(|loaded| {
            *loaded = match result {
                Ok((program, stamp)) => Loaded { program: Ok(Arc::new(program)), stamp },
                Err(problems) => Loaded { program: Err(join(&problems)), stamp },
            }
        });
        Ok(())
    }

    fn lock<T>(&self, work: impl FnOnce(&mut Loaded) -> T) -> T {
        work(&mut self.loaded.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn not_ready(why: &str) -> CallError {
    CallError::new(ErrorCode::NotReady, format!("the tool is not ready: {why}"))
        .for_model("the tool is not ready")
}
