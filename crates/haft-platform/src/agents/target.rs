//! The agent that a tool of the type `agent_call` runs.

use haft_core::implementation::{AgentCall, Implementation};
use haft_core::name::TenantId;
use haft_core::problem::{NOT_PUBLISHED, Problem, excerpt};
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;

use crate::context::Context;
use crate::known_agents::KnownAgent;

/// Returns the field that names the agent, and its slug or id.
pub fn target_of(call: &AgentCall) -> Option<(&'static str, &str)> {
    let fields = [
        ("implementation.target_agent_id", &call.target_agent_id),
        ("implementation.target_agent_slug", &call.target_agent_slug),
    ];
    fields.into_iter().find_map(|(field, text)| {
        let text = text.as_deref().filter(|text| !text.trim().is_empty())?;
        Some((field, text))
    })
}

/// Returns the problem if a tool runs an agent that its tenant does not have or, in production mode, that is not
/// published.
pub fn target_problem(app: &Context, tenant: &TenantId, spec: &ToolSpec, mode: Mode) -> Option<Problem> {
    let Implementation::AgentCall(call) = &spec.implementation else { return None };
    // A global tool runs the agent that each tenant has under this name.
    if tenant.is_global() {
        return None;
    }
    let (field, target) = target_of(call)?;
    let shown = excerpt(target, 64);
    match (app.agents().find(tenant, target), mode) {
        (None, _) => Some(Problem::new(field, "not_found", format!("agent `{shown}` not found"))),
        (Some(KnownAgent::Draft), Mode::Production) => {
            let message = format!(
                "agent `{shown}` is not published; publish it first with `haft agent publish {shown}`"
            );
            Some(Problem::new(field, NOT_PUBLISHED, message))
        }
        (Some(KnownAgent::Draft), Mode::Debug) | (Some(KnownAgent::Published), _) => None,
    }
}
