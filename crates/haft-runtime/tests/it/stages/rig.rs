//! A pipeline with a few functions and the stages of a test.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::call::CallRecord;
use haft_core::catalog::{Change, ChangeSink as _};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::runnable::Mode;
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_core::tool::{Source, Status, Tool, Usage};
use haft_core::{BoxFuture, Clock as _};
use haft_runtime::clock::SystemClock;
use haft_runtime::executors::Executors;
use haft_runtime::function::{Args, FunctionExecutor, Functions};
use haft_runtime::limits::LimitSettings;
use haft_runtime::pipeline::{CallTarget, Pipeline, PipelineParts, Principal, Request};
use haft_runtime::policy::PolicyHandle;
use haft_runtime::registry::{Entry, Registry};
use haft_runtime::stages::Stage;
use haft_runtime::steps::StepsExecutor;
use serde_json::{Value, json};
use uuid::Uuid;

/// Counters of the test functions.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) runs: AtomicUsize,
    pub(super) running: AtomicUsize,
    pub(super) most: AtomicUsize,
}

pub(super) struct Rig {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) seen: Arc<Seen>,
    pub(super) registry: Arc<Registry>,
    pub(super) policy: Arc<PolicyHandle>,
    observed: Arc<Mutex<Vec<(String, &'static str)>>>,
    bundle: Bundle,
    tools: Mutex<Vec<Tool>>,
}

pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Rig {
    pub(super) fn new(stages: Vec<Arc<dyn Stage>>) -> Self {
        let seen = Arc::new(Seen::default());
        let executors = Executors::default()
            .with(Arc::new(FunctionExecutor::new(functions(&seen))))
            .with(Arc::new(StepsExecutor::default()));
        Self { seen, ..Self::with_executors(stages, executors) }
    }

    pub(super) fn with_executors(stages: Vec<Arc<dyn Stage>>, executors: Executors) -> Self {
        let registry = Arc::new(Registry::new(executors));
        let now = SystemClock.now();
        let bundle = Bundle {
            id: BundleId(Uuid::now_v7()),
            tenant: TenantId::default_tenant(),
            slug: BundleSlug::user_created(),
            display_name: String::new(),
            description: String::new(),
            enabled: true,
            kind: BundleKind::User,
            created_at: now,
            modified_at: now,
            soft_deleted_at: None,
        };
        registry.apply(vec![Change::Bundle(bundle.clone())]);
        let observed: Arc<Mutex<Vec<(String, &'static str)>>> = Arc::default();
        let log = Arc::clone(&observed);
        let observer = move |record: &CallRecord| {
            let name = record.invocation.tool.split([':', '@']).nth(1).unwrap().to_owned();
            let code = record.error.as_ref().map_or("ok", |error| error.code.as_str());
            log.lock().unwrap().push((name, code));
        };
        let policy: Arc<PolicyHandle> = Arc::default();
        let pipeline = Arc::new(Pipeline::new(PipelineParts {
            registry: Arc::clone(&registry),
            ledger: None,
            waiting: None,
            policy: Arc::clone(&policy),
            observer: Some(Arc::new(observer)),
            rejections: None,
            secrets: Arc::new(Nothing),
            clock: Arc::new(SystemClock),
            stages,
            max_running: 10_000,
            limits: LimitSettings::default(),
            tenant_limits: None,
            workspace: None,
            workspaces: None,
            results: None,
        }));
        let seen = Arc::default();
        Self { pipeline, seen, registry, policy, observed, bundle, tools: Mutex::default() }
    }

    /// Applies a change of the bundle to the registry.
    pub(super) fn bundle(&self, change: impl FnOnce(&mut Bundle)) {
        let mut bundle = self.bundle.clone();
        change(&mut bundle);
        self.registry.apply(vec![Change::Bundle(bundle)]);
    }

    pub(super) fn bundle_gone(&self) {
        self.registry.apply(vec![Change::BundleGone(self.bundle.id)]);
    }

    /// Adds a tool of the function of the same name, or changes its `execution`.
    pub(super) fn tool(&self, name: &str, execution: Value) -> &Self {
        self.tool_of(name, name, execution)
    }

    pub(super) fn tool_of(&self, name: &str, function: &str, execution: Value) -> &Self {
        self.apply_tool(name, function, execution);
        // Compiled here, so that the first call of a test does not wait for another thread.
        drop(self.entry(name).plan(Mode::Debug.into(), self.registry.executors()));
        self
    }

    /// Applies the change of a tool to the registry; nothing waits for its compilation.
    pub(super) fn apply_tool(&self, name: &str, function: &str, execution: Value) {
        let mut definition = json!({
            "name": name, "version": "1.0.0",
            "implementation": {"type": "function", "function": function},
        });
        definition["execution"] = execution;
        self.apply_definition(definition);
    }

    /// Adds a tool with this definition.
    pub(super) fn defined(&self, definition: Value) -> &Self {
        let name = definition["name"].as_str().unwrap().to_owned();
        self.apply_definition(definition);
        drop(self.entry(&name).plan(Mode::Debug.into(), self.registry.executors()));
        self
    }

    fn apply_definition(&self, definition: Value) {
        let mut tools = self.tools.lock().unwrap();
        let spec: ToolSpec = serde_json::from_value(definition).unwrap();
        let (spec, now) = (Arc::new(spec), SystemClock.now());
        let earlier = tools.iter().find(|tool| tool.spec.name == spec.name);
        let (id, revision) = earlier.map_or((ToolId(Uuid::now_v7()), 1), |tool| (tool.id, tool.revision + 1));
        let tool = Tool {
            id,
            tenant: self.bundle.tenant.clone(),
            bundle_id: self.bundle.id,
            bundle: self.bundle.slug.clone(),
            published: Some((revision, Arc::clone(&spec))),
            spec,
            revision,
            status: Status::Published,
            enabled: true,
            built_in: false,
            fault: None,
            source: Source::User,
            path: None,
            usage: Usage::default(),
            created_at: now,
            modified_at: now,
            published_at: Some(now),
            lifecycle: haft_core::lifecycle::Lifecycle::default(),
        };
        tools.retain(|other| other.id != id);
        tools.push(tool.clone());
        self.registry.apply(vec![Change::Tool(Box::new(tool))]);
    }

    pub(super) fn entry(&self, name: &str) -> Arc<Entry> {
        let (snapshot, reference) = (self.registry.snapshot(), name.parse().unwrap());
        Arc::clone(snapshot.resolve_in(&self.bundle.tenant, &reference, Mode::Debug).unwrap())
    }

    /// Takes what the observer of the pipeline has received: the name of the tool, and `ok` or the code.
    pub(super) fn take_observed(&self) -> Vec<(String, &'static str)> {
        std::mem::take(&mut self.observed.lock().unwrap())
    }

    pub(super) async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.call_as("tester", tool, args).await
    }

    pub(super) async fn call_as(&self, caller: &str, tool: &str, args: Value) -> Outcome {
        self.record_as(caller, tool, args).await?.outcome().unwrap()
    }

    /// Returns the record of a call without arguments.
    pub(super) async fn record(&self, tool: &str) -> Arc<CallRecord> {
        self.record_as("tester", tool, json!({})).await.unwrap()
    }

    async fn record_as(&self, caller: &str, tool: &str, args: Value) -> Result<Arc<CallRecord>, CallError> {
        let principal = Principal::new(self.bundle.tenant.clone(), caller, Role::Caller).elevated(true);
        let args = serde_json::from_value(args).unwrap();
        let request = Request { mode: Mode::Debug, ..Request::new(Arc::new(principal), "test", args) };
        let target = CallTarget::Named(tool.parse().unwrap());
        Ok(self.pipeline.call(target, request).await?.record)
    }

    /// Calls a tool through a surface, without elevation.
    pub(super) async fn call_through(&self, surface: &'static str, tool: &str, args: Value) -> Outcome {
        self.call_by(Role::Caller, surface, tool, args).await
    }

    /// Calls a tool without arguments with this role.
    pub(super) async fn call_with_role(&self, role: &str, tool: &str) -> Outcome {
        self.call_by(serde_json::from_value(json!(role)).unwrap(), "rest", tool, json!({})).await
    }

    async fn call_by(&self, role: Role, surface: &'static str, tool: &str, args: Value) -> Outcome {
        let principal = Arc::new(Principal::new(self.bundle.tenant.clone(), "tester", role));
        let args = serde_json::from_value(args).unwrap();
        let request = Request { mode: Mode::Debug, ..Request::new(principal, surface, args) };
        let target = CallTarget::Named(tool.parse().unwrap());
        self.pipeline.call(target, request).await?.record.outcome().unwrap()
    }

    /// Returns the code that a call ends with, or `ok`.
    pub(super) async fn code(&self, tool: &str, args: Value) -> &'static str {
        code(&self.call(tool, args).await)
    }

    pub(super) fn runs(&self) -> usize {
        self.seen.runs.load(Ordering::SeqCst)
    }
}

pub(super) fn code(outcome: &Outcome) -> &'static str {
    outcome.as_ref().map_or_else(|error| error.code.as_str(), |_| "ok")
}

fn functions(seen: &Arc<Seen>) -> Functions {
    let counted = |function: fn(Args, usize) -> BoxFuture<'static, Outcome>| {
        let seen = Arc::clone(seen);
        move |args: Args| {
            let run = seen.runs.fetch_add(1, Ordering::SeqCst) + 1;
            let at_once = seen.running.fetch_add(1, Ordering::SeqCst) + 1;
            seen.most.fetch_max(at_once, Ordering::SeqCst);
            let leaving = Leaving(Arc::clone(&seen));
            async move {
                let _leaving = leaving;
                function(args, run).await
            }
        }
    };
    Functions::default()
        .with_async("quick", counted(|args, _| Box::pin(ready(Ok(Value::Object(args))))))
        .with_async("run", counted(|_, run| Box::pin(ready(Ok(json!(run))))))
        .with_async(
            "slow",
            counted(|args, run| {
                Box::pin(async move {
                    tokio::time::sleep(secs(args.get("seconds").and_then(Value::as_u64).unwrap_or(1))).await;
                    Ok(json!(run))
                })
            }),
        )
        .with_async("fails", counted(|_, _| Box::pin(ready(Err(failed())))))
        .with_async(
            "slowly_fails",
            counted(|_, _| {
                Box::pin(async {
                    tokio::time::sleep(secs(1)).await;
                    Err(failed())
                })
            }),
        )
        .with_async(
            "flaky",
            counted(|_, run| {
                let network = CallError::new(ErrorCode::Network, "the line is bad");
                Box::pin(ready(if run < 3 { Err(network) } else { Ok(json!(run)) }))
            }),
        )
        .with_async("panics", counted(|_, _| Box::pin(async { panic!("broken") })))
}

fn failed() -> CallError {
    CallError::new(ErrorCode::ExecutionFailed, "the disk is full of hunter2")
}

struct Leaving(Arc<Seen>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Knows no secret.
struct Nothing;

impl SecretSource for Nothing {
    fn secret<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(ready(Ok(None)))
    }
}
