//! `haft tool publish`, `deprecate`, `enable` and `disable`: steps in the life of a tool.

use clap::Args;
use http::Method;
use serde_json::json;

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Which tool
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool
    tool: String,
}

/// A step in the life of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Production runs the newest revision.
    Publish,
    /// Callers are warned.
    Deprecate,
    /// It runs.
    Enable,
    /// It does not run.
    Disable,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, step: Step, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tools/{}", segment(&arguments.tool));
    let enable = |on: bool| Request::new(Method::PATCH, &path).with_body(Body::Json(json!({"enabled": on})));
    let (request, done) = match step {
        Step::Publish => (Request::post(format!("{path}/publish"), json!({})), "published"),
        Step::Deprecate => (Request::post(format!("{path}/deprecate"), json!({})), "deprecated"),
        Step::Enable => (enable(true), "enabled"),
        Step::Disable => (enable(false), "disabled"),
    };
    let data = context.ask(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("{done} `{}`", view::qualified(&data)));
        Ok(())
    })
}
