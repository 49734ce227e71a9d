//! `/approvals`: calls that wait for a person.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::approval::{Approval, ApprovalCause, ApprovalStatus, CannotDecide, Remember};
use haft_core::call::CallRecord;
use haft_core::hash;
use haft_core::id::{ApprovalId, CallId};
use haft_core::outcome::ErrorCode;
use haft_core::policy::Approvers;
use haft_core::principal::Principal;
use haft_core::secret::scrub_text;
use haft_core::token::Role;
use haft_runtime::pipeline::check_args;
use haft_runtime::policy::Policy;
use haft_runtime::registry::{CompiledTool, Entry};
use haft_store::{ApprovalDecision, ApprovalQuery};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::audit;
use crate::body::{self, Body};
use crate::error::{ApiError, ErrorBody};
use crate::events::sees_approvals_of_others;
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use crate::routes::calls::MAX_LISTED_BYTES;

/// The longest reason of a denial, in characters.
const MAX_REASON: usize = 1000;

/// A call that needs approval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Approval)]
pub(crate) struct ApprovalView {
    id: Uuid,
    call_id: Uuid,
    tool_id: Uuid,
    /// `bundle:name@version`.
    #[schema(example = "user-created:deploy@1.0.0")]
    tool: String,
    /// The revision that runs if the call is approved.
    revision: u32,
    /// The arguments, as requested or as the approver changed them.
    #[schema(value_type = Object, example = json!({"environment": "staging"}))]
    args: Value,
    /// The hash of the arguments as requested.
    args_digest: String,
    /// The name of the token that asked.
    #[schema(example = "agent")]
    requested_by: String,
    /// The surface of the call: `rest`, `mcp`, …
    #[schema(example = "rest")]
    surface: String,
    /// Why the call needs approval.
    cause: ApprovalCause,
    status: ApprovalStatus,
    created_at: Timestamp,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether the approver changed the arguments.
    args_edited: bool,
    /// The arguments as requested, if the approver changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    requested_args: Option<Value>,
    /// What the approver wanted to be remembered for later calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    remembered: Option<Remember>,
    /// Whether you may decide.
    may_decide: bool,
    /// What will run if the call is approved: the command, the request or the action on a file, with secrets masked.
    /// At most 8 KiB; missing if it cannot be shown or if the approval is decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "POST https://deploy.example.com/staging")]
    preview: Option<String>,
    /// Whether long arguments are left out of this list; request the approval by its id to get them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shortened: bool,
}

/// The largest preview in bytes.
const MAX_PREVIEW_BYTES: usize = 8 * 1024;
/// How many approvals of a list have a preview: each may compile its tool.
const MAX_PREVIEWS: usize = 100;

/// Returns what will run if a call is approved, if its tool is still the one that was requested.
async fn preview(app: &App, approval: &Approval) -> Option<String> {
    if approval.status != ApprovalStatus::Waiting {
        return None;
    }
    let CurrentCall { plan, .. } = current_call(app, approval).await?;
    let mut text = plan.prepared.preview(approval.args.as_object()?)?;
    scrub_text(&mut text, &plan.literals);
    if text.len() > MAX_PREVIEW_BYTES {
        text.truncate(text.floor_char_boundary(MAX_PREVIEW_BYTES - '…'.len_utf8()));
        text.push('…');
    }
    Some(text)
}

/// Checks whether a principal may decide: the rule that asks for the approval may name its approvers.
pub(crate) fn check_approver(
    app: &App,
    approval: &Approval,
    approver: &Principal,
) -> Result<(), CannotDecide> {
    let policy = app.policy().handle().load();
    let approvers = approvers(&policy, approval);
    approval.check_approver(approver, approvers, app.settings().approvals.four_eyes)
}

/// Returns the approvers that the rule names, if a rule asks for the approval.
fn approvers<'p>(policy: &'p Policy, approval: &Approval) -> Option<&'p Approvers> {
    match &approval.cause {
        ApprovalCause::Rule(rule) => policy.approvers(&approval.requested_by.tenant, rule),
        ApprovalCause::RequiresConfirmation | ApprovalCause::ElevatedPolicy => None,
    }
}

impl ApprovalView {
    fn new(app: &App, approval: Approval, viewer: &Principal) -> Self {
        let may_decide =
            approval.status == ApprovalStatus::Waiting && check_approver(app, &approval, viewer).is_ok();
        Self {
            id: approval.id.0,
            call_id: approval.call_id.0,
            tool_id: approval.tool_id.0,
            tool: approval.tool.to_string(),
            revision: approval.revision,
            args: approval.args,
            args_digest: approval.args_digest,
            requested_by: approval.requested_by.name.to_string(),
            surface: approval.surface,
            cause: approval.cause,
            status: approval.status,
            created_at: approval.created_at,
            expires_at: approval.expires_at,
            decided_at: approval.decided_at,
            decided_by: approval.decided_by,
            reason: approval.reason,
            args_edited: approval.args_edited,
            requested_args: approval.requested_args,
            remembered: approval.remembered,
            may_decide,
            preview: None,
            shortened: false,
        }
    }

    /// Leaves out long arguments.
    fn shorten(mut self) -> Self {
        let is_long = |value: &Value| value.to_string().len() > MAX_LISTED_BYTES;
        if is_long(&self.args) {
            (self.args, self.shortened) = (Value::Null, true);
        }
        if self.requested_args.as_ref().is_some_and(is_long) {
            (self.requested_args, self.shortened) = (None, true);
        }
        self
    }

    /// Creates the view with a preview of the call.
    async fn with_preview(app: &App, approval: Approval, viewer: &Principal) -> Self {
        let preview = preview(app, &approval).await;
        Self { preview, ..Self::new(app, approval, viewer) }
    }
}

/// A page of approvals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApprovalList {
    approvals: Vec<ApprovalView>,
    total: u64,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List approvals, newest first. Callers see those they asked for; admins and elevated tokens those of the tenant.
#[utoipa::path(
    get, path = "/approvals", tag = "approvals",
    params(("status" = Option<ApprovalStatus>, Query, description = "Only approvals in this state"), PageParams),
    responses((status = 200, body = Success<ApprovalList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("approvals")?;
    let statuses = "`waiting`, `approved`, `denied`, `expired`, `cancelled`";
    let query = ApprovalQuery {
        tenant: identity.tenant.clone(),
        status: params.choice("status", ApprovalStatus::parse, statuses)?,
        requested_by: (!sees_approvals_of_others(&identity)).then(|| identity.id().to_string()),
        before: page.after()?,
        limit: page.size,
    };
    let (approvals, total) = app.store().approvals(query).await?;
    let next_page_token = page.token_after(&approvals, page.size, |approval| approval.id.to_string());
    let mut views = Vec::with_capacity(approvals.len());
    for (index, approval) in approvals.into_iter().enumerate() {
        let view = if index < MAX_PREVIEWS {
            ApprovalView::with_preview(&app, approval, &identity).await
        } else {
            ApprovalView::new(&app, approval, &identity)
        };
        views.push(view.shorten());
    }
    Ok(success(ApprovalList { approvals: views, total, next_page_token }).into_response())
}

async fn find(app: &App, identity: &Identity, id: &str) -> Result<Approval, ApiError> {
    let missing = || ApiError::not_found("approval", id);
    let parsed: ApprovalId = id.parse().map_err(|_| missing())?;
    let approval = app.store().approval(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    if !sees_approvals_of_others(identity) && approval.requested_by.id() != identity.id() {
        return Err(missing());
    }
    Ok(approval)
}

/// Return one approval.
#[utoipa::path(
    get, path = "/approvals/{id}", tag = "approvals", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<ApprovalView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let approval = find(&app, &identity, &id).await?;
    Ok(success(ApprovalView::with_preview(&app, approval, &identity).await).into_response())
}

/// The body of an approval.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct ApproveBody {
    /// Arguments to run with instead of those requested.
    #[schema(value_type = Option<Object>)]
    args: Option<serde_json::Map<String, Value>>,
    /// What to remember for later calls.
    #[serde(deserialize_with = "body::optional_object")]
    remember: Option<Remember>,
}

/// Approve a call; it runs once, on the revision that was shown.
#[utoipa::path(
    post, path = "/approvals/{id}/approve", tag = "approvals", params(("id" = Uuid, Path)),
    request_body = Option<ApproveBody>,
    responses((status = 200, body = Success<ApprovalView>), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let approval = approvable(&app, &identity, &id).await?;
    let decision = body.json_or_default()?;
    Ok(success(approve_call(&app, &identity, &approval, decision).await?).into_response())
}

/// Approves a call, on whatever surface.
async fn approve_call(
    app: &App,
    identity: &Identity,
    approval: &Approval,
    ApproveBody { args, remember }: ApproveBody,
) -> Result<ApprovalView, ApiError> {
    let Some(CurrentCall { plan: current, .. }) = current_call(app, approval).await else {
        return Err(outdated(app, identity, approval).await);
    };
    let args = match args {
        Some(args) => {
            let mut args = Value::Object(args);
            check_args(&current, &mut args).map_err(|error| ApiError { of_call: false, ..error.into() })?;
            Some(args)
        }
        None => None,
    };
    let cause = covered_cause(app, identity, approval, args.as_ref(), remember).await?;
    let decision = ApprovalDecision::Approve { args, remember, cause };
    decide(app, identity, approval, decision, "approval.approve").await
}

/// What a person decided about a call.
pub(crate) enum PersonDecision {
    /// It runs, with other arguments if there are some.
    Approve(Option<serde_json::Map<String, Value>>),
    /// It never runs.
    Deny(Option<String>),
}

/// Decides about a call for another surface; returns the call.
pub(crate) async fn decide_call(
    app: &App,
    identity: &Identity,
    id: &str,
    decision: PersonDecision,
) -> Result<CallId, ApiError> {
    let approval = approvable(app, identity, id).await?;
    match decision {
        PersonDecision::Approve(args) => {
            approve_call(app, identity, &approval, ApproveBody { args, remember: None }).await?;
        }
        PersonDecision::Deny(reason) => {
            deny_call(app, identity, &approval, DenyBody { reason }).await?;
        }
    }
    Ok(approval.call_id)
}

/// Returns why the call needs approval as it would run now, and checks that the approver may decide that, too: the rules
/// may have changed since the call was requested, and the approver may have changed its arguments.
async fn covered_cause(
    app: &App,
    identity: &Identity,
    approval: &Approval,
    args: Option<&Value>,
    remember: Option<Remember>,
) -> Result<Option<ApprovalCause>, ApiError> {
    let Some(call) = current_call(app, approval).await else {
        return Err(outdated(app, identity, approval).await);
    };
    let args = args.unwrap_or(&approval.args);
    let cause = app.pipeline().current_cause(&call.record, &call.entry.tool, &call.plan, args);
    let cause = cause.map_err(|error| ApiError { of_call: false, ..error.into() })?;
    let forbidden = |error: CannotDecide| ApiError::new(ErrorCode::Forbidden, error.to_string());
    let covered = Approval { cause: cause.clone().unwrap_or(approval.cause.clone()), ..approval.clone() };
    check_approver(app, &covered, identity).map_err(forbidden)?;
    if let Some(remember) = remember {
        let policy = app.policy().handle().load();
        covered.check_remember(identity, approvers(&policy, &covered), remember).map_err(forbidden)?;
    }
    Ok(cause)
}

/// The body of a denial.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct DenyBody {
    /// Why, for the requester: at most 1,000 characters.
    #[schema(max_length = 1000, example = "not before the release")]
    reason: Option<String>,
}

/// Deny a call; it never runs.
#[utoipa::path(
    post, path = "/approvals/{id}/deny", tag = "approvals", params(("id" = Uuid, Path)),
    request_body = Option<DenyBody>,
    responses((status = 200, body = Success<ApprovalView>), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn deny(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let approval = approvable(&app, &identity, &id).await?;
    let decision = body.json_or_default()?;
    Ok(success(deny_call(&app, &identity, &approval, decision).await?).into_response())
}

/// Denies a call, on whatever surface.
async fn deny_call(
    app: &App,
    identity: &Identity,
    approval: &Approval,
    DenyBody { reason }: DenyBody,
) -> Result<ApprovalView, ApiError> {
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        return Err(ApiError::bad_request(format!("`reason` exceeds the limit of {MAX_REASON} characters")));
    }
    let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    decide(app, identity, approval, ApprovalDecision::Deny { reason }, "approval.deny").await
}

/// Finds an approval that the caller may decide.
async fn approvable(app: &App, identity: &Identity, id: &str) -> Result<Approval, ApiError> {
    identity.require(Role::Caller)?;
    let approval = find(app, identity, id).await?;
    check_approver(app, &approval, identity)
        .map_err(|error| ApiError::new(ErrorCode::Forbidden, error.to_string()))?;
    Ok(approval)
}

async fn decide(
    app: &App,
    identity: &Identity,
    approval: &Approval,
    decision: ApprovalDecision,
    action: &str,
) -> Result<ApprovalView, ApiError> {
    audit::note(identity, action, &approval.id.to_string());
    let decided = app.store().decide(approval.id, identity, decision).await?;
    Ok(ApprovalView::new(app, decided, identity))
}

/// Approves a call with its own arguments, if its tool is still the one that was shown.
pub(crate) async fn approve_as(
    app: &App,
    identity: &Identity,
    approval: &Approval,
    remember: Option<Remember>,
) -> Result<(), ApiError> {
    let cause = covered_cause(app, identity, approval, None, remember).await?;
    let decision = ApprovalDecision::Approve { args: None, remember, cause };
    app.store().decide(approval.id, identity, decision).await?;
    Ok(())
}

/// Notes that the requester has the outcome of a call that was decided: the same call later is a new one.
pub(crate) async fn collect(app: &App, record: &CallRecord) {
    let approval = record.decision.as_ref().and_then(|decision| decision.approval_id);
    let Some(approval) = approval else { return };
    if let Err(error) = app.store().collect_approval(ApprovalId(approval)).await {
        tracing::warn!(error = &error as &dyn std::error::Error, "a decision stays to be picked up");
    }
}

/// A call that waits, and what would run.
struct CurrentCall {
    record: CallRecord,
    entry: Arc<Entry>,
    plan: Arc<CompiledTool>,
}

/// Returns the call and the definition that would run, if it is still the one that was shown.
async fn current_call(app: &App, approval: &Approval) -> Option<CurrentCall> {
    let record = app.ledger().call(&approval.requested_by.tenant, approval.call_id).await.ok().flatten()?;
    let snapshot = app.registry().snapshot();
    let entry = snapshot.tool(&approval.requested_by.tenant, approval.tool_id)?;
    let tool = snapshot.resolved(entry);
    drop(snapshot);
    app.pipeline().compile(&tool, record.invocation.mode).await;
    let plan = tool.entry.plan(record.invocation.mode.into(), app.registry().executors()).ok()?;
    let is_same = hash::of_value(&*plan.spec).ok()? == approval.definition_hash;
    is_same.then(|| CurrentCall { record, entry: Arc::clone(&tool.entry), plan })
}

/// Ends an approval whose tool has changed, and returns the error.
async fn outdated(app: &App, identity: &Identity, approval: &Approval) -> ApiError {
    audit::note(identity, "approval.approve", &approval.id.to_string());
    match app.store().decide(approval.id, identity, ApprovalDecision::Outdate).await {
        Ok(_) => ApiError::new(
            ErrorCode::Conflict,
            "the tool was changed or deleted after the call was requested; the requester has to call again",
        ),
        Err(error) => error.into(),
    }
}
