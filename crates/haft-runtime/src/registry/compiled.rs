//! A compiled definition, and the cache that holds it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use haft_core::executor::Prepared;
use haft_core::implementation::Implementation;
use haft_core::problem::Problem;
use haft_core::redact;
use haft_core::runnable::Mode;
use haft_core::schema::Schema;
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_definition::check;
use haft_definition::defaults::ArgumentDefaults;
use haft_definition::export::ArgumentAliases;
use serde_json::Value;

use crate::executors::Executors;
use crate::rate::Rate;

/// How long a failure that may lie in a file is cached.
const FILE_FAULT_TTL: Duration = Duration::from_millis(250);

/// The number of the next compiled definition.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Selects a revision of a tool.
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

/// A compiled definition.
pub struct CompiledTool {
    /// A number that is unique in this process.
    pub number: u64,
    /// The definition.
    pub spec: Arc<ToolSpec>,
    /// The schema of the arguments.
    pub(crate) input_schema: Value,
    /// The values of omitted arguments.
    pub defaults: ArgumentDefaults,
    /// The validator of the arguments.
    pub input: Schema,
    /// The arguments that models know by other names.
    pub(crate) aliases: ArgumentAliases,
    /// The validator of the value.
    pub output: Schema,
    /// Whether the definition says that the value is an object.
    pub returns_object: bool,
    /// The part of the executor.
    pub prepared: Arc<dyn Prepared>,
    /// Whether a call may need an account of its person.
    pub(crate) needs_account: bool,
    /// The timeout of a call.
    pub deadline: Duration,
    /// Secrets that the definition contains literally.
    pub literals: Vec<Secret>,
    /// The rate limit of the definition.
    pub(crate) rate: Option<Rate>,
}

impl CompiledTool {
    /// Compiles a definition whose bundle has this folder; returns all problems. It may take long: call it on a thread
    /// that may block.
    pub fn compile(
        spec: &Arc<ToolSpec>,
        folder: Option<&str>,
        executors: &Executors,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut collect = |result: Result<Schema, Vec<Problem>>| match result {
            Ok(schema) => Some(schema),
            Err(found) => {
                problems.extend(found);
                None
            }
        };
        let (input_schema, output_schema) = (spec.input_schema.value(), spec.output_schema.value());
        let input = collect(Schema::compile("input_schema", &input_schema));
        let output = collect(Schema::compile("output_schema", &output_schema));
        let prepared = executors.prepare(spec, folder).map_err(|found| problems.extend(found)).ok();
        let rate = rate(spec).map_err(|found| problems.extend(found)).ok();
        let (Some(input), Some(output), Some(prepared), Some(rate)) = (input, output, prepared, rate) else {
            return Err(problems);
        };
        Ok(Self {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            spec: Arc::clone(spec),
            defaults: ArgumentDefaults::of(spec),
            input,
            aliases: ArgumentAliases::new(&input_schema),
            input_schema,
            output,
            returns_object: output_schema.get("type").is_some_and(|kind| kind == "object"),
            needs_account: prepared.needs_account(),
            prepared,
            deadline: spec.deadline(),
            literals: redact::literal_secrets(spec),
            rate,
        })
    }
}

impl CompiledTool {
    /// Returns the names in templates and scripts that are neither arguments nor built in, so must be secrets.
    pub fn secret_names(&self) -> Vec<&str> {
        let properties = self.input_schema.get("properties").and_then(Value::as_object);
        let declares = |name: &str| properties.is_some_and(|all| all.contains_key(name));
        let mut names = self.prepared.secrets();
        // `${version}` is always defined, and an argument in the wrong notation is reported elsewhere.
        names.retain(|name| *name != "version" && !declares(name));
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Returns the rate limit of a definition. One that was stored by an earlier version may be invalid.
fn rate(spec: &ToolSpec) -> Result<Option<Rate>, Vec<Problem>> {
    let Some(limit) = &spec.execution.rate_limit else { return Ok(None) };
    let problems = check::rate_limit(limit);
    match limit.period() {
        Ok(period) if problems.is_empty() => Ok(Some(Rate::new(limit.calls, period))),
        _ => Err(problems),
    }
}

/// The result of a compilation.
pub type CompileResult = Result<Arc<CompiledTool>, Arc<[Problem]>>;

type FileError = (Instant, Arc<[Problem]>);

/// Caches what was compiled of one definition.
#[derive(Default)]
pub(super) struct CompileCache {
    result: OnceLock<CompileResult>,
    /// A failure that may lie in a file, and when it was found. The file may change without the definition.
    file_fault: Mutex<Option<FileError>>,
    /// The names of the secrets that it needs.
    secrets: OnceLock<Box<[Box<str>]>>,
    /// Whether the definition was compiled once to see whether it can run.
    verified: AtomicBool,
    /// Held while the definition is verified, so that it is compiled once.
    verifying: Mutex<()>,
    /// Held while the definition is compiled for a call; other calls wait here and not on a thread each.
    pub(super) compiling: tokio::sync::Mutex<()>,
}

impl CompileCache {
    /// Returns the last result.
    pub(super) fn result(&self) -> Option<CompileResult> {
        match self.result.get() {
            Some(result) => Some(result.clone()),
            None => self.problems().map(Err),
        }
    }

    /// Returns whether a failure may lie in a file and was found long enough ago to compile again.
    pub(super) fn should_recompile(&self) -> bool {
        self.result.get().is_none()
            && self.file_fault().as_ref().is_some_and(|(found, _)| found.elapsed() >= FILE_FAULT_TTL)
    }

    /// Returns the problems of the last compilation, if it failed.
    pub(super) fn problems(&self) -> Option<Arc<[Problem]>> {
        match self.result.get() {
            Some(result) => result.as_ref().err().cloned(),
            None => self.file_fault().as_ref().map(|(_, problems)| Arc::clone(problems)),
        }
    }

    /// Returns the names of the secrets that the definition needs, as far as it was compiled.
    pub(super) fn secrets(&self) -> &[Box<str>] {
        self.secrets.get().map_or(&[], |names| &**names)
    }

    fn note_secrets(&self, result: &CompileResult) {
        let Ok(compiled) = result else { return };
        self.secrets.get_or_init(|| compiled.secret_names().into_iter().map(Box::from).collect());
    }

    /// Returns a fault that the executor found after the compilation.
    pub(super) fn late_fault(&self) -> Option<String> {
        self.result.get()?.as_ref().ok()?.prepared.fault()
    }

    /// Returns whether the definition is not compiled yet, or a failure should be retried.
    pub(super) fn needs_verification(&self) -> bool {
        self.result.get().is_none() && (!self.verified.load(Ordering::Acquire) || self.should_recompile())
    }

    /// Compiles the definition and caches the result.
    pub(super) fn compile(&self, spec: &ToolSpec, compile: impl FnOnce() -> CompileResult) -> CompileResult {
        let result = compile();
        self.note_secrets(&result);
        self.verified.store(true, Ordering::Release);
        self.store(spec, result)
    }

    /// Compiles the definition and caches a failure only: a tool that is not called takes no memory. Returns whether
    /// the tool became ready or stopped being ready.
    pub(super) fn verify(&self, spec: &ToolSpec, compile: impl FnOnce() -> CompileResult) -> bool {
        let _verifying = self.verifying.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.needs_verification() {
            return false;
        }
        let had_fault = self.problems().is_some();
        let result = compile();
        self.note_secrets(&result);
        self.verified.store(true, Ordering::Release);
        let has_fault = result.is_err();
        match result {
            Ok(_) => *self.file_fault() = None,
            Err(problems) => drop(self.store(spec, Err(problems))),
        }
        had_fault != has_fault
    }

    /// Stores a result: for good, unless it is a failure that may lie in a file.
    fn store(&self, spec: &ToolSpec, result: CompileResult) -> CompileResult {
        match &result {
            Err(problems) if reads_files(spec) => {
                *self.file_fault() = Some((Instant::now(), Arc::clone(problems)));
                result
            }
            _ => self.result.get_or_init(|| result).clone(),
        }
    }

    fn file_fault(&self) -> MutexGuard<'_, Option<FileError>> {
        self.file_fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the compilation reads files beside the definition.
fn reads_files(spec: &ToolSpec) -> bool {
    match &spec.implementation {
        Implementation::Wasm(wasm) => wasm.file.is_some(),
        Implementation::Python(_) => true,
        _ => false,
    }
}
