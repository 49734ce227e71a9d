//! `/policy`: the policy rules of the tenant and of the platform.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_core::outcome::ErrorCode;
use haft_core::policy::{PolicyRules, PolicyScope};
use haft_core::token::Role;
use haft_definition::policy as definition;
use serde_json::Value;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;
use haft_platform::policy::{self, LoadPolicyError};

/// Whose rules.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum ScopeName {
    /// The rules of the tenant.
    Tenant,
    /// The rules of the platform, for its admins.
    Platform,
}

/// Show the policy rules.
#[utoipa::path(
    get, path = "/policy", tag = "policy",
    params(("scope" = inline(Option<ScopeName>), Query, description = "Default: `tenant`")),
    responses((status = 200, body = Success<PolicyRules>))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let scope = scope(&identity, &params)?;
    Ok(success(app.store().policies().all().await?.of(&scope)).into_response())
}

/// Replace the policy rules. Rules that do not compile or fail their examples are rejected as a whole.
#[utoipa::path(
    put, path = "/policy", tag = "policy",
    params(
        ("scope" = inline(Option<ScopeName>), Query, description = "Default: `tenant`"),
        ("dry_run" = Option<bool>, Query, description = "Check the rules and their examples, and store nothing"),
    ),
    request_body(description = "The rules as JSON or YAML",
        content((PolicyRules = "application/json"), (String = "application/yaml", example = yaml_example))),
    responses((status = 200, body = Success<PolicyRules>), (status = 400, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    body: Body,
) -> Result<Response, ApiError> {
    let dry_run = params.flag("dry_run")?;
    identity.require(if dry_run { Role::Editor } else { Role::Admin })?;
    let scope = scope(&identity, &params)?;
    let text = body.text()?;
    let rules = definition::read(text).map_err(|problems| ServiceError::invalid_policy(&problems))?;
    policy::check(&scope, &rules).await.map_err(|error| located(error, text))?;
    if dry_run {
        audit::note(&identity, "policy.check", scope.as_str());
        return Ok(success(rules).into_response());
    }
    app.store().policies().set(&scope, &rules).await?;
    app.policy().reload(app.store()).await?;
    audit::note(&identity, "policy.put", scope.as_str());
    Ok(success(rules).into_response())
}

fn yaml_example() -> Value {
    "rules:\n  - name: large-payments\n    match:\n      tools: [bank:pay]\n    when: has(args.amount) && args.amount > \
     100\n    effect: approve\n"
        .into()
}

/// Adds the lines of the text to the problems.
fn located(mut error: LoadPolicyError, text: &str) -> ApiError {
    if let LoadPolicyError::Invalid(error) = &mut error {
        definition::locate(text, &mut error.problems);
    }
    error.into()
}

fn scope(identity: &Identity, params: &Params) -> Result<PolicyScope, ApiError> {
    let parse = |text: &str| match text {
        "tenant" => Some(ScopeName::Tenant),
        "platform" => Some(ScopeName::Platform),
        _ => None,
    };
    match params.choice("scope", parse, "`tenant`, `platform`")? {
        None | Some(ScopeName::Tenant) => Ok(PolicyScope::Tenant(identity.tenant.clone())),
        Some(ScopeName::Platform) if identity.is_platform_admin() => Ok(PolicyScope::Platform),
        Some(ScopeName::Platform) => {
            let message = "only an admin of the platform may see and change its rules";
            Err(ApiError::new(ErrorCode::Forbidden, message))
        }
    }
}
