//! `/tools/{ref}/examples`: saved arguments of a tool, shared in the tenant and runnable as tests.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::example::{ExampleError, MAX_EXAMPLE_BYTES, ToolExample};
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_runtime::pipeline::{Labels, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

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

/// Saved arguments of a tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolExampleView {
    #[schema(example = "Ada")]
    name: String,
    /// What it shows.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false, example = "Greets one person")]
    description: String,
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    args: Map<String, Value>,
    /// The value that the tool should return; missing for any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    expect: Option<Value>,
}

impl From<ToolExample> for ToolExampleView {
    fn from(example: ToolExample) -> Self {
        let ToolExample { name, description, args, expect } = example;
        Self { name, description, args, expect }
    }
}

/// The examples of a tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolExampleList {
    examples: Vec<ToolExampleView>,
}

/// An example to store.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ExampleBody {
    /// The arguments.
    #[schema(value_type = Object, example = json!({"name": "Ada"}))]
    args: Map<String, Value>,
    /// What it shows.
    #[serde(default)]
    #[schema(required = false)]
    description: Option<String>,
    /// The value that the tool should return; without it, any value passes.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Value, required = false)]
    expect: Option<Value>,
}

/// Reads a field that is given, even as `null`.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Whether an example passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExampleStatus {
    /// The tool succeeded, with the expected value if there is one.
    Passed,
    /// The tool returned another value than the expected one.
    Failed,
    /// The tool failed, or the call was rejected.
    Error,
}

/// The call of an example.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExampleOutcome {
    /// Whether the tool succeeded.
    ok: bool,
    /// The value of the tool; missing if it failed or if the value is large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    value: Option<Value>,
    /// Set if the value is left out because it is large.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shortened: bool,
    call_id: Uuid,
    #[schema(example = 12.3)]
    duration_ms: f64,
}

/// The result of one example.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExampleResult {
    #[schema(example = "Ada")]
    name: String,
    status: ExampleStatus,
    /// The call; missing if it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<ExampleOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<ErrorCode>,
    /// Why it did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The results of all examples of a tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExampleRun {
    results: Vec<ExampleResult>,
}

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
    let examples = app.store().examples(&identity.tenant, tool).await?;
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
    app.store().put_example(&identity.tenant, entry.tool.id, example.clone()).await?;
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
    app.store().delete_example(&identity.tenant, entry.tool.id, &name).await?;
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
    for example in app.store().examples(&identity.tenant, tool).await? {
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
        is_trial: true,
        labels: Labels::of_request(haft_platform::request_id::current()),
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
