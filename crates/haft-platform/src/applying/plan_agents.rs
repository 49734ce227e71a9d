//! Plans agents.

use haft_core::agent::{Agent, AgentDefinition};
use haft_core::principal::AllowList;
use haft_core::problem::Problem;
use haft_core::tool::Tool;
use haft_store::ResourceChange;
use serde_json::Value;

use super::desired::in_file;
use super::desired_resource::DesiredAgent;
use super::plan::ChangeKind;
use super::plan_resources::{PlannedKind, counterpart};
use super::planner::Planner;
use crate::agents::{Strictness, check};

impl PlannedKind for AgentDefinition {
    const CHANGE: ChangeKind = ChangeKind::Agent;

    fn shown(&self) -> Value {
        let mut shown = self.clone();
        super::export_agents::hide_secrets(&mut shown);
        serde_json::to_value(shown).unwrap_or_default()
    }
}

impl Planner<'_> {
    /// Notes the agents that tools can call after the plan.
    pub(super) fn note_agents(&mut self, agents: &[DesiredAgent]) {
        let state = self.state;
        for stored in state.agents.iter().filter(|stored| is_unmanaged(stored, agents)) {
            if self.options.prune && stored.path.is_none() {
                self.references.add_agent(&stored.id, false);
                self.references.add_agent(&stored.definition.slug, false);
            }
        }
        for desired in agents {
            self.references.add_agent(&desired.definition.slug, true);
        }
    }

    /// Plans the agents of the folder; `tools` are those that the folder brings.
    pub(super) fn agents(&mut self, agents: Vec<DesiredAgent>, tools: &[Tool]) {
        let state = self.state;
        for stored in state.agents.iter().filter(|stored| is_unmanaged(stored, &agents)) {
            if self.unmanaged::<AgentDefinition>(stored.definition.slug.as_str(), stored.path.as_deref()) {
                self.changes.agents.push(ResourceChange::Delete { id: stored.id });
            }
        }
        for desired in agents {
            let stored = state.agents.iter().find(|stored| stored.definition.slug == desired.definition.slug);
            let stored = stored.map(|stored| counterpart(stored, &desired.definition));
            if stored.as_ref().is_none_or(|stored| stored.earlier.is_some()) {
                self.check_agent(&desired.file, &desired.definition, tools);
            }
            let change = self.resource(desired, stored);
            self.changes.agents.extend(change);
        }
    }

    /// Checks an agent against the tools of the installation and those of the folder.
    fn check_agent(&mut self, file: &str, definition: &AgentDefinition, tools: &[Tool]) {
        // Whether tools are published is decided by the same plan.
        let found = check(self.app, &self.identity.tenant, definition, Strictness::Draft);
        let is_brought = |rule: &String| {
            AllowList::new([rule]).is_ok_and(|list| tools.iter().any(|tool| list.allows(tool)))
        };
        let brought: Vec<String> = definition
            .tools
            .iter()
            .enumerate()
            .filter(|(_, rule)| is_brought(rule))
            .map(|(index, _)| format!("tools[{index}]"))
            .collect();
        let is_open = |problem: &&Problem| !brought.contains(&problem.field);
        self.problems.extend(found.errors.iter().filter(is_open).map(|problem| in_file(file, problem)));
        self.warnings.extend(found.warnings.iter().filter(is_open).map(|problem| in_file(file, problem)));
    }
}

/// Returns whether a stored agent is missing in the folder.
fn is_unmanaged(stored: &Agent, agents: &[DesiredAgent]) -> bool {
    !agents.iter().any(|desired| desired.definition.slug == stored.definition.slug)
}
