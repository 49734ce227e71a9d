//! One tool as the pipeline sees it: its record, and what is compiled of it on first use.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use haft_core::Timestamp;
use haft_core::executor::Prepared;
use haft_core::implementation::Implementation;
use haft_core::outcome::CallError;
use haft_core::problem::{Problem, join};
use haft_core::redact;
use haft_core::runnable::{Mode, NotRunnable, RunState, runnable};
use haft_core::schema::Schema;
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Tool, Usage};
use haft_definition::check;
use haft_definition::export::{ArgumentAliases, Format, definition, is_model_name, model_name};

use crate::executors::Executors;
use crate::limits::Turns;
use crate::rate::{Rate, Window};
use crate::registry::Registry;

/// How long a fault of a file stands before a call looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// How many definitions were compiled.
static COMPILED: AtomicU64 = AtomicU64::new(0);

/// Which definition of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionSelector {
    /// The newest.
    Head,
    /// The one that production runs.
    Published,
}

impl From<Mode> for RevisionSelector {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Debug => RevisionSelector::Head,
            Mode::Production => RevisionSelector::Published,
        }
    }
}

/// Everything compiled of one definition.
pub struct CompiledTool {
    /// Tells it from every other one that was compiled in this program, of whatever definition.
    pub number: u64,
    /// The definition.
    pub spec: Arc<ToolSpec>,
    /// The check of the arguments.
    pub input: Schema,
    /// The arguments that models know by other names.
    pub(crate) told: ArgumentAliases,
    /// The check of the value.
    pub output: Schema,
    /// The executor's part.
    pub prepared: Arc<dyn Prepared>,
    /// How long one call may take in all.
    pub deadline: Duration,
    /// Secrets that stand in the definition itself.
    pub literals: Vec<Secret>,
    /// How many calls in which time, where the definition says so.
    pub(crate) rate: Option<Rate>,
}

impl CompiledTool {
    /// Compiles a definition of the bundle with this folder; says all that is wrong with it. It may take long:
    /// not for threads that serve others.
    pub fn compile(
        spec: &Arc<ToolSpec>,
        folder: Option<&str>,
        executors: &Executors,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut keep = |result: Result<Schema, Vec<Problem>>| match result {
            Ok(schema) => Some(schema),
            Err(found) => {
                problems.extend(found);
                None
            }
        };
        let input = keep(Schema::compile("input_schema", &spec.input_schema));
        let output = keep(Schema::compile("output_schema", &spec.output_schema));
        let prepared = executors.prepare(spec, folder).map_err(|found| problems.extend(found)).ok();
        let rate = rate(spec).map_err(|found| problems.extend(found)).ok();
        let (Some(input), Some(output), Some(prepared), Some(rate)) = (input, output, prepared, rate) else {
            return Err(problems);
        };
        let (deadline, literals) = (spec.deadline(), redact::literal_secrets(spec));
        let told = ArgumentAliases::new(&spec.input_schema);
        let number = COMPILED.fetch_add(1, Ordering::Relaxed);
        let spec = Arc::clone(spec);
        Ok(Self { number, spec, input, told, output, prepared, deadline, literals, rate })
    }
}

/// A definition that was stored by an earlier version may have a rate that is none.
fn rate(spec: &ToolSpec) -> Result<Option<Rate>, Vec<Problem>> {
    let Some(limit) = &spec.execution.rate_limit else { return Ok(None) };
    let problems = check::rate_limit(limit);
    match limit.period() {
        Ok(period) if problems.is_empty() => Ok(Some(Rate::new(limit.calls, period))),
        _ => Err(problems),
    }
}

type Compiled = Result<Arc<CompiledTool>, Arc<[Problem]>>;
type FileFault = (Instant, Arc<[Problem]>);

/// What is compiled of one definition, once someone needs it.
#[derive(Default)]
struct Compilation {
    plan: OnceLock<Compiled>,
    /// A fault that may lie in a file, which may come or change without the definition; and when it was found.
    of_file: Mutex<Option<FileFault>>,
    /// Who compiles; others wait here, and not on a thread each.
    turn: tokio::sync::Mutex<()>,
}

impl Compilation {
    /// Returns what was found, unless it is time to look again.
    fn found(&self) -> Option<Compiled> {
        match self.plan.get() {
            Some(plan) => Some(plan.clone()),
            None if self.is_due() => None,
            None => self.problems().map(Err),
        }
    }

    /// Tells whether a file was at fault long enough ago to look again.
    fn is_due(&self) -> bool {
        self.plan.get().is_none()
            && self.of_file().as_ref().is_some_and(|(since, _)| since.elapsed() >= LOOK_AGAIN)
    }

    /// Returns the problems of the last attempt, if it failed.
    fn problems(&self) -> Option<Arc<[Problem]>> {
        match self.plan.get() {
            Some(plan) => plan.as_ref().err().cloned(),
            None => self.of_file().as_ref().map(|(_, problems)| Arc::clone(problems)),
        }
    }

    /// Returns what was found wrong after the compilation.
    fn found_later(&self) -> Option<String> {
        self.plan.get()?.as_ref().ok()?.prepared.fault()
    }

    /// Keeps what was found of a definition: for good, unless a file may be at fault.
    fn keep(&self, spec: &ToolSpec, found: Compiled) -> Compiled {
        match &found {
            Err(problems) if reads_files(spec) => {
                *self.of_file() = Some((Instant::now(), Arc::clone(problems)));
                found
            }
            _ => self.plan.get_or_init(|| found).clone(),
        }
    }

    fn of_file(&self) -> MutexGuard<'_, Option<FileFault>> {
        self.of_file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether more than the definition decides what is compiled.
fn reads_files(spec: &ToolSpec) -> bool {
    match &spec.implementation {
        Implementation::Wasm(wasm) => wasm.file.is_some(),
        Implementation::Python(_) => true,
        _ => false,
    }
}

fn has_rate(tool: &Tool) -> bool {
    let published = tool.published.as_ref().map(|(_, spec)| spec);
    published.into_iter().chain([&tool.spec]).any(|spec| spec.execution.rate_limit.is_some())
}

type Slot = Arc<Compilation>;

/// One tool as the pipeline sees it.
pub struct Entry {
    /// The stored tool.
    pub tool: Tool,
    /// `bundle:name@version`, spelled once.
    pub qualified: Arc<str>,
    /// Why the newest definition cannot run, as far as that is known without compiling it.
    unavailable: Option<Problem>,
    head: Slot,
    published: Slot,
    pub(super) counter: Arc<Counter>,
    /// The bound on calls at once, where the newest definition has one.
    pub(crate) turns: Option<Arc<Turns>>,
    /// The calls of late, where a definition has a rate. They stay counted when that changes.
    pub(crate) window: Option<Arc<Window>>,
    /// How many tokens the newest definition is to a model, once someone asked.
    tokens: OnceLock<usize>,
}

impl Entry {
    /// Makes the entry of a tool; what an earlier entry compiled of the same definitions is kept.
    pub(super) fn new(tool: Tool, earlier: Option<&Entry>, executors: &Executors) -> Self {
        let reuse = |slot: fn(&Entry) -> &Slot, same: bool| match earlier {
            Some(entry) if same => Arc::clone(slot(entry)),
            _ => Slot::default(),
        };
        // In another folder the same definition may name another file.
        let earlier_here = earlier.filter(|entry| entry.tool.folder() == tool.folder());
        let head_same = earlier_here.is_some_and(|entry| entry.tool.spec == tool.spec);
        let published_same = earlier_here.is_some_and(|entry| entry.tool.published == tool.published);
        let head = reuse(|entry| &entry.head, head_same);
        let published = match &tool.published {
            Some((_, spec)) if *spec == tool.spec => Arc::clone(&head),
            _ => reuse(|entry| &entry.published, published_same),
        };
        let unavailable = executors.available(&tool.spec).err();
        let counter =
            earlier.map_or_else(|| Arc::new(Counter::starting(tool.usage)), |e| Arc::clone(&e.counter));
        let most = tool.spec.execution.limits.max_parallel;
        let turns = match earlier.and_then(|entry| entry.turns.as_ref()) {
            Some(turns) if Some(turns.most) == most => Some(Arc::clone(turns)),
            _ => most.map(|most| Arc::new(Turns::new(most))),
        };
        let window = match earlier.and_then(|entry| entry.window.as_ref()) {
            Some(window) => Some(Arc::clone(window)),
            None => has_rate(&tool).then(Arc::default),
        };
        Self {
            qualified: tool.qualified().into(),
            tool,
            unavailable,
            head,
            published,
            counter,
            turns,
            window,
            tokens: OnceLock::new(),
        }
    }

    /// Returns what is compiled of a definition, compiling it now if nobody has yet.
    pub fn plan(&self, which: RevisionSelector, executors: &Executors) -> Compiled {
        let (slot, spec) = self.slot(which);
        if let Some(Ok(plan)) = slot.plan.get() {
            return Ok(Arc::clone(plan));
        }
        slot.found().unwrap_or_else(|| {
            let compiled = CompiledTool::compile(spec, self.tool.folder(), executors);
            slot.keep(spec, compiled.map(Arc::new).map_err(Arc::from))
        })
    }

    /// Tells whether [`Entry::plan`] takes no time.
    pub fn is_compiled(&self, which: RevisionSelector) -> bool {
        let slot = self.slot(which).0;
        slot.plan.get().is_some() || slot.found().is_some()
    }

    /// Tells whether a file was at fault, and may no longer be.
    pub(crate) fn is_due(&self, which: RevisionSelector) -> bool {
        self.slot(which).0.is_due()
    }

    /// Makes sure that [`Entry::plan`] takes no time: compiles, where nobody has yet, on a thread that may block.
    pub(crate) async fn compile(self: &Arc<Self>, which: RevisionSelector, registry: &Arc<Registry>) {
        let _turn = self.slot(which).0.turn.lock().await;
        if self.is_compiled(which) {
            return;
        }
        let (entry, registry) = (Arc::clone(self), Arc::clone(registry));
        let work = move || drop(entry.plan(which, registry.executors()));
        if let Err(error) = tokio::task::spawn_blocking(work).await {
            tracing::error!(tool = %self.qualified, %error, "a definition could not be compiled");
        }
    }

    fn slot(&self, which: RevisionSelector) -> (&Slot, &Arc<ToolSpec>) {
        match (which, &self.tool.published) {
            (RevisionSelector::Published, Some((_, spec))) => (&self.published, spec),
            _ => (&self.head, &self.tool.spec),
        }
    }

    /// Compiles the newest definition to see whether it can run. Only a fault is kept: what nobody calls needs
    /// no memory.
    pub(super) fn verify(&self, executors: &Executors) {
        if self.head.plan.get().is_some() || !(self.ready() || self.head.is_due()) {
            return;
        }
        match CompiledTool::compile(&self.tool.spec, self.tool.folder(), executors) {
            Ok(_) => *self.head.of_file() = None,
            // Someone who compiled it in between found the same.
            Err(problems) => drop(self.head.keep(&self.tool.spec, Err(problems.into()))),
        }
    }

    /// Returns the definition and its revision number that a mode runs, where there is one.
    pub fn definition(&self, which: RevisionSelector) -> Option<(u32, &Arc<ToolSpec>)> {
        match which {
            RevisionSelector::Head => Some((self.tool.revision, &self.tool.spec)),
            RevisionSelector::Published => self.tool.published.as_ref().map(|(number, spec)| (*number, spec)),
        }
    }

    /// Estimates how many tokens a model reads where the tool is listed.
    pub fn tokens(&self) -> usize {
        let spec = &self.tool.spec;
        *self.tokens.get_or_init(|| definition(spec, spec.name.as_str(), Format::Mcp).tokens)
    }

    /// Returns why the newest definition cannot run, or `None` where it can.
    pub fn fault(&self) -> Option<String> {
        if let Some(fault) = &self.tool.fault {
            return Some(fault.clone());
        }
        if let Some(problem) = &self.unavailable {
            return Some(problem.to_string());
        }
        self.head.problems().map(|problems| join(&problems)).or_else(|| self.head.found_later())
    }

    /// Returns what is wrong with the newest definition, as far as it is the definition's.
    pub fn problems(&self) -> Vec<Problem> {
        match (&self.tool.fault, &self.unavailable) {
            (Some(_), _) => Vec::new(),
            (None, Some(problem)) => vec![problem.clone()],
            (None, None) => self.head.problems().map(|problems| problems.to_vec()).unwrap_or_default(),
        }
    }

    /// Says to the model what an error says of this tool by its whole name: it knows the tool by its own.
    pub(crate) fn for_model(&self, error: CallError) -> CallError {
        let text = error.for_model.as_deref().unwrap_or(&error.message);
        if !text.contains(&*self.qualified) {
            return error;
        }
        let name = self.tool.spec.name.as_str();
        let told = if is_model_name(name) { name.to_owned() } else { model_name(name) };
        let text = text.replace(&*self.qualified, &told);
        error.for_model(text)
    }

    /// Tells whether the newest definition can run.
    pub fn ready(&self) -> bool {
        self.tool.fault.is_none()
            && self.unavailable.is_none()
            && self.head.problems().is_none()
            && self.head.found_later().is_none()
    }

    /// Applies the one rule to this tool, whose bundle is switched on or not.
    pub(crate) fn runnable(&self, open: bool, mode: Mode) -> Result<(), NotRunnable> {
        let policy = self.definition(mode.into()).map_or(self.tool.spec.policy, |(_, spec)| spec.policy);
        // A file that stopped parsing takes its tool out of service in every mode.
        let ready = self.tool.fault.is_none() && (mode == Mode::Production || self.ready());
        let standing = RunState {
            bundle_enabled: open,
            tool_enabled: self.tool.enabled,
            ready,
            status: self.tool.status,
            policy,
            published: self.tool.published.is_some(),
        };
        runnable(standing, mode)
    }

    /// Returns the use of the tool up to now.
    pub fn usage(&self) -> Usage {
        self.counter.read()
    }
}

/// Counts calls without a lock.
#[derive(Default)]
pub(super) struct Counter {
    calls: AtomicU64,
    last: AtomicI64,
    pub(super) unsaved: AtomicU64,
    pub(super) listed: AtomicBool,
}

impl Counter {
    fn starting(usage: Usage) -> Self {
        let last = usage.last_called_at.map_or(0, Timestamp::as_microsecond);
        Self { calls: usage.call_count.into(), last: last.into(), ..Self::default() }
    }

    /// Counts a call; tells whether the counter has to be entered in the list of unsaved ones.
    pub(super) fn add(&self, now: Timestamp) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.last.fetch_max(now.as_microsecond(), Ordering::Relaxed);
        self.unsaved.fetch_add(1, Ordering::AcqRel);
        !self.listed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn read(&self) -> Usage {
        let last = self.last.load(Ordering::Relaxed);
        Usage {
            call_count: self.calls.load(Ordering::Relaxed),
            last_called_at: if last == 0 { None } else { Timestamp::from_microsecond(last).ok() },
        }
    }
}
