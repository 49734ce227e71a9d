//! A request to run an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_agent::model::ModelMessage;
use haft_core::agent::{Agent, AgentBudget, AgentDefinition};
use haft_core::callable::CallableResource;
use haft_core::id::{ChatId, MessageId, RunId, WebhookId};
use haft_core::invocation::Lineage;
use haft_core::name::AgentSlug;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::Principal;
use haft_core::run::{MAX_RUN_DEPTH, Run, RunStatus, RunUsage};
use haft_core::runnable::Mode;
use haft_runtime::pipeline::{CallOptions, Request};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::agents::require_runnable;
use crate::context::Context;

/// The largest conversation that a run starts with, in bytes of JSON: about a million tokens.
const MAX_INPUT: usize = 4 * 1024 * 1024;

/// A request to run an agent.
pub struct StartRun {
    /// The id of the run; `None`: a new one.
    pub id: Option<RunId>,
    /// The agent.
    pub agent: Arc<Agent>,
    /// The mode: production runs the published revision, debug the newest.
    pub mode: Mode,
    /// Who asks for it.
    pub principal: Arc<Principal>,
    /// The interface that it came through: `rest`, `chat`, `ws`, `openai`, `cli`, `agent_call`.
    pub surface: &'static str,
    /// The conversation.
    pub input: Vec<ModelMessage>,
    /// The values of variables in the instructions.
    pub variables: BTreeMap<String, Value>,
    /// The chat, and the message of it that the answer is written to.
    pub chat: Option<(ChatId, MessageId)>,
    /// The call that starts it, if a tool does.
    pub parent: Option<ParentRun>,
    /// The webhook that its end is delivered to.
    pub webhook: Option<WebhookId>,
    /// What the request sets instead of the agent.
    pub overrides: RunOverrides,
}

/// The call that starts a run, and what is above it.
#[derive(Debug, Clone)]
pub struct ParentRun {
    /// What is above the run: the call, and the surfaces that it came through.
    pub lineage: Lineage,
    /// The session of the call.
    pub session: Option<Arc<str>>,
    /// The run that made the call, if an agent did.
    pub run: Option<RunId>,
    /// The agents above, outermost first.
    pub ancestors: Vec<AgentSlug>,
    /// What the run above may still use.
    pub budget: AgentBudget,
}

/// What a request sets instead of the agent.
#[derive(Debug, Clone, Default)]
pub struct RunOverrides {
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The maximum number of tokens of one answer.
    pub max_tokens: Option<u32>,
    /// The JSON Schema of the final answer.
    pub output_schema: Option<Value>,
    /// More instructions, after those of the agent.
    pub instructions: Option<String>,
}

/// A run that is ready to be stored.
pub(super) struct PreparedRun {
    pub(super) run: Run,
    /// The number of messages in its input.
    messages: usize,
    /// The size of its input as JSON.
    input_bytes: usize,
}

impl StartRun {
    /// Creates a request with neither chat nor parent.
    pub fn new(agent: Arc<Agent>, principal: Arc<Principal>, input: Vec<ModelMessage>) -> Self {
        Self {
            id: None,
            agent,
            mode: Mode::Production,
            principal,
            surface: "rest",
            input,
            variables: BTreeMap::new(),
            chat: None,
            parent: None,
            webhook: None,
            overrides: RunOverrides::default(),
        }
    }

    /// Returns the start as a call of the agent: the arguments are known when the run is.
    pub(super) fn as_call(&self) -> (CallableResource, Request) {
        let revision = self.agent.runnable(self.mode).map_or(0, |(revision, _)| revision);
        let parent = self.parent.as_ref();
        let options = CallOptions {
            request_id: crate::request_id::current(),
            chat_id: self.chat.map(|(chat, _)| chat.to_string()),
            message_id: self.chat.map(|(_, message)| message.to_string()),
            session: parent.and_then(|parent| parent.session.clone()),
            ..CallOptions::default()
        };
        let request = Request {
            mode: self.mode,
            lineage: parent.map(|parent| parent.lineage.clone()).unwrap_or_default(),
            options: Some(Box::new(options)),
            ..Request::new(Arc::clone(&self.principal), self.surface, Map::new())
        };
        (self.agent.callable(revision), request)
    }

    /// Checks that the run can start, and returns it as it is stored.
    pub(super) fn into_run(self, app: &Context) -> Result<PreparedRun, CallError> {
        require_runnable(&self.agent, self.mode)?;
        let Some((revision, definition)) = self.agent.runnable(self.mode) else {
            return Err(CallError::internal("a runnable agent has no revision"));
        };
        let (parent_call, parent_run, ancestors, surfaces_above, above) = if let Some(parent) = self.parent {
            let ParentRun { lineage, run, ancestors, budget, session: _ } = parent;
            check_ancestors(&definition.slug, &ancestors)?;
            (lineage.parent, run, ancestors, lineage.surfaces, Some(budget))
        } else {
            (None, None, Vec::new(), Vec::new(), None)
        };
        let input = serde_json::to_value(&self.input).map_err(|e| CallError::internal(e.to_string()))?;
        if self.input.is_empty() {
            return Err(CallError::new(ErrorCode::InvalidRequest, "`input` is empty"));
        }
        let input_bytes = input.to_string().len();
        if input_bytes > MAX_INPUT {
            let message = format!(
                "`input` has {input_bytes} bytes, more than the limit of {MAX_INPUT} bytes (4 MiB); \
                 send fewer or shorter messages"
            );
            return Err(CallError::new(ErrorCode::TooLarge, message));
        }
        let definition = self.overrides.applied(definition);
        let run = Run {
            id: self.id.unwrap_or_else(|| RunId(Uuid::now_v7())),
            agent_id: self.agent.id,
            agent_revision: revision,
            budget: above.map_or(definition.budget, |above| definition.budget.smaller(above)),
            definition,
            principal: self.principal,
            surface: self.surface.to_owned(),
            mode: self.mode,
            input,
            variables: self.variables,
            chat_id: self.chat.map(|(chat, _)| chat),
            message_id: self.chat.map(|(_, message)| message),
            parent_call,
            parent_run,
            ancestors,
            surfaces_above,
            webhook: self.webhook,
            request_id: crate::request_id::current(),
            status: RunStatus::Pending,
            output: None,
            error: None,
            usage: RunUsage::default(),
            created_at: app.now(),
            started_at: None,
            finished_at: None,
        };
        Ok(PreparedRun { run, messages: self.input.len(), input_bytes })
    }
}

impl PreparedRun {
    /// Returns the arguments in the record of its start. The conversation is stored with the run.
    pub(super) fn args(&self) -> Map<String, Value> {
        let Value::Object(args) = json!({
            "messages": self.messages,
            "input_bytes": self.input_bytes,
            "input_digest": haft_core::hash::of_args(&self.run.input),
        }) else {
            return Map::new();
        };
        args
    }
}

impl RunOverrides {
    fn applied(self, definition: &Arc<AgentDefinition>) -> Arc<AgentDefinition> {
        let Self { temperature, max_tokens, output_schema, instructions } = self;
        if temperature.is_none() && max_tokens.is_none() && output_schema.is_none() && instructions.is_none()
        {
            return Arc::clone(definition);
        }
        let mut own = AgentDefinition::clone(definition);
        own.model.temperature = temperature.or(own.model.temperature);
        own.model.max_tokens = max_tokens.or(own.model.max_tokens);
        own.output_schema = output_schema.or(own.output_schema);
        if let Some(more) = instructions {
            own.instructions = if own.instructions.is_empty() {
                // The instructions of an agent are a template; those of a request are not.
                literal(&more)
            } else {
                format!("{}\n\n{}", own.instructions, literal(&more))
            };
        }
        Arc::new(own)
    }
}

/// Returns a text that a template leaves as it is.
fn literal(text: &str) -> String {
    text.replace("{{", "{ {").replace("{%", "{ %").replace("{#", "{ #")
}

/// Rejects a run inside of another run of the same agent, and one that is too deep.
fn check_ancestors(slug: &AgentSlug, ancestors: &[AgentSlug]) -> Result<(), CallError> {
    if ancestors.contains(slug) {
        let mut path: Vec<_> = ancestors.iter().map(AgentSlug::as_str).collect();
        path.push(slug.as_str());
        let message = format!("agents call each other in a circle: {}", path.join(" → "));
        return Err(CallError::new(ErrorCode::TooDeep, message));
    }
    if ancestors.len() >= usize::try_from(MAX_RUN_DEPTH).unwrap_or(usize::MAX) {
        let message = format!("agent depth limit ({MAX_RUN_DEPTH}) exceeded: agent `{slug}` was not run");
        return Err(CallError::new(ErrorCode::TooDeep, message));
    }
    Ok(())
}
