//! `GET /settings` and `GET /doctor`: how an installation is configured, and whether it works.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::token::Role;
use serde::Serialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::doctor::{self, Check};
use haft_platform::settings::EffectiveSetting;

/// The effective configuration.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingList {
    /// In the order of the documentation; empty if a program embeds the server and configures it in code.
    settings: Vec<EffectiveSetting>,
}

/// The checks of an installation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DoctorReport {
    checks: Vec<Check>,
    /// The version of haft.
    #[schema(example = "0.1.0")]
    version: &'static str,
    #[schema(example = "bubblewrap")]
    sandbox_engine: &'static str,
    /// `SQLite` or `PostgreSQL`.
    #[schema(example = "SQLite")]
    store: &'static str,
}

/// List the effective configuration and where each value comes from; secrets are masked. For platform admins.
#[utoipa::path(
    get, path = "/settings", tag = "operation",
    responses((status = 200, body = Success<SettingList>), (status = 403, body = ErrorBody))
)]
pub(crate) async fn settings(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    Ok(success(SettingList { settings: app.settings().config.effective.clone() }).into_response())
}

/// Check the installation, like `haft doctor`. For admins; only platform admins see the checks of the machine.
#[utoipa::path(
    get, path = "/doctor", tag = "operation",
    responses((status = 200, body = Success<DoctorReport>), (status = 403, body = ErrorBody))
)]
pub(crate) async fn doctor(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let report = DoctorReport {
        checks: doctor::check_all(&app, &identity).await,
        version: env!("CARGO_PKG_VERSION"),
        sandbox_engine: app.sandbox().settings().engine.as_str(),
        store: doctor::store_name(&app),
    };
    Ok(success(report).into_response())
}
