//! The executor of `agent_call`: a run of another agent inside a call.
//!
//! The run belongs to the call: it is cancelled with it, and it shares the budget of the run above. A run that fails or
//! takes too long is a result that the caller reads, not an error of the call.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::model::ModelMessage;
use haft_core::agent::{Agent, AgentBudget};
use haft_core::chat::MessageRole;
use haft_core::executor::{CallContext, DependencyScope, Executor, Prepared};
use haft_core::id::{ChatId, MessageId, RunId};
use haft_core::implementation::{Implementation, Kind};
use haft_core::invocation::Lineage;
use haft_core::name::{AgentSlug, TenantId};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::principal::ActingAgent;
use haft_core::problem::Problem;
use haft_core::run::{Run, RunStatus};
use haft_core::spec::ToolSpec;
use haft_core::{BoxFuture, hash};
use serde_json::{Map, Value, json};

use super::agent_result::result_of;
use super::engine::{RunEngine, not_stored};
use super::start::{ParentRun, StartRun};
use super::waiting::waiting_calls;
use crate::agents::{runnable_agent, target_of, target_problem};
use crate::answers::content_parts;
use crate::error::call_error;
use crate::late::Late;

/// How long after its deadline a call may take to stop its run and report it.
const GRACE: Duration = Duration::from_secs(3);
/// How long to wait until a cancelled run has ended.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// How many steps are read to find the calls that wait.
const STEPS: u32 = 10_000;

/// Runs agents as tools.
pub struct AgentCallExecutor(Late<RunEngine>);

impl AgentCallExecutor {
    /// Creates the executor of an installation that is not open yet.
    pub fn new(handle: Late<RunEngine>) -> Self {
        Self(handle)
    }
}

impl Executor for AgentCallExecutor {
    fn kind(&self) -> Kind {
        Kind::AgentCall
    }

    fn missing_reference(&self, tenant: &TenantId, spec: &ToolSpec) -> Option<Problem> {
        // Before the installation is open nothing is known to be missing.
        let engine = self.0.get().ok()?;
        let app = engine.context();
        target_problem(app, tenant, spec, app.settings().mode)
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::AgentCall(target) = &spec.implementation else {
            return Err(vec![Problem::new("implementation.type", "wrong_kind", "expected `agent_call`")]);
        };
        let Some((_, target)) = target_of(target) else {
            let message = "missing `target_agent_slug` or `target_agent_id`";
            return Err(vec![Problem::new("implementation", "missing_field", message)]);
        };
        Ok(Arc::new(PreparedAgentCall { handle: self.0.clone(), target: target.to_owned() }))
    }
}

struct PreparedAgentCall {
    handle: Late<RunEngine>,
    target: String,
}

impl Prepared for PreparedAgentCall {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.run_agent(call, args))
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let input = input_of(args).ok()?;
        let text = input.iter().map(ModelMessage::text).collect::<Vec<_>>().join("\n");
        Some(format!("run agent `{}`: {text}", self.target))
    }

    fn dependencies<'a>(
        &'a self,
        scope: &'a DependencyScope<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        Box::pin(async move {
            let engine = self.handle.get()?;
            let agent = runnable_agent(engine.context(), scope.tenant, &self.target, scope.mode).await?;
            let definition = agent.runnable(scope.mode).map(|(_, definition)| definition);
            let digest =
                hash::of_value(&definition).map_err(|error| CallError::internal(error.to_string()))?;
            Ok(Some(format!("{} {digest}", agent.id)))
        })
    }

    fn grace(&self) -> Duration {
        GRACE
    }
}

impl PreparedAgentCall {
    async fn run_agent(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        let engine = self.handle.get()?;
        let agent = runnable_agent(engine.context(), call.tenant(), &self.target, call.mode).await?;
        let parent = ParentContext::of(&engine, call).await?;
        let start = StartRun {
            mode: call.mode,
            surface: "agent_call",
            chat: parent.chat,
            parent: Some(parent.parent),
            ..StartRun::new(Arc::clone(&agent), Arc::clone(call.principal()), input_of(args)?)
        };
        let run = engine.start(start).await?;
        let tenant = call.tenant().clone();
        let child = ChildRun { engine, tenant, run: run.id, is_running: true };
        child.result(call, &agent).await
    }
}

/// What is above a run that a call starts.
struct ParentContext {
    parent: ParentRun,
    chat: Option<(ChatId, MessageId)>,
}

impl ParentContext {
    async fn of(engine: &RunEngine, call: &CallContext) -> Result<Self, CallError> {
        let (lineage, session) = (Lineage::below(call), call.session.clone());
        let Some(agent) = &call.principal().agent else {
            let (budget, ancestors) = (AgentBudget::default(), Vec::new());
            let parent = ParentRun { lineage, session, run: None, ancestors, budget };
            return Ok(Self { parent, chat: None });
        };
        let run = engine.context().store().runs().get(call.tenant(), agent.run).await.map_err(not_stored)?;
        let live = engine.get(call.tenant(), agent.run).map(|running| running.budget().left());
        let budget = live.or_else(|| run.as_ref().map(left)).unwrap_or_default();
        let chat = run.as_ref().and_then(|run| run.chat_id.zip(run.message_id));
        let ancestors = path_to(agent);
        let parent = ParentRun { lineage, session, run: Some(agent.run), ancestors, budget };
        Ok(Self { parent, chat })
    }
}

/// Returns the agents above a call that an agent makes.
fn path_to(agent: &ActingAgent) -> Vec<AgentSlug> {
    agent.ancestors.iter().cloned().chain([agent.slug.clone()]).collect()
}

/// Returns what a run may still use, as it is stored.
fn left(run: &Run) -> AgentBudget {
    let left = run.budget.after(&run.usage);
    // A limit of no time at all would be rejected.
    AgentBudget { time_ms: left.time_ms.map(|time| time.max(1)), ..left }
}

/// A run that a call waits for. It is cancelled if the call is.
struct ChildRun {
    engine: Arc<RunEngine>,
    tenant: TenantId,
    run: RunId,
    is_running: bool,
}

impl ChildRun {
    async fn result(mut self, call: &CallContext, agent: &Agent) -> Outcome {
        let (engine, tenant, id) = (Arc::clone(&self.engine), self.tenant.clone(), self.run);
        let ended = tokio::select! {
            biased;
            ended = engine.wait(&tenant, id) => Some(ended?),
            () = tokio::time::sleep_until(call.deadline.into()) => None,
        };
        self.is_running = false;
        let Some(run) = ended else { return self.timed_out(call, agent).await };
        let app = engine.context();
        engine.end_below(&run);
        let mut result = result_of(app, agent, &run, run.status.as_str()).await?;
        if run.status == RunStatus::AwaitingApproval {
            let steps = app.store().runs().steps(&tenant, id, 0, STEPS).await.map_err(not_stored)?;
            result.insert("approvals".to_owned(), json!(waiting_calls(&steps)));
        }
        Ok(Value::Object(result))
    }

    async fn timed_out(&self, call: &CallContext, agent: &Agent) -> Outcome {
        let (engine, app, tenant) = (&self.engine, self.engine.context(), &self.tenant);
        engine.cancel(tenant, self.run).await.map_err(call_error)?;
        let ended = tokio::time::timeout(CANCEL_TIMEOUT, engine.wait(tenant, self.run)).await;
        let run = match ended {
            Ok(run) => run?,
            Err(_) => app
                .store()
                .runs()
                .get(tenant, self.run)
                .await
                .map_err(not_stored)?
                .ok_or_else(|| CallError::internal("the run is gone"))?,
        };
        engine.end_below(&run);
        let mut result = result_of(app, agent, &run, "timeout").await?;
        let allowed = call.deadline.saturating_duration_since(call.started);
        let message = format!(
            "agent `{}` did not finish within {}",
            agent.definition.slug,
            haft_core::duration::format(allowed)
        );
        result.insert("error".to_owned(), json!({"code": ErrorCode::Timeout, "message": message}));
        Ok(Value::Object(result))
    }
}

impl Drop for ChildRun {
    fn drop(&mut self) {
        if !self.is_running {
            return;
        }
        let (engine, tenant, run) = (Arc::clone(&self.engine), self.tenant.clone(), self.run);
        // The call was cancelled. Outside of a runtime there is nothing to cancel.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = engine.cancel(&tenant, run).await {
                    tracing::warn!(%run, error = error.message, "cannot cancel a run whose call was cancelled");
                }
            });
        }
    }
}

/// Reads the conversation: `input` or `text`, `messages`, and `context` before them.
fn input_of(args: &Map<String, Value>) -> Result<Vec<ModelMessage>, CallError> {
    let given = |name: &str| args.get(name).filter(|value| !value.is_null());
    let mut messages = Vec::new();
    if let Some(context) = given("context") {
        messages.push(ModelMessage::user(format!("Context:\n{}", text_of(context))));
    }
    if let Some(list) = given("messages") {
        messages.extend(messages_of(list)?);
    }
    match given("input").or_else(|| given("text")) {
        Some(list @ Value::Array(_)) => messages.extend(messages_of(list)?),
        Some(value) => messages.push(ModelMessage::user(text_of(value))),
        None => {}
    }
    if messages.iter().all(|message| message.text().trim().is_empty()) {
        let message =
            "missing `input`: what the agent is asked (also accepted: `text`, `messages`, `context`)";
        return Err(CallError::new(ErrorCode::InvalidArguments, message));
    }
    Ok(messages)
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads messages: texts, or objects with `role` and `content`.
pub fn messages_of(list: &Value) -> Result<Vec<ModelMessage>, CallError> {
    let invalid = |message: String| CallError::new(ErrorCode::InvalidArguments, message);
    let Some(list) = list.as_array() else {
        return Ok(vec![ModelMessage::user(text_of(list))]);
    };
    let messages = list.iter().enumerate().map(|(index, message)| {
        let Some(fields) = message.as_object() else { return Ok(ModelMessage::user(text_of(message))) };
        let role = match fields.get("role").and_then(Value::as_str) {
            None | Some("user" | "human") => MessageRole::User,
            Some("assistant" | "ai" | "model") => MessageRole::Assistant,
            Some("system" | "developer" | "tool") => MessageRole::System,
            Some(other) => {
                let other = haft_core::problem::excerpt(other, 40);
                return Err(invalid(format!(
                    "messages[{index}].role: `{other}`; expected `user`, `assistant` or `system`"
                )));
            }
        };
        let content = fields.get("content").or_else(|| fields.get("text"));
        let content = content.ok_or_else(|| invalid(format!("messages[{index}]: missing `content`")))?;
        Ok(ModelMessage { role, content: content_parts(content) })
    });
    messages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(args: &Value) -> Result<Vec<String>, String> {
        let args = args.as_object().unwrap();
        let read = input_of(args).map_err(|error| error.message)?;
        Ok(read.iter().map(|message| format!("{}: {}", message.role.as_str(), message.text())).collect())
    }

    #[test]
    fn arguments_have_aliases() {
        for (args, expected) in [
            (json!({"input": "hi"}), vec!["user: hi"]),
            (json!({"text": "hi"}), vec!["user: hi"]),
            (json!({"input": {"a": 1}}), vec![r#"user: {"a":1}"#]),
            (
                json!({"messages": [{"role": "assistant", "content": "a"}, "b"]}),
                vec!["assistant: a", "user: b"],
            ),
            (json!({"context": {"k": 1}, "input": "x"}), vec!["user: Context:\n{\"k\":1}", "user: x"]),
        ] {
            assert_eq!(texts(&args).unwrap(), expected);
        }
        assert!(texts(&json!({})).unwrap_err().starts_with("missing `input`"));
        assert!(texts(&json!({"input": " "})).unwrap_err().starts_with("missing `input`"));
        assert!(texts(&json!({"messages": [{"role": "x", "content": "a"}]})).unwrap_err().contains("`x`"));
    }
}
