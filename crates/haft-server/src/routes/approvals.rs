//! `/approvals`: calls that wait for a person.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::approval::{Approval, ApprovalCause, ApprovalStatus, Remember};
use haft_core::principal::Principal;
use haft_store::ApprovalQuery;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use crate::routes::calls::MAX_LISTED_BYTES;
use haft_platform::Installation;
use haft_platform::approvals::{self, approvable, find, may_decide, preview, seen_requester};

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

/// How many approvals of a list have a preview: each may compile its tool.
const MAX_PREVIEWS: usize = 100;

impl ApprovalView {
    fn new(app: &Installation, approval: Approval, viewer: &Principal) -> Self {
        let may_decide = may_decide(app, &approval, viewer);
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
    async fn with_preview(app: &Installation, approval: Approval, viewer: &Principal) -> Self {
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("approvals")?;
    let statuses = "`waiting`, `approved`, `denied`, `expired`, `cancelled`";
    let query = ApprovalQuery {
        tenant: identity.tenant.clone(),
        status: params.choice("status", ApprovalStatus::parse, statuses)?,
        requested_by: seen_requester(&identity),
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

/// Return one approval.
#[utoipa::path(
    get, path = "/approvals/{id}", tag = "approvals", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<ApprovalView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let approval = approvable(&app, &identity, &id).await?;
    let ApproveBody { args, remember } = body.json_or_default()?;
    let decided = approvals::approve(&app, &identity, &approval, args, remember).await?;
    Ok(success(ApprovalView::new(&app, decided, &identity)).into_response())
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let approval = approvable(&app, &identity, &id).await?;
    let DenyBody { reason } = body.json_or_default()?;
    let decided = approvals::deny(&app, &identity, &approval, reason).await?;
    Ok(success(ApprovalView::new(&app, decided, &identity)).into_response())
}
