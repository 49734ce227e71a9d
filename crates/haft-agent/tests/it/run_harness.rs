//! What the tests of runs share: a store in memory, a host with simple tools and a ledger, and runs with scripted models.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_agent::model::{EventStream, Model, ModelMessage, ModelRequest, Script, Scripted, ToolDefinition};
use haft_agent::run::{
    AgentRun, BoundTool, EndedCall, RunControl, RunEvent, RunHost, ToolReply, ToolRequest, transcript,
};
use haft_core::agent::{AgentBudget, AgentDefinition, AgentModel};
use haft_core::call::CallStatus;
use haft_core::id::{AgentId, ApprovalId, CallId, RunId, ToolId};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::Principal;
use haft_core::run::{
    ResultStep, Run, RunEnd, RunLease, RunStatus, RunStep, RunStore, RunStoreError, RunUsage, StepBody,
};
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_core::{BoxFuture, Clock, Timestamp};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A store that keeps everything, and may fail like a node that is cut off.
#[derive(Default)]
pub(crate) struct MemoryStore {
    pub(crate) steps: Mutex<Vec<RunStep>>,
    pub(crate) usage: Mutex<RunUsage>,
    pub(crate) end: Mutex<Option<RunEnd>>,
    /// How many steps are stored before the lease is lost.
    pub(crate) limit: Mutex<Option<usize>>,
}

impl RunStore for MemoryStore {
    fn append_steps<'a>(
        &'a self,
        _lease: &'a RunLease,
        steps: Vec<RunStep>,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>> {
        Box::pin(async move {
            let mut stored = self.steps.lock().unwrap();
            if self.limit.lock().unwrap().is_some_and(|limit| stored.len() + steps.len() > limit) {
                return Err(RunStoreError::LeaseLost);
            }
            for step in steps {
                assert_eq!(step.number as usize, stored.len() + 1, "steps are numbered from 1");
                stored.push(step);
            }
            *self.usage.lock().unwrap() = usage.clone();
            Ok(())
        })
    }

    fn release_run<'a>(
        &'a self,
        _lease: &'a RunLease,
        end: RunEnd,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>> {
        Box::pin(async move {
            if self.limit.lock().unwrap().is_some_and(|limit| self.steps.lock().unwrap().len() >= limit) {
                return Err(RunStoreError::LeaseLost);
            }
            *self.end.lock().unwrap() = Some(end);
            *self.usage.lock().unwrap() = usage.clone();
            Ok(())
        })
    }
}

/// A time that stands still.
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// What a tool does with its arguments; the number counts its executions.
type Behaviour = dyn Fn(&Map<String, Value>, usize) -> Result<Value, CallError> + Send + Sync;

/// A tool of the test host.
pub(crate) struct TestTool {
    bound: BoundTool,
    delay: Duration,
    needs_approval: bool,
    usage: RunUsage,
    behaviour: Box<Behaviour>,
}

impl TestTool {
    /// A tool with side effects that returns its arguments.
    pub(crate) fn new(name: &str) -> Self {
        let id = Uuid::from_u128(name.bytes().fold(7, |sum, byte| sum * 31 + u128::from(byte)));
        let definition = ToolDefinition {
            name: name.to_owned(),
            description: format!("The tool {name}"),
            input_schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        };
        Self {
            bound: BoundTool {
                definition,
                id: ToolId(id),
                qualified: format!("test:{name}@1.0.0"),
                is_pure: false,
                concurrency_group: "default".to_owned(),
                max_concurrency: 1,
            },
            delay: Duration::from_millis(10),
            needs_approval: false,
            usage: RunUsage::default(),
            behaviour: Box::new(|args, _| Ok(Value::Object(args.clone()))),
        }
    }

    pub(crate) fn pure(mut self, group: &str, max_concurrency: u32) -> Self {
        self.bound.is_pure = true;
        group.clone_into(&mut self.bound.concurrency_group);
        self.bound.max_concurrency = max_concurrency;
        self
    }

    pub(crate) fn delay(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn needs_approval(mut self) -> Self {
        self.needs_approval = true;
        self
    }

    /// Sets what the runs of agents inside a call use.
    pub(crate) fn uses(mut self, usage: RunUsage) -> Self {
        self.usage = usage;
        self
    }

    pub(crate) fn does(
        mut self,
        behaviour: impl Fn(&Map<String, Value>, usize) -> Result<Value, CallError> + Send + Sync + 'static,
    ) -> Self {
        self.behaviour = Box::new(behaviour);
        self
    }
}

/// A host with tools in memory. Like the ledger, it returns the first outcome for a repeated key.
#[derive(Default)]
pub(crate) struct TestHost {
    tools: Vec<TestTool>,
    pub(crate) events: Mutex<Vec<RunEvent>>,
    /// When calls start and end: `+name n`, `-name n`.
    pub(crate) log: Mutex<Vec<String>>,
    pub(crate) requests: Mutex<Vec<ToolRequest>>,
    ledger: Mutex<HashMap<String, ToolReply>>,
    /// The calls that wait, and what became of them.
    waiting: Mutex<HashMap<CallId, (ToolRequest, Option<EndedCall>)>>,
    executions: Mutex<HashMap<String, usize>>,
}

impl TestHost {
    pub(crate) fn new(tools: impl IntoIterator<Item = TestTool>) -> Arc<Self> {
        Arc::new(Self { tools: tools.into_iter().collect(), ..Self::default() })
    }

    fn tool(&self, id: ToolId) -> &TestTool {
        self.tools.iter().find(|tool| tool.bound.id == id).unwrap()
    }

    fn write(&self, mark: char, request: &ToolRequest) {
        let name = &self.tool(request.tool).bound.definition.name;
        let n = request.args.get("n").map(|n| format!(" {n}")).unwrap_or_default();
        self.log.lock().unwrap().push(format!("{mark}{name}{n}"));
    }

    /// Returns how often a tool ran.
    pub(crate) fn executions(&self, name: &str) -> usize {
        self.executions.lock().unwrap().get(name).copied().unwrap_or_default()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// Returns the types of the events so far, in short, without deltas.
    pub(crate) fn event_types(&self) -> Vec<String> {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        let short = events.iter().filter_map(|event| match event {
            RunEvent::TextDelta { .. } | RunEvent::ReasoningDelta { .. } => None,
            RunEvent::ToolUse { name, status, .. } => Some(format!("{name} {}", status.as_str())),
            RunEvent::End { status, .. } => Some(format!("end {status}")),
            other => Some(serde_json::to_value(other).unwrap()["type"].as_str().unwrap().to_owned()),
        });
        short.collect()
    }

    async fn execute(&self, request: &ToolRequest) -> EndedCall {
        let tool = self.tool(request.tool);
        self.write('+', request);
        let count = {
            let mut executions = self.executions.lock().unwrap();
            let count = executions.entry(tool.bound.definition.name.clone()).or_default();
            *count += 1;
            *count
        };
        let run = tokio::time::sleep(tool.delay);
        let is_late = if let Some(timeout) = request.timeout {
            tokio::time::timeout(timeout, run).await.is_err()
        } else {
            run.await;
            false
        };
        self.write('-', request);
        let outcome = if is_late {
            Err(CallError::new(ErrorCode::Timeout, "the call exceeded its timeout"))
        } else {
            (tool.behaviour)(&request.args, count)
        };
        EndedCall { usage: tool.usage.clone(), ..ended(outcome) }
    }

    async fn answer(&self, request: ToolRequest) -> ToolReply {
        self.requests.lock().unwrap().push(request.clone());
        let key = request.idempotency_key.clone();
        if let Some(known) = key.as_ref().and_then(|key| self.ledger.lock().unwrap().get(key).cloned()) {
            return known;
        }
        let reply = if self.tool(request.tool).needs_approval {
            let call_id = CallId(Uuid::now_v7());
            self.waiting.lock().unwrap().insert(call_id, (request, None));
            ToolReply::AwaitingApproval { call_id, approval_id: ApprovalId(Uuid::now_v7()), expires_at: None }
        } else {
            ToolReply::Ended(Box::new(self.execute(&request).await))
        };
        if let Some(key) = key {
            self.ledger.lock().unwrap().insert(key, reply.clone());
        }
        reply
    }

    /// Decides about the calls that wait, and runs those that are approved.
    pub(crate) async fn decide(&self, decision: &Result<(), CallError>) {
        let open: Vec<_> = {
            let waiting = self.waiting.lock().unwrap();
            let open = waiting.iter().filter(|(_, (_, ended))| ended.is_none());
            open.map(|(id, (request, _))| (*id, request.clone())).collect()
        };
        for (id, request) in open {
            let done = match decision {
                Ok(()) => self.execute(&request).await,
                Err(error) => ended(Err(error.clone())),
            };
            self.waiting.lock().unwrap().get_mut(&id).unwrap().1 =
                Some(EndedCall { call_id: Some(id), ..done });
        }
    }
}

fn ended(outcome: Result<Value, CallError>) -> EndedCall {
    let status = match outcome.as_ref().map_err(|error| error.code) {
        Ok(_) => CallStatus::Success,
        Err(ErrorCode::ApprovalDenied) => CallStatus::Denied,
        Err(_) => CallStatus::Error,
    };
    let (value, error) = match outcome {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    };
    let call_id = Some(CallId(Uuid::now_v7()));
    EndedCall { call_id, status, value, images: Vec::new(), error, usage: RunUsage::default() }
}

impl RunHost for TestHost {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<BoundTool>, CallError>> {
        Box::pin(async { Ok(self.tools.iter().map(|tool| tool.bound.clone()).collect()) })
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolReply, CallError>> {
        Box::pin(async { Ok(self.answer(request).await) })
    }

    fn ended(&self, call: CallId) -> BoxFuture<'_, Result<Option<EndedCall>, CallError>> {
        let found = self.waiting.lock().unwrap().get(&call).and_then(|(_, ended)| ended.clone());
        Box::pin(async { Ok(found) })
    }

    fn emit(&self, event: RunEvent) {
        self.events.lock().unwrap().push(event);
    }
}

/// An agent, its model and its surroundings; each `run` is a claim by another node.
pub(crate) struct Fixture {
    pub(crate) run: Run,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) host: Arc<TestHost>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) control: RunControl,
}

impl Fixture {
    /// Creates a run whose model answers by a script.
    pub(crate) fn new(script: &str, tools: impl IntoIterator<Item = TestTool>) -> Self {
        let script = Script::parse("test.yaml", script).unwrap();
        let definition = AgentDefinition::new("tester".parse().unwrap(), AgentModel::new("scripted"));
        let tenant: TenantId = "default".parse().unwrap();
        let run = Run {
            id: RunId(Uuid::now_v7()),
            agent_id: AgentId(Uuid::now_v7()),
            agent_revision: 1,
            definition: Arc::new(definition),
            principal: Arc::new(Principal::new(tenant, "test", Role::Caller)),
            surface: "rest".to_owned(),
            mode: Mode::Debug,
            input: serde_json::to_value([ModelMessage::user("go")]).unwrap(),
            variables: BTreeMap::new(),
            chat_id: None,
            message_id: None,
            parent_call: None,
            parent_run: None,
            ancestors: Vec::new(),
            surfaces_above: Vec::new(),
            budget: AgentBudget::default(),
            webhook: None,
            request_id: None,
            status: RunStatus::Running,
            output: None,
            error: None,
            usage: RunUsage::default(),
            created_at: Timestamp::UNIX_EPOCH,
            started_at: None,
            finished_at: None,
        };
        Self {
            run,
            model: Arc::new(Scripted::new("scripted", Arc::new(script))),
            host: TestHost::new(tools),
            store: Arc::default(),
            control: RunControl::new(),
        }
    }

    /// Changes the agent.
    pub(crate) fn agent(mut self, change: impl FnOnce(&mut AgentDefinition)) -> Self {
        change(Arc::make_mut(&mut self.run.definition));
        self
    }

    /// Claims the run and runs it.
    pub(crate) async fn claim(&self) -> Result<RunEnd, RunStoreError> {
        let mut run = self.run.clone();
        run.usage = self.store.usage.lock().unwrap().clone();
        let agent_run = AgentRun {
            lease: RunLease { run: run.id, fence: 1 },
            steps: self.steps(),
            run,
            model: Arc::clone(&self.model),
            host: Arc::clone(&self.host) as Arc<dyn RunHost>,
            store: Arc::clone(&self.store) as Arc<dyn RunStore>,
            clock: Arc::new(FixedClock),
        };
        agent_run.execute(self.control.clone()).await
    }

    /// Runs it to its output.
    pub(crate) async fn output(&self) -> Value {
        match self.claim().await.unwrap() {
            RunEnd::Finished { status: RunStatus::Success, output: Some(output), error: None } => output,
            other => panic!("{other:?}"),
        }
    }

    /// Runs it to its error.
    pub(crate) async fn error(&self) -> CallError {
        match self.claim().await.unwrap() {
            RunEnd::Finished { status: RunStatus::Error, output: None, error: Some(error) } => error,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn steps(&self) -> Vec<RunStep> {
        self.store.steps.lock().unwrap().clone()
    }

    pub(crate) fn transcript(&self) -> Vec<ModelMessage> {
        transcript(&self.steps())
    }

    pub(crate) fn usage(&self) -> RunUsage {
        self.store.usage.lock().unwrap().clone()
    }

    /// Returns the results, in the order in which they were stored.
    pub(crate) fn results(&self) -> Vec<ResultStep> {
        let results = self.steps().into_iter().filter_map(|step| match step.body {
            StepBody::Result(result) => Some(result),
            _ => None,
        });
        results.collect()
    }

    /// Returns the texts of the results that the model reads, in the order of their calls.
    pub(crate) fn result_texts(&self) -> Vec<String> {
        let messages = self.transcript();
        messages.iter().flat_map(ModelMessage::tool_results).map(|result| result.text.clone()).collect()
    }
}

/// Remembers the requests to a model.
pub(crate) struct Recorded {
    model: Arc<dyn Model>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
}

impl Model for Recorded {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream(&self, request: &ModelRequest) -> EventStream {
        self.requests.lock().unwrap().push(request.clone());
        self.model.stream(request)
    }
}

/// Records the requests of a run to its model.
pub(crate) fn recorded(run: &mut Fixture) -> Arc<Recorded> {
    let model = Arc::new(Recorded { model: Arc::clone(&run.model), requests: Mutex::default() });
    run.model = Arc::clone(&model) as Arc<dyn Model>;
    model
}
