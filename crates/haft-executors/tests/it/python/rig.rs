//! Executors of python on a temporary home folder.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::call::ProcessRecord;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::id::CallId;
use haft_core::implementation::{Implementation, Python, Script, ScriptRuntime};
use haft_core::name::{TenantId, ToolName};
use haft_core::outcome::Outcome;
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_executors::process::{ProcessSettings, Processes};
use haft_executors::python::{PythonExecutor, PythonPool};
use haft_executors::script::ScriptExecutor;
use haft_sandbox::{EngineName, Sandbox, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The one secret that is stored.
pub(super) struct Secrets;

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        _tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let found = (name == "API_KEY").then(|| Secret::new(format!("secret {name}")));
        Box::pin(std::future::ready(Ok(found)))
    }
}

pub(super) struct Rig {
    pub(super) scripts: ScriptExecutor,
    functions: PythonExecutor,
    pub(super) home: TempDir,
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::with(EngineName::Bubblewrap, |_| {})
    }

    pub(super) fn with(engine: EngineName, change: impl FnOnce(&mut ProcessSettings)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let hidden = vec![home.path().to_owned()];
        let settings = Settings { engine, hidden, ..Settings::new(home.path().join("run")) };
        let mut processes = ProcessSettings::default();
        change(&mut processes);
        let processes = Processes::new(Sandbox::open(settings).unwrap(), processes);
        let interpreters = PythonPool::new(processes.clone());
        Self {
            scripts: ScriptExecutor::new(processes, interpreters.clone()),
            functions: PythonExecutor::new(interpreters, Some(home.path().to_owned())),
            home,
        }
    }

    /// Makes a script with these arguments, all of any type.
    pub(super) fn script(&self, body: &str, arguments: &[&str]) -> Tool {
        self.script_with(body, arguments, |spec| spec.sandbox = true)
    }

    pub(super) fn script_with(
        &self,
        body: &str,
        arguments: &[&str],
        change: impl FnOnce(&mut ToolSpec),
    ) -> Tool {
        let script = Script::new(ScriptRuntime::Python, body);
        let mut spec = spec("tool", Implementation::Script(script), arguments);
        change(&mut spec);
        let spec = Arc::new(spec);
        let prepared = self.scripts.prepare(&spec, None).unwrap_or_else(|problems| panic!("{problems:?}"));
        Tool { prepared }
    }

    /// Writes a file of the toolset.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join("skills/set").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Makes a function of the toolset.
    pub(super) fn function(&self, entrypoint: &str) -> Tool {
        let implementation = Implementation::Python(Python::new(entrypoint));
        let mut spec = spec("function", implementation, &[]);
        spec.sandbox = true;
        let prepared = self.functions.prepare(&Arc::new(spec), Some("skills/set"));
        Tool { prepared: prepared.unwrap_or_else(|problems| panic!("{problems:?}")) }
    }

    pub(super) fn refused(&self, entrypoint: &str, folder: Option<&str>) -> String {
        let implementation = Implementation::Python(Python::new(entrypoint));
        let spec = Arc::new(spec("function", implementation, &[]));
        let Err(problems) = self.functions.prepare(&spec, folder) else { panic!("it was taken") };
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    /// Runs a script once.
    pub(super) async fn run(&self, body: &str) -> Outcome {
        self.script(body, &[]).call(json!({})).await
    }
}

pub(super) fn spec(name: &str, implementation: Implementation, arguments: &[&str]) -> ToolSpec {
    let mut spec = ToolSpec::new(ToolName::new(name).unwrap(), implementation);
    let properties: serde_json::Map<_, _> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    spec.input_schema = json!({"type": "object", "properties": properties}).into();
    spec
}

pub(super) struct Tool {
    prepared: Arc<dyn Prepared>,
}

impl Tool {
    pub(super) async fn call(&self, args: Value) -> Outcome {
        self.call_within(Duration::from_mins(1), args).await.0
    }

    /// Runs one call; returns what its process left, too.
    pub(super) async fn call_within(&self, time: Duration, args: Value) -> (Outcome, ProcessRecord) {
        self.call_for("default", time, args).await
    }

    pub(super) async fn call_for(
        &self,
        tenant: &str,
        time: Duration,
        args: Value,
    ) -> (Outcome, ProcessRecord) {
        let (id, tenant) = (CallId(uuid::Uuid::nil()), TenantId::new(tenant).unwrap());
        let context = CallContext::new(id, tenant, Instant::now() + time, Arc::new(Secrets));
        let outcome = self.prepared.run(&context, args.as_object().unwrap()).await;
        (outcome, context.take_artifacts().and_then(|left| left.process).unwrap_or_default())
    }
}

/// Returns a traceback without the lines that mark parts of others: each version of python has its own.
pub(super) fn without_marks(text: &str) -> String {
    let is_mark = |line: &&str| line.contains('^') && line.chars().all(|letter| " ^~".contains(letter));
    text.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

/// Returns the processes with this name that this test has started, directly or not.
pub(super) fn descendants(name: &str) -> Vec<i32> {
    let processes: Vec<(i32, i32, String)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (start, rest) = text.rsplit_once(')')?;
            let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent, start.split_once('(')?.1.to_owned()))
        })
        .collect();
    let parent_of = |pid| processes.iter().find(|(known, ..)| *known == pid).map(|(_, parent, _)| *parent);
    let own = i32::try_from(std::process::id()).unwrap();
    let is_own = |pid| std::iter::successors(Some(pid), |pid| parent_of(*pid)).any(|pid| pid == own);
    processes.iter().filter(|(pid, _, known)| known == name && is_own(*pid)).map(|(pid, ..)| *pid).collect()
}

/// Waits until none of these processes is left.
pub(super) async fn none_left(name: &str) {
    until(async || descendants(name).is_empty()).await;
}

/// Waits until a condition holds.
pub(super) async fn until(mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !condition().await {
        assert!(Instant::now() < deadline, "the condition did not become true in time");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
