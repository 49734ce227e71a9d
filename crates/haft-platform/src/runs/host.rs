//! What a run needs from this node: its tools, its calls through the pipeline, and its watchers.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use haft_agent::model::ImageSource;
use haft_agent::run::{BoundTool, EndedCall, RunEvent, RunHost, ToolReply, ToolRequest};
use haft_core::BoxFuture;
use haft_core::agent::AgentBudget;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::id::{ApprovalId, CallId};
use haft_core::invocation::Lineage;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::{ActingAgent, Principal};
use haft_core::run::{Run, RunStep, RunUsage};
use haft_core::workspace::WorkspaceName;
use haft_runtime::pipeline::{CallOptions, CallTarget, Request};
use haft_runtime::policy::Policy;
use haft_runtime::registry::Snapshot;
use haft_store::RunQuery;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::engine::{RunEngine, RunningRun, not_stored};
use crate::agents::{RunsFor, SURFACE, bind};
use crate::approvals;
use crate::context::Context;

/// How many images of one result the model sees.
const MAX_IMAGES: usize = 8;
/// The largest image that the model sees, in characters of base64.
const MAX_IMAGE: usize = 8 * 1024 * 1024;

/// The surroundings of one run.
pub(super) struct Host {
    engine: Arc<RunEngine>,
    app: Arc<Context>,
    run: Arc<Run>,
    running: Arc<RunningRun>,
    agent: ActingAgent,
    /// The tools as of a snapshot of the registry, with the principal that they were bound for.
    bound: Mutex<Option<BoundTools>>,
}

struct BoundTools {
    snapshot: Arc<Snapshot>,
    policy: Arc<Policy>,
    principal: Arc<Principal>,
    tools: Vec<BoundTool>,
}

impl Host {
    /// Creates the surroundings of a run.
    pub(super) fn new(
        engine: &Arc<RunEngine>,
        run: &Arc<Run>,
        running: &Arc<RunningRun>,
    ) -> Result<Self, CallError> {
        let invalid = |error: haft_core::principal::AllowListError| {
            CallError::new(ErrorCode::InvalidDefinition, format!("invalid tools of the agent: {error}"))
        };
        let (tools, excluded) = run.definition.tool_lists().map_err(invalid)?;
        let agent = ActingAgent {
            slug: run.definition.slug.clone(),
            run: run.id,
            tools,
            excluded,
            ancestors: run.ancestors.clone(),
            // Who the run acts for is the agent above, if there is one.
            parent: run.principal.agent.clone(),
        };
        Ok(Self {
            engine: Arc::clone(engine),
            app: Arc::clone(engine.context()),
            run: Arc::clone(run),
            running: Arc::clone(running),
            agent,
            bound: Mutex::default(),
        })
    }

    /// Returns the principal of the calls, as it is now.
    fn principal(&self) -> Result<Arc<Principal>, CallError> {
        let current = current_principal(&self.app, &self.run)?;
        Ok(Arc::new(current.acting(self.agent.clone())))
    }

    fn bound_tools(&self) -> Result<Vec<BoundTool>, CallError> {
        let principal = self.principal()?;
        let snapshot = self.app.registry().snapshot();
        let policy = Arc::clone(&self.app.policy().handle().load());
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = &*bound
            && Arc::ptr_eq(&bound.snapshot, &snapshot)
            && Arc::ptr_eq(&bound.policy, &policy)
            && bound.principal == principal
        {
            return Ok(bound.tools.clone());
        }
        let bindings = bind(
            &self.app,
            &snapshot,
            &self.run.definition,
            RunsFor { principal: &principal, mode: self.run.mode, surfaces: &surfaces_of(&self.run) },
        );
        let bindings = bindings.map_err(|error| {
            CallError::new(ErrorCode::InvalidDefinition, format!("invalid tools of the agent: {error}"))
        })?;
        let tools: Vec<_> = bindings.into_iter().map(|binding| binding.tool).collect();
        *bound = Some(BoundTools { snapshot, policy, principal, tools: tools.clone() });
        Ok(tools)
    }

    fn request(&self, request: ToolRequest, cancel: CancellationToken) -> Result<Request, CallError> {
        let run = &self.run;
        let lineage = Lineage {
            parent: run.parent_call,
            root: run.parent_call,
            depth: u32::try_from(run.ancestors.len()).unwrap_or(u32::MAX),
            surfaces: surfaces_of(run),
        };
        let session = run.chat_id.map_or_else(|| run.id.to_string(), |chat| chat.to_string());
        let options = CallOptions {
            idempotency_key: request.idempotency_key,
            request_id: run.request_id.clone(),
            chat_id: run.chat_id.map(|chat| chat.to_string()),
            message_id: run.message_id.map(|message| message.to_string()),
            workspace: run.chat_id.map(WorkspaceName::Chat),
            session: Some(session.into()),
            webhook: None,
        };
        Ok(Request {
            mode: run.mode,
            timeout: request.timeout,
            lineage,
            cancel: Some(cancel),
            waits_for_account: true,
            options: Some(Box::new(options)),
            ..Request::new(self.principal()?, SURFACE, request.args)
        })
    }

    async fn run_call(&self, request: ToolRequest) -> Result<ToolReply, CallError> {
        self.running.budget().start_call(request.budget);
        let tool = {
            let snapshot = self.app.registry().snapshot();
            let entry = snapshot.tool(&self.run.principal.tenant, request.tool);
            entry.map(|entry| snapshot.resolved(entry))
        };
        let Some(tool) = tool else {
            return Ok(rejected(CallError::new(ErrorCode::NotFound, "the tool no longer exists")));
        };
        // Dropping this future cancels the call, although it has an idempotency key.
        let cancel = CancellationToken::new();
        let _guard = cancel.clone().drop_guard();
        let request = match self.request(request, cancel) {
            Ok(request) => request,
            Err(error) => return Ok(rejected(error)),
        };
        match self.app.pipeline().call(CallTarget::Resolved(tool), request).await {
            Ok(completed) => {
                let mut usage = self.running.budget().take_ended();
                if completed.replayed {
                    usage.add(&self.usage_below(completed.record.id()).await?);
                }
                Ok(ToolReply::Ended(Box::new(ended_call(&completed.record, usage))))
            }
            Err(error) if approvals::is_waiting_call(&error) => Ok(awaiting(error)),
            Err(error) if error.code == ErrorCode::StoreUnavailable => Err(error),
            Err(error) => Ok(rejected(error)),
        }
    }

    /// Returns what the runs that a call started have used.
    async fn usage_below(&self, call: CallId) -> Result<RunUsage, CallError> {
        let tenant = self.run.principal.tenant.clone();
        let query = RunQuery { parent_run: Some(self.run.id), ..RunQuery::new(tenant) };
        let below = self.app.store().runs().list(&query).await.map_err(not_stored)?;
        let mut usage = RunUsage::default();
        below.iter().filter(|run| run.parent_call == Some(call)).for_each(|run| usage.add(&run.usage));
        Ok(usage)
    }

    async fn ended_later(&self, call: CallId) -> Result<Option<EndedCall>, CallError> {
        let record = self.app.ledger().call(&self.run.principal.tenant, call).await.map_err(not_stored)?;
        match record {
            Some(record) if record.status.is_final() => {
                approvals::collect(&self.app, &record).await;
                let usage = self.usage_below(call).await?;
                Ok(Some(ended_call(&record, usage)))
            }
            Some(_) => Ok(None),
            None => {
                let error = CallError::new(ErrorCode::NotFound, "the record of the call was deleted");
                Ok(Some(failed(Some(call), error)))
            }
        }
    }
}

impl RunHost for Host {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<BoundTool>, CallError>> {
        Box::pin(async { self.bound_tools() })
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolReply, CallError>> {
        Box::pin(self.run_call(request))
    }

    fn ended(&self, call: CallId) -> BoxFuture<'_, Result<Option<EndedCall>, CallError>> {
        Box::pin(self.ended_later(call))
    }

    fn shared_budget(&self, used: &RunUsage) -> AgentBudget {
        self.engine.report_usage(self.run.id, &self.running, used)
    }

    fn emit(&self, event: RunEvent) {
        // The first and the last event are those of the engine: the last one follows when everything is stored.
        if !matches!(event, RunEvent::Start { .. } | RunEvent::End { .. }) {
            self.running.feed.push(event);
        }
    }

    fn emit_step(&self, step: &RunStep) {
        self.running.feed.push_step(step);
    }
}

/// Returns the principal of a run as it is now; an error if it may not run agents any more.
pub(super) fn current_principal(app: &Context, run: &Run) -> Result<Arc<Principal>, CallError> {
    app.access().current(&run.principal, app.now()).ok_or_else(|| {
        let message =
            format!("the token `{}` that started the run was revoked or has expired", run.principal.name);
        CallError::new(ErrorCode::Unauthorized, message).for_model("the run is no longer authorised")
    })
}

/// Returns the surfaces that a run came through, that of the root first.
fn surfaces_of(run: &Run) -> Vec<Cow<'static, str>> {
    let mut surfaces = run.surfaces_above.clone();
    if !surfaces.iter().any(|surface| *surface == run.surface) {
        surfaces.push(Cow::Owned(run.surface.clone()));
    }
    surfaces
}

fn rejected(error: CallError) -> ToolReply {
    ToolReply::Ended(Box::new(failed(error.call_id, error)))
}

fn failed(call_id: Option<CallId>, error: CallError) -> EndedCall {
    EndedCall {
        call_id,
        status: CallStatus::Error,
        value: None,
        images: Vec::new(),
        error: Some(error),
        usage: RunUsage::default(),
    }
}

/// Returns a call that waits for approval; calls without a possible approver have been rejected.
fn awaiting(error: CallError) -> ToolReply {
    let details = error.details.as_deref();
    let approval =
        details.and_then(|details| details.get("approval_id")?.as_str()?.parse::<ApprovalId>().ok());
    let expires_at = details.and_then(|details| details.get("expires_at")?.as_str()?.parse().ok());
    match (error.call_id, approval) {
        (Some(call_id), Some(approval_id)) => {
            ToolReply::AwaitingApproval { call_id, approval_id, expires_at }
        }
        _ => rejected(error),
    }
}

fn ended_call(record: &CallRecord, usage: RunUsage) -> EndedCall {
    EndedCall {
        call_id: Some(record.id()),
        status: record.status,
        value: record.value.clone(),
        images: record.content.iter().filter_map(image).take(MAX_IMAGES).collect(),
        error: record.error.clone(),
        usage,
    }
}

/// Reads an image from MCP content.
fn image(block: &Value) -> Option<ImageSource> {
    if block.get("type")? != "image" {
        return None;
    }
    let data = block.get("data")?.as_str().filter(|data| data.len() <= MAX_IMAGE)?;
    let media_type = block.get("mimeType")?.as_str()?;
    Some(ImageSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() })
}
