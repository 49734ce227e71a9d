//! `POST /policy/explain`: what would happen to a call, and why.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_api::policy::{ConsideredView, ExplainBody, ExplainCaller, ExplanationView};
use haft_core::token::Role;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::policy_explanation::{self, CallExplanation, Considered, ExplainedCaller};

fn explained(caller: ExplainCaller) -> ExplainedCaller {
    let ExplainCaller { token, person, role, elevated, tenant, agent, surface, agents_above, surfaces_above } =
        caller;
    ExplainedCaller { token, person, role, elevated, tenant, agent, surface, agents_above, surfaces_above }
}

fn view(explanation: CallExplanation) -> ExplanationView {
    let CallExplanation { effect, rule, reason, considered } = explanation;
    let view = |Considered { rule, effect, matched, why }| ConsideredView { rule, effect, matched, why };
    ExplanationView { effect, rule, reason, considered: considered.into_iter().map(view).collect() }
}

/// Explain what would happen to a call: which rule decides, and why the others do not match. Nothing is called.
#[utoipa::path(
    post, path = "/policy/explain", tag = "policy", request_body = ExplainBody,
    responses((status = 200, body = Success<ExplanationView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn explain(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let ExplainBody { tool, args, caller } = body.json()?;
    let explanation =
        policy_explanation::explain(&app, &identity, &tool, args, caller.map(explained)).await?;
    Ok(success(view(explanation)).into_response())
}
