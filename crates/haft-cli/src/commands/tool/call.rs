//! `haft tool call`: calls a tool.

use std::borrow::Cow;

use clap::Args;
use haft_api::call::{AcceptedCall, CallErrorView, OutcomeView};
use haft_api::error::ErrorBody;
use haft_core::runnable::Mode;
use serde_json::{Map, Value, json};

use super::arguments::{CallArguments, parse_mode};
use crate::client::{Request, explain, tool_segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Call a tool
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    #[command(flatten)]
    values: CallArguments,
    /// Mode: `debug` runs the newest revision, `production` the published one
    #[arg(long, value_parser = parse_mode)]
    mode: Option<Mode>,
    /// Do not wait; print the id of the call for `haft call show`
    #[arg(long = "async")]
    background: bool,
    /// URL that the end of the call is posted to
    #[arg(long, value_name = "URL", requires = "background")]
    webhook: Option<String>,
    /// Idempotency key: a call with the same key runs only once
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Workspace that the call works in; created on first use
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    if arguments.background && client.engine().is_some() {
        client.close().await;
        return Err(CliError::Usage {
            message: "`--async` needs a running server: without one, the call would end with this command"
                .to_owned(),
            hint: Some("start the server with `haft serve`".to_owned()),
        });
    }
    let response = match arguments.values.read(&arguments.tool, &client, &context.output).await {
        Ok(args) => client.send(request(&arguments, &args)).await,
        Err(error) => Err(error),
    };
    let response = match response {
        Err(error) => Err(explain(error, &arguments.tool, &client).await),
        response => response,
    };
    client.close().await;
    print(&response?, context)
}

fn request(arguments: &Arguments, args: &Value) -> Request {
    let mut body = Map::from_iter([("args".to_owned(), args.clone())]);
    body.extend(arguments.workspace.as_ref().map(|name| ("workspace".to_owned(), json!(name))));
    body.extend(arguments.webhook.as_ref().map(|url| ("webhook".to_owned(), json!({ "url": url }))));
    let body = Value::Object(body);
    let mut request = Request::post(format!("/api/tools/{}/invoke", tool_segment(&arguments.tool)), body)
        .query_some("mode", arguments.mode.map(Mode::as_str));
    if arguments.background {
        request = request.query("async", "true");
    }
    match &arguments.idempotency_key {
        Some(key) => request.header("idempotency-key", key.clone()),
        None => request,
    }
}

/// Prints the value; a failed call is an error with its own exit code.
fn print(response: &Value, context: &Context) -> Result<(), CliError> {
    if response.get("ok").is_none() {
        return context
            .output
            .show(response, |output, accepted: AcceptedCall| output.line(&accepted.call_id.to_string()));
    }
    if response.get("status").is_some() {
        // The call waits for approval.
        let ErrorBody { error, .. } = view::read(response)?;
        context.output.data(response, |_| Ok(()))?;
        let details = error.details.unwrap_or_default();
        return Err(CliError::CallFailed {
            code: error.code.as_str().to_owned(),
            message: error.message,
            details,
        });
    }
    let outcome: OutcomeView<'_> = view::read(response)?;
    for warning in &outcome.warnings {
        context.output.warn(warning);
    }
    context.output.data(response, |output| match &outcome.value {
        Some(value) => output.line(&view::readable(value)),
        None => Ok(()),
    })?;
    let Some(CallErrorView { code, message, details, .. }) = outcome.error else { return Ok(()) };
    Err(CliError::CallFailed {
        code: code.as_str().to_owned(),
        message: message.into_owned(),
        details: details.map(Cow::into_owned).unwrap_or_default(),
    })
}
