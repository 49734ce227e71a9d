//! Agents in API responses: fills in the fields of the haft-api types that depend on the installation.

use haft_api::agent::{AgentToolView, AgentView};
use haft_core::agent::Agent;
use haft_core::problem::Problem;
use haft_core::spec::Policy;
use haft_platform::Installation;
use haft_platform::agents::{self, Binding};
use haft_runtime::registry::Snapshot;

/// Shows a changed agent with its warnings.
pub(crate) fn agent(app: &Installation, agent: &Agent, warnings: Vec<Problem>) -> AgentView {
    AgentView { warnings, ..in_snapshot(app, &app.registry().current(), agent) }
}

/// Shows an agent with the tools of one snapshot, for lists.
pub(crate) fn in_snapshot(app: &Installation, snapshot: &Snapshot, agent: &Agent) -> AgentView {
    AgentView::new(agent, agents::fault(app, snapshot, agent))
}

/// Shows a tool of an agent.
pub(crate) fn tool(binding: &Binding) -> AgentToolView {
    let tool = &binding.entry.tool;
    let spec = &tool.spec;
    AgentToolView {
        id: tool.id.0,
        qualified: binding.tool.qualified.clone(),
        name: binding.tool.definition.name.clone(),
        description: binding.tool.definition.description.clone(),
        tool_type: tool.tool_type(),
        implementation_type: spec.implementation.kind().as_str().into(),
        requires_approval: spec.requires_confirmation || spec.policy == Policy::Elevated,
        renderer: haft_core::render::select(&spec.renderers).map(|renderer| renderer.renderer.clone()),
        tokens: binding.tokens,
    }
}
