//! `/tools/{ref}/examples`: saved arguments of a tool, shared in the tenant and runnable as tests.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::trial::{
    ExampleBody, ExampleOutcome, ExampleResult, ExampleRun, ExampleStatus, ToolExampleList, ToolExampleView,
};
use haft_core::example::{ExampleError, MAX_EXAMPLE_BYTES, ToolExample};
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_runtime::pipeline::{CallOptions, Request};
use serde_json::Value;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{self, Message, Success, success};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;

/// Larger values are left out of the results of a run.
const MAX_VALUE_BYTES: usize = MAX_EXAMPLE_BYTES;

/// List the examples of a tool.
#[utoipa::path(
    get, path = "/tools/{ref}/examples", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ToolExampleList>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let tool = haft_platform::tools::find(&app, &identity, &reference)?.tool.id;
    let examples = app.store().catalog().examples(&identity.tenant, tool).await?;
    let examples = examples.into_iter().map(ToolExampleView::from).collect();
    Ok(success(ToolExampleList { examples }).into_response())
}

/// Store an example of a tool: at most 50 per tool, 64 KiB each.
#[utoipa::path(
    put, path = "/tools/{ref}/examples/{name}", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"),
        ("name" = String, Path, description = "Up to 64 letters, digits, spaces, `.`, `_` or `-`", example = "Ada")),
    request_body = ExampleBody,
    responses((status = 200, body = Success<ToolExampleView>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, name)): Path<(String, String)>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = haft_platform::tools::find(&app, &identity, &reference)?;
    let ExampleBody { args, description, expect } = body.json()?;
    let example = ToolExample { name, description: description.unwrap_or_default(), args, expect };
    example.check().map_err(|error| {
        let code = match error {
            ExampleError::TooLarge(_) => ErrorCode::TooLarge,
            ExampleError::Name(_) | ExampleError::Description => ErrorCode::InvalidRequest,
        };
        ApiError::new(code, error.to_string())
    })?;
    app.store().catalog().put_example(&identity.tenant, entry.tool.id, example.clone()).await?;
    audit::note(&identity, "example.put", &format!("{}: {}", entry.tool.qualified(), example.name));
    Ok(success(ToolExampleView::from(example)).into_response())
}

/// Delete an example of a tool.
#[utoipa::path(
    delete, path = "/tools/{ref}/examples/{name}", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet"),
        ("name" = String, Path, example = "Ada")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, name)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let entry = haft_platform::tools::find(&app, &identity, &reference)?;
    if name.contains('\0') {
        return Err(ApiError::not_found("example", &name));
    }
    app.store().catalog().delete_example(&identity.tenant, entry.tool.id, &name).await?;
    audit::note(&identity, "example.delete", &format!("{}: {name}", entry.tool.qualified()));
    Ok(reply::message(format!("Example '{name}' deleted")))
}

/// Run all examples of a tool, one after the other, on its newest revision and without approval.
#[utoipa::path(
    post, path = "/tools/{ref}/examples/run", tag = "tools",
    params(("ref" = String, Path, description = "Id, name or `bundle:name`; the latter two optionally with `@version`", example = "greet")),
    responses((status = 200, body = Success<ExampleRun>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn run(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    // Editors can change the tool, so a test needs no approval.
    identity.require(Role::Editor)?;
    let tool = haft_platform::tools::find(&app, &identity, &reference)?.tool.id;
    let mut results = Vec::new();
    for example in app.store().catalog().examples(&identity.tenant, tool).await? {
        results.push(run_example(&app, &identity, ToolRef::Id(tool), example).await);
    }
    Ok(success(ExampleRun { results }).into_response())
}

async fn run_example(
    app: &Installation,
    identity: &Identity,
    tool: ToolRef,
    example: ToolExample,
) -> ExampleResult {
    let request = Request {
        mode: Mode::Debug,
        is_test: true,
        options: CallOptions::of_request(haft_platform::request_id::current()),
        ..Request::new(identity.principal(), "test", example.args.clone())
    };
    let record = match app.pipeline().call(tool.into(), request).await {
        Ok(completed) => completed.record,
        Err(error) => {
            let ServiceError { code, message, .. } = error.into();
            let (status, error_code) = (ExampleStatus::Error, Some(code));
            return ExampleResult {
                name: example.name,
                status,
                outcome: None,
                error_code,
                message: Some(message),
            };
        }
    };
    let result: Outcome = match &record.error {
        None => Ok(record.value.clone().unwrap_or(Value::Null)),
        Some(error) => Err(error.clone()),
    };
    let (status, message) = match &result {
        Err(error) => (ExampleStatus::Error, Some(error.message.clone())),
        Ok(_) if example.matches(&result) => (ExampleStatus::Passed, None),
        Ok(_) => (ExampleStatus::Failed, Some("the value differs from the expected one".to_owned())),
    };
    let (ok, error_code) = (result.is_ok(), result.as_ref().err().map(|error| error.code));
    let value = result.ok();
    let shortened = value.as_ref().is_some_and(|value| value.to_string().len() > MAX_VALUE_BYTES);
    let outcome = ExampleOutcome {
        ok,
        value: value.filter(|_| !shortened),
        shortened,
        call_id: record.id().0,
        duration_ms: record.duration_ms.unwrap_or_default(),
    };
    ExampleResult { name: example.name, status, outcome: Some(outcome), error_code, message }
}
