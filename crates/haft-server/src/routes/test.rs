//! `POST /tools/{ref}/test`: runs the newest revision of a tool.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::trial::{TestBody, TestResult, TestStatus};
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_runtime::pipeline::{CallOptions, Request};
use serde_json::Value;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;

/// Run the newest revision of a tool once, without approval.
#[utoipa::path(
    post, path = "/tools/{ref}/test", tag = "tools", params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")), request_body = Option<TestBody>,
    responses((status = 200, body = Success<TestResult>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 429, body = ErrorBody))
)]
pub(crate) async fn run(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    // Editors can change the tool, so a test needs no approval.
    identity.require(Role::Editor)?;
    let tool: ToolRef = reference.parse()?;
    let test: TestBody = body.json_or_default()?;
    let request = Request {
        mode: Mode::Debug,
        is_test: true,
        options: CallOptions::of_request(haft_platform::request_id::current()),
        ..Request::new(identity.principal(), "test", test.parameters)
    };
    let completed = app.pipeline().call(tool.into(), request).await.map_err(ApiError::outside_call)?;
    let record = &completed.record;
    let (output, status, error_code) = match &record.error {
        None => (record.value.clone().unwrap_or(Value::Null), TestStatus::Success, None),
        Some(error) => (Value::from(error.message.as_str()), TestStatus::Error, Some(error.code)),
    };
    let execution_time_ms = record.duration_ms.unwrap_or_default();
    Ok(success(TestResult { output, execution_time_ms, status, error_code, call_id: record.id().0 })
        .into_response())
}
