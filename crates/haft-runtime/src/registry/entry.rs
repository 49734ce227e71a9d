//! One tool as the pipeline sees it.

use std::sync::{Arc, OnceLock};

use haft_core::Clock as _;
use haft_core::executor::Executor;
use haft_core::implementation::Implementation;
use haft_core::name::TenantId;
use haft_core::outcome::CallError;
use haft_core::problem::{NOT_PUBLISHED, Problem, join};
use haft_core::runnable::{Mode, NotRunnable, RunState, runnable};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Tool, Usage};
use haft_definition::check;
use haft_definition::export::{Format, definition, is_model_name, model_name};
use serde_json::json;

use crate::clock::SystemClock;
use crate::concurrency::ConcurrencyLimit;
use crate::executors::Executors;
use crate::rate::RateWindows;
use crate::registry::compiled::{CompileCache, CompileResult, CompiledTool, RevisionSelector};
use crate::registry::usage::UsageCounter;

/// How many calls may wait for one tool with `limits.max_parallel`.
const MAX_QUEUED: usize = 64;

/// One tool as the pipeline sees it: its record, and what is compiled of it on first use.
pub struct Entry {
    /// The stored tool.
    pub tool: Tool,
    /// The qualified name: `bundle:name@version`.
    pub qualified: Arc<str>,
    /// Why the newest definition cannot run, as far as that is known without compiling it.
    unavailable: Option<Problem>,
    /// The executor, for tools that refer to something that may appear or vanish.
    references: Option<Arc<dyn Executor>>,
    head: Arc<CompileCache>,
    published: Arc<CompileCache>,
    pub(super) usage: Arc<UsageCounter>,
    /// The concurrency limit of the newest definition.
    pub(crate) concurrency: Option<Arc<ConcurrencyLimit>>,
    /// The recent calls by tenant, if a definition has a rate limit. They stay counted when the limit changes.
    pub(crate) rate_windows: Option<Arc<RateWindows<TenantId>>>,
    /// The estimated tokens of the newest definition.
    tokens: OnceLock<usize>,
    /// The warnings about how the newest definition will run.
    warnings: OnceLock<Box<[Problem]>>,
    /// The warnings of slow checks, once they have run.
    examined: OnceLock<Box<[Problem]>>,
}

impl Entry {
    /// Creates the entry of a tool. It takes over what an earlier entry compiled of the same definitions, and its
    /// counters.
    pub(super) fn new(tool: Tool, earlier: Option<&Entry>, executors: &Executors) -> Self {
        // In another folder the same definition may name another file.
        let same_folder = earlier.filter(|entry| entry.tool.folder() == tool.folder());
        let head = match same_folder {
            Some(entry) if entry.tool.spec == tool.spec => Arc::clone(&entry.head),
            _ => Arc::default(),
        };
        let published = match (&tool.published, same_folder) {
            // Never used, and a cache of its own would take memory.
            (None, _) => Arc::clone(&head),
            (Some((_, spec)), _) if *spec == tool.spec => Arc::clone(&head),
            (published, Some(entry)) if entry.tool.published == *published => Arc::clone(&entry.published),
            _ => Arc::default(),
        };
        let usage = match earlier {
            Some(entry) => Arc::clone(&entry.usage),
            None => Arc::new(UsageCounter::new(tool.usage)),
        };
        let max_parallel = tool.spec.execution.limits.max_parallel;
        let max_parallel = max_parallel.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        let concurrency = match earlier.and_then(|entry| entry.concurrency.as_ref()) {
            Some(limit) if Some(limit.max()) == max_parallel => Some(Arc::clone(limit)),
            _ => max_parallel.map(|max| Arc::new(ConcurrencyLimit::new(max, MAX_QUEUED))),
        };
        let rate_windows = match earlier.and_then(|entry| entry.rate_windows.as_ref()) {
            Some(windows) => Some(Arc::clone(windows)),
            None => has_rate_limit(&tool).then(Arc::default),
        };
        Self {
            qualified: tool.qualified().into(),
            unavailable: executors.available(&tool.spec).err(),
            references: executors.of(&tool.spec).filter(|_| has_references(&tool.spec)).cloned(),
            tool,
            head,
            published,
            usage,
            concurrency,
            rate_windows,
            tokens: OnceLock::new(),
            warnings: OnceLock::new(),
            examined: OnceLock::new(),
        }
    }

    /// Returns the compiled definition, compiling it on this thread if necessary.
    pub fn plan(&self, revision: RevisionSelector, executors: &Executors) -> CompileResult {
        let (cache, spec) = self.cache(revision);
        cache.result().unwrap_or_else(|| cache.compile(spec, || self.compile_now(spec, executors)))
    }

    /// Returns whether [`Entry::plan`] returns at once, and a failure needs no second look.
    pub fn is_compiled(&self, revision: RevisionSelector) -> bool {
        let cache = self.cache(revision).0;
        cache.result().is_some() && !cache.should_recompile()
    }

    /// Returns whether a failure may lie in a file that has changed since.
    pub(crate) fn should_recompile(&self, revision: RevisionSelector) -> bool {
        self.cache(revision).0.should_recompile()
    }

    /// Compiles a definition on a thread that may block, unless it is compiled.
    pub(crate) async fn compile(self: &Arc<Self>, revision: RevisionSelector, executors: &Arc<Executors>) {
        let _compiling = self.cache(revision).0.compiling.lock().await;
        if self.is_compiled(revision) {
            return;
        }
        let (entry, executors) = (Arc::clone(self), Arc::clone(executors));
        let work = move || {
            let (cache, spec) = entry.cache(revision);
            drop(cache.compile(spec, || entry.compile_now(spec, &executors)));
        };
        if let Err(error) = tokio::task::spawn_blocking(work).await {
            tracing::error!(tool = %self.qualified, %error, "compilation of the definition failed");
        }
    }

    fn cache(&self, revision: RevisionSelector) -> (&CompileCache, &Arc<ToolSpec>) {
        match (revision, &self.tool.published) {
            (RevisionSelector::Published, Some((_, spec))) => (&self.published, spec),
            _ => (&self.head, &self.tool.spec),
        }
    }

    fn compile_now(&self, spec: &Arc<ToolSpec>, executors: &Executors) -> CompileResult {
        CompiledTool::compile(spec, self.tool.folder(), executors).map(Arc::new).map_err(Arc::from)
    }

    /// Returns whether [`Entry::verify`] would compile the newest definition.
    pub(super) fn needs_verification(&self) -> bool {
        self.tool.fault.is_none() && self.unavailable.is_none() && self.head.needs_verification()
    }

    /// Compiles the newest definition, unless somebody has, to see whether it can run. Returns whether the tool became
    /// ready or stopped being ready. It may take long: call it on a thread that may block.
    pub(super) fn verify(&self, executors: &Executors) -> bool {
        let spec = &self.tool.spec;
        self.needs_verification() && self.head.verify(spec, || self.compile_now(spec, executors))
    }

    /// Returns the definition of a revision and its number, if there is one.
    pub fn definition(&self, revision: RevisionSelector) -> Option<(u32, &Arc<ToolSpec>)> {
        match revision {
            RevisionSelector::Head => Some((self.tool.revision, &self.tool.spec)),
            RevisionSelector::Published => self.tool.published.as_ref().map(|(number, spec)| (*number, spec)),
        }
    }

    /// Estimates how many tokens the tool takes in a list for a model.
    pub fn tokens(&self) -> usize {
        let spec = &self.tool.spec;
        *self.tokens.get_or_init(|| definition(spec, spec.name.as_str(), Format::Mcp).tokens)
    }

    /// Returns warnings about how the newest definition will run. They do not depend on secrets or other tools.
    pub fn warnings(&self) -> &[Problem] {
        self.warnings.get_or_init(|| check::runtime_warnings(&self.tool.spec).into())
    }

    /// Returns the warnings of slow checks, which [`Entry::set_examined`] has stored.
    pub fn examined(&self) -> Option<&[Problem]> {
        self.examined.get().map(|warnings| &**warnings)
    }

    /// Stores the warnings of slow checks of the newest definition.
    pub fn set_examined(&self, warnings: Vec<Problem>) {
        self.examined.get_or_init(|| warnings.into());
    }

    /// Returns the secrets that the newest definition needs, as far as it was compiled.
    pub fn secrets(&self) -> &[Box<str>] {
        self.head.secrets()
    }

    /// Returns the problem if the newest definition refers to something that its tenant does not have now.
    fn missing_reference(&self) -> Option<Problem> {
        self.references.as_ref()?.missing_reference(&self.tool.tenant, &self.tool.spec)
    }

    /// Returns why the newest definition cannot run, or `None` if it can.
    pub fn fault(&self) -> Option<String> {
        if let Some(fault) = &self.tool.fault {
            return Some(fault.clone());
        }
        if let Some(problem) = self.unavailable.clone().or_else(|| self.missing_reference()) {
            return Some(problem.to_string());
        }
        self.head.problems().map(|problems| join(&problems)).or_else(|| self.head.late_fault())
    }

    /// Returns the problems of the newest definition itself.
    pub fn problems(&self) -> Vec<Problem> {
        match (&self.tool.fault, self.unavailable.clone().or_else(|| self.missing_reference())) {
            (Some(_), _) => Vec::new(),
            (None, Some(problem)) => vec![problem],
            (None, None) => self.head.problems().map(|problems| problems.to_vec()).unwrap_or_default(),
        }
    }

    /// Builds an error that names this tool: by its qualified name for the operator, by its own name for the model.
    pub(crate) fn named_error(&self, build: impl Fn(&str) -> CallError) -> CallError {
        let name = self.tool.spec.name.as_str();
        let error = if is_model_name(name) { build(name) } else { build(&model_name(name)) };
        build(&self.qualified).for_model(error.for_model.unwrap_or(error.message))
    }

    /// Returns whether the newest definition can run, as far as that is known.
    pub fn ready(&self) -> bool {
        self.is_usable() && self.missing_reference().is_none()
    }

    /// Returns whether debug mode can run the newest definition: what it refers to may be a draft there.
    fn ready_in_debug(&self) -> bool {
        self.is_usable() && self.missing_reference().is_none_or(|problem| problem.code == NOT_PUBLISHED)
    }

    fn is_usable(&self) -> bool {
        self.tool.fault.is_none()
            && self.unavailable.is_none()
            && self.head.problems().is_none()
            && self.head.late_fault().is_none()
    }

    /// Decides whether the tool may run in a mode.
    pub fn runnable(&self, bundle_enabled: bool, mode: Mode) -> Result<(), NotRunnable> {
        let policy = self.definition(mode.into()).map_or(self.tool.spec.policy, |(_, spec)| spec.policy);
        // A file that no longer parses takes its tool out of service in every mode.
        let ready = self.tool.fault.is_none() && (mode == Mode::Production || self.ready_in_debug());
        let state = RunState {
            bundle_enabled,
            tool_enabled: self.tool.enabled,
            ready,
            status: self.tool.status,
            policy,
            published: self.tool.published.is_some(),
            removed: self.is_removed(),
        };
        runnable(state, mode)
    }

    /// Returns whether the tool is deprecated and its removal date has passed.
    pub fn is_removed(&self) -> bool {
        let deprecation = self.tool.deprecation().filter(|deprecation| deprecation.removal_date.is_some());
        deprecation.is_some_and(|deprecation| deprecation.is_removed(SystemClock.now()))
    }

    /// Returns the error of a call that [`Entry::runnable`] rejects.
    pub fn not_runnable(&self, reason: NotRunnable) -> CallError {
        let detail = match reason {
            NotRunnable::Removed => self
                .tool
                .deprecation()
                .map(|deprecation| deprecation.removal_reason(deprecation.replaced_by.as_deref())),
            _ => self.fault(),
        };
        let error = self.named_error(|tool| reason.to_error(tool, detail.as_deref()));
        match (reason, self.tool.deprecation()) {
            (NotRunnable::Removed, Some(deprecation)) => error.with_details(json!({
                "replaced_by": deprecation.replaced_by,
                "removal_date": deprecation.removal_date,
            })),
            _ => error,
        }
    }

    /// Returns the usage of the tool up to now.
    pub fn usage(&self) -> Usage {
        self.usage.usage()
    }
}

/// Returns whether a definition refers to something that is neither a file nor a part of the program.
fn has_references(spec: &ToolSpec) -> bool {
    matches!(
        spec.implementation,
        Implementation::Artifact(_)
            | Implementation::AgentCall(_)
            | Implementation::RagRetrieval(_)
            | Implementation::Steps(_)
    )
}

fn has_rate_limit(tool: &Tool) -> bool {
    let published = tool.published.as_ref().map(|(_, spec)| spec);
    published.into_iter().chain([&tool.spec]).any(|spec| spec.execution.rate_limit.is_some())
}
