//! `GET /settings` and `GET /doctor`: how an installation is configured, and whether it works.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::token::Role;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use crate::report_view;
use haft_api::installation::{DoctorReport, SettingList};
use haft_platform::Installation;
use haft_platform::doctor;

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
    let effective = app.settings().config.effective.iter();
    Ok(success(SettingList { settings: effective.cloned().map(report_view::setting).collect() })
        .into_response())
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
    let checks = doctor::check_all(&app, &identity).await;
    let report = DoctorReport {
        checks: checks.into_iter().map(report_view::check).collect(),
        version: env!("CARGO_PKG_VERSION").into(),
        sandbox_engine: app.sandbox().settings().engine.as_str().into(),
        store: doctor::store_name(&app).into(),
    };
    Ok(success(report).into_response())
}
