//! `haft agent list`: lists agents.

use haft_api::agent::AgentView;

use super::super::life_cycle::{self, AGENTS, Columns, ListArguments};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Runs the command.
pub(crate) async fn run(arguments: &ListArguments, context: &Context) -> Result<(), CliError> {
    let columns = Columns {
        header: &["AGENT", "MODEL", "STATUS", "REVISION", "DESCRIPTION"],
        wide: &["NAME", "PROVIDER", "TOOLS", "CHANGED"],
    };
    life_cycle::list(arguments, AGENTS, context, columns, |agent: &AgentView, output| {
        let definition = &agent.definition;
        vec![
            definition.slug.to_string(),
            definition.model.name.clone(),
            state(agent).to_owned(),
            agent.revision.to_string(),
            output.brief(&definition.description, 60),
            definition.name.clone(),
            definition.model.provider.clone().unwrap_or_default(),
            definition.tools.join(", "),
            view::moment(agent.modified_at),
        ]
    })
    .await
}

/// Returns the status, or what keeps the agent from running.
pub(super) fn state(agent: &AgentView) -> &'static str {
    match agent {
        AgentView { enabled: false, .. } => "off",
        AgentView { ready: false, .. } => "not ready",
        AgentView { status, .. } => status.as_str(),
    }
}
