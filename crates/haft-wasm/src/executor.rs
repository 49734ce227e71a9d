//! The executor: from a definition to a program, and from a call to its outcome.

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
use crate::grants::{Given, Granted};
use crate::guest::{self, CallLimits, Guest};
use crate::memory::Budget;
use crate::settings::WasmSettings;
use crate::source::{self, BundleFile, SourceError, Stamp};
use crate::state::World;
use crate::threads::{Begin, Threads};

/// How often a file is looked at for a change.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Runs `wasm` tools. The engine starts with the first tool that needs it: it reserves address space, and most
/// commands of a command line never call one.
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
    places: Arc<Semaphore>,
    budget: Arc<Budget>,
}

impl WasmExecutor {
    /// Makes the executor.
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
                .inspect_err(|error| tracing::warn!(%error, "compiled WebAssembly is not kept"))
                .ok()
        });
        let compiler = Compiler::new(host.engine.clone(), cache);
        let running = usize::try_from(settings.limits.at_once.max(1)).unwrap_or(1);
        let places = Arc::new(Semaphore::new(running.min(Semaphore::MAX_PERMITS)));
        let budget = Arc::new(Budget::new(settings.limits.total_memory_bytes));
        let (settings, threads) = (Arc::clone(settings), Threads::default());
        Ok(Self { settings, host, compiler, threads, places, budget })
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
            let message = "a core module has no sockets; build a component (`wasm32-wasip2`), or remove it";
            return Err(vec![Problem::new("network", "unsupported", message)]);
        }
        Ok(Arc::new(PreparedWasm {
            limits: CallLimits::new(&spec.execution.limits, self.settings.limits.guest_memory()),
            granted: Arc::new(Granted::new(implementation(spec)?, spec, &self.settings)?),
            world: if spec.execution.is_pure { World::Still } else { World::Real },
            loader: Arc::new(loader),
            loaded: Mutex::new(Loaded { program: Ok(Arc::new(program)), stamp }),
            since: Instant::now(),
            looked: AtomicU64::new(0),
        }))
    }
}

/// Where the bytes are.
enum Source {
    Inline,
    File(BundleFile),
}

/// Makes the program of a definition, as often as its file changes.
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
                let place = home.zip(folder).ok_or(SourceError::NoFolder);
                let file = place.and_then(|(home, folder)| BundleFile::new(home.join(folder), file));
                Source::File(file.map_err(|error| vec![unread(&error)])?)
            }
        };
        Ok(Self { shared: Arc::clone(shared), spec: Arc::clone(spec), source })
    }

    /// Reads, compiles and links. Slow: not for threads that serve others.
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
                let (bytes, stamp) = file.read(limit).map_err(|error| vec![unread(&error)])?;
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

fn unread(error: &SourceError) -> Problem {
    Problem::new("implementation.file", "unreadable_file", error.to_string())
}

/// A tool, ready to run.
struct PreparedWasm {
    loader: Arc<Loader>,
    limits: CallLimits,
    world: World,
    granted: Arc<Granted>,
    loaded: Mutex<Loaded>,
    since: Instant,
    /// When the file was last looked at, in milliseconds after `since`.
    looked: AtomicU64,
}

/// The program of one state of the file, or why that state has none.
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
            let env = self.granted.environment(call, args).await?;
            let secrets = if env.is_empty() { Vec::new() } else { call.exposed() };
            let place = place(&shared.places, call.deadline).await?;
            let guest = Guest {
                engine: shared.host.engine.clone(),
                program,
                input,
                limits: self.limits,
                world: self.world,
                given: Given { granted: Arc::clone(&self.granted), env },
                secrets,
                budget: Arc::clone(&shared.budget),
                events: call.events.clone(),
                running: shared.host.ticker.running(),
                place,
            };
            let begin = if self.granted.reaches_out() { Begin::Apart } else { Begin::Here };
            let ended = shared.threads.run(guest.run(), begin, call.deadline).await?;
            if let Some(process) = ended.process {
                call.report_process(process);
            }
            ended.outcome
        })
    }
}

async fn place(places: &Arc<Semaphore>, deadline: Instant) -> Result<OwnedSemaphorePermit, CallError> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Ok(place);
    }
    let waiting = Arc::clone(places).acquire_owned();
    match tokio::time::timeout_at(deadline.into(), waiting).await {
        Ok(Ok(place)) => Ok(place),
        Ok(Err(_)) => Err(CallError::new(ErrorCode::Cancelled, "the program is stopping")),
        Err(_) => {
            let message = "no place for a WebAssembly guest came free within the time of the call";
            Err(CallError::new(ErrorCode::Overloaded, message))
        }
    }
}

impl PreparedWasm {
    /// Returns the program, of the file's newest state where it has one.
    async fn program(&self) -> Result<Arc<Program>, CallError> {
        if let Source::File(file) = &self.loader.source
            && self.is_time_to_look()
        {
            self.refresh(file).await?;
        }
        self.lock(|loaded| loaded.program.clone()).map_err(|why| not_ready(&why))
    }

    /// Tells one caller in a while that it has to look.
    fn is_time_to_look(&self) -> bool {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let every = u64::try_from(LOOK_EVERY.as_millis()).unwrap_or(u64::MAX);
        let last = self.looked.load(Ordering::Relaxed);
        now.saturating_sub(last) >= every
            && self.looked.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    async fn refresh(&self, file: &BundleFile) -> Result<(), CallError> {
        let stamp = file.stamp().ok();
        if self.lock(|loaded| loaded.stamp == stamp) {
            return Ok(());
        }
        let loader = Arc::clone(&self.loader);
        let loading = tokio::task::spawn_blocking(move || loader.load());
        let result = loading.await.map_err(|_| CallError::internal("the module could not be loaded"))?;
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
