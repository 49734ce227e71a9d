//! The tools of a program, and the one way to call them.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::bundle::Bundle;
use haft_core::catalog::{Change, ChangeSink as _};
use haft_core::check;
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool, Usage};
use haft_core::{Clock as _, Timestamp};
use haft_runtime::clock::SystemClock;
use haft_runtime::executors::Executors;
use haft_runtime::function::{FunctionExecutor, Functions};
use haft_runtime::pipeline::{Caller, Labels, Parts, Pipeline, Request};
use haft_runtime::registry::Registry;
use haft_runtime::stages::Output;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::def::ToolDef;
use crate::error::{Reason, RegisterError};
use crate::unrecorded::{NoSecrets, Unrecorded};

/// The most calls that run at once.
const MAX_RUNNING: usize = 10_000;

/// The tools of a program. Clones are of the same set.
#[derive(Clone)]
pub struct Tools {
    shared: Arc<Shared>,
    pipeline: Arc<Pipeline>,
}

/// What all views of a set share.
struct Shared {
    registry: Arc<Registry>,
    functions: Functions,
    bundle: Bundle,
    /// The names that are taken; held while one is being added.
    taken: Mutex<HashSet<ToolName>>,
    caller: Caller,
}

impl Default for Tools {
    fn default() -> Self {
        Self::new()
    }
}

impl Tools {
    /// Starts without any tool.
    pub fn new() -> Self {
        let functions = Functions::default();
        let executors = Executors::default().with(Arc::new(FunctionExecutor::new(functions.clone())));
        let registry = Arc::new(Registry::new(executors));
        let bundle = bundle(SystemClock.now());
        registry.apply(vec![Change::Bundle(bundle.clone())]);
        let pipeline = Pipeline::new(Parts {
            registry: Arc::clone(&registry),
            ledger: Arc::new(Unrecorded),
            secrets: Arc::new(NoSecrets),
            clock: Arc::new(SystemClock),
            stages: vec![Arc::new(Output)],
            max_running: MAX_RUNNING,
            workspace: None,
        });
        let caller = Caller { name: "program".into(), elevated: true };
        let shared = Shared { registry, functions, bundle, taken: Mutex::default(), caller };
        Self { shared: Arc::new(shared), pipeline: Arc::new(pipeline) }
    }

    /// Adds a tool.
    pub fn register(&self, def: ToolDef) -> Result<(), RegisterError> {
        let ToolDef { name, function, .. } = &def;
        let registered = def.spec().map_err(Reason::from).and_then(|spec| {
            let faults = check::definition(&spec).errors;
            if !faults.is_empty() {
                return Err(Reason::Definition(faults));
            }
            let mut taken = self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
            if !taken.insert(spec.name.clone()) {
                return Err(Reason::Duplicate);
            }
            self.shared.functions.insert(name, Arc::clone(function));
            self.shared.add(spec);
            Ok(())
        });
        registered.map_err(|reason| RegisterError { tool: def.name, reason })
    }

    /// Calls a tool with JSON and waits for its value.
    pub async fn execute(&self, name: &str, args: Map<String, Value>) -> Result<Value, CallError> {
        let tool: ToolRef =
            name.parse().map_err(|error| CallError::new(ErrorCode::NotFound, format!("{error}")))?;
        let answer = self
            .pipeline
            .call(Request {
                tenant: self.shared.bundle.tenant.clone(),
                tool,
                args,
                mode: Mode::Debug,
                caller: self.shared.caller.clone(),
                surface: "library",
                timeout: None,
                idempotency_key: None,
                events: None,
                labels: Labels::default(),
            })
            .await?;
        let mut record = Arc::unwrap_or_clone(answer.record);
        match record.error.take() {
            Some(error) => Err(error),
            None => Ok(record.value.take().unwrap_or_default()),
        }
    }
}

impl Shared {
    fn add(&self, spec: ToolSpec) {
        let now = SystemClock.now();
        let spec = Arc::new(spec);
        let tool = Tool {
            id: ToolId(Uuid::now_v7()),
            tenant: self.bundle.tenant.clone(),
            bundle_id: self.bundle.id,
            bundle: self.bundle.slug.clone(),
            published: Some((1, Arc::clone(&spec))),
            spec,
            revision: 1,
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
        };
        self.registry.apply(vec![Change::Tool(Box::new(tool))]);
    }
}

fn bundle(now: Timestamp) -> Bundle {
    Bundle {
        id: BundleId(Uuid::now_v7()),
        tenant: TenantId::default_tenant(),
        slug: BundleSlug::user_created(),
        display_name: String::new(),
        description: String::new(),
        enabled: true,
        built_in: false,
        created_at: now,
        modified_at: now,
        soft_deleted_at: None,
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("tools", &self.shared.registry.snapshot().len()).finish_non_exhaustive()
    }
}
