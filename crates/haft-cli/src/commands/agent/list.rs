//! `haft agent list`: lists agents.

use clap::Args;
use serde_json::Value;

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// List agents
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only agents whose slug, name or description contains this text
    #[arg(short = 'q', long, value_name = "TEXT")]
    query: Option<String>,
    /// Only agents with this status
    #[arg(long, value_parser = ["draft", "published", "deprecated", "disabled"])]
    status: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/agents?page_size=500")
        .query_some("q", arguments.query.as_deref())
        .query_some("status", arguments.status.as_deref());
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "agents").iter().map(|agent| {
            vec![
                view::text(agent, "slug"),
                view::text(agent, "model.name"),
                state(agent),
                view::text(agent, "revision"),
                view::first_line(&view::text(agent, "description"), 60),
            ]
        });
        output.table(&["AGENT", "MODEL", "STATUS", "REVISION", "DESCRIPTION"], rows.collect())
    })
}

/// Returns the status, or what keeps the agent from running.
pub(super) fn state(agent: &Value) -> String {
    if agent.get("enabled") == Some(&Value::Bool(false)) {
        return "off".to_owned();
    }
    if agent.get("ready") == Some(&Value::Bool(false)) {
        return "not ready".to_owned();
    }
    view::text(agent, "status")
}
