//! `haft tool publish`, `enable` and `disable`: changes of the status of a tool.

use clap::Args;
use haft_api::tool::ToolView;
use http::Method;
use serde_json::json;

use super::usage;
use crate::client::{Body, Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// The tool
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
}

/// A change of the status of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StatusChange {
    /// Production mode runs the newest revision.
    Publish,
    /// The tool can run.
    Enable,
    /// The tool cannot run.
    Disable,
}

/// Runs the command.
pub(crate) async fn run(
    arguments: Arguments,
    change: StatusChange,
    context: &Context,
) -> Result<(), CliError> {
    let path = format!("/api/tools/{}", tool_segment(&arguments.tool));
    let enable = |on: bool| Request::new(Method::PATCH, &path).with_body(Body::Json(json!({"enabled": on})));
    let (request, done) = match change {
        StatusChange::Publish => (Request::post(format!("{path}/publish"), json!({})), "published"),
        StatusChange::Enable => (enable(true), "enabled"),
        StatusChange::Disable => (enable(false), "disabled"),
    };
    if matches!(change, StatusChange::Publish) {
        usage::notice(&arguments.tool, context).await?;
    }
    let data = context.tool_request(&arguments.tool, request).await?;
    if matches!(change, StatusChange::Publish) {
        for warning in &view::read::<ToolView>(&data)?.warnings {
            context.output.warn(&view::problem(warning));
        }
    }
    context.output.show(&data, |output, changed: ToolView| {
        output.note(&format!("{done} `{}`", changed.qualified()));
        Ok(())
    })
}
