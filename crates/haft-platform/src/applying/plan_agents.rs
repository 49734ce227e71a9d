//! Plans agents.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::agent::{Agent, AgentDefinition};
use haft_core::id::{BundleId, ToolId};
use haft_core::lifecycle::Lifecycle;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::principal::AllowList;
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Status, Tool, Usage};
use haft_store::ResourceChange;
use serde_json::Value;
use uuid::Uuid;

use super::desired::{BundleContent, DesiredBundle, in_file};
use super::documents::DesiredAgent;
use super::plan::{ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planner::{Planner, target_status};
use crate::agents::{Strictness, check};

impl Planner<'_> {
    /// Notes the agents that tools can call after the plan.
    pub(super) fn note_agents(&mut self, agents: &[DesiredAgent]) {
        for stored in &self.state.agents {
            if self.is_pruned(stored, agents) {
                self.references.add_agent(&stored.id, false);
                self.references.add_agent(&stored.definition.slug, false);
            }
        }
        for desired in agents {
            self.references.add_agent(&desired.definition.slug, true);
        }
    }

    /// Returns whether an agent is deleted. One that a file of the home folder defines is not: only that file removes it.
    fn is_pruned(&self, stored: &Agent, agents: &[DesiredAgent]) -> bool {
        let is_desired = agents.iter().any(|desired| desired.definition.slug == stored.definition.slug);
        self.options.prune && stored.path.is_none() && !is_desired
    }

    /// Plans the agents of the folder; `tools` are those that the folder brings.
    pub(super) fn agents(&mut self, agents: Vec<DesiredAgent>, tools: &[Tool]) {
        let state = self.state;
        for stored in &state.agents {
            if !agents.iter().any(|desired| desired.definition.slug == stored.definition.slug) {
                self.unmanaged_agent(stored, self.is_pruned(stored, &agents));
            }
        }
        for desired in agents {
            let stored = state.agents.iter().find(|stored| stored.definition.slug == desired.definition.slug);
            self.agent(desired, stored, tools);
        }
    }

    fn unmanaged_agent(&mut self, stored: &Agent, prune: bool) {
        if prune {
            self.changes.agents.push(ResourceChange::Delete { id: stored.id });
        }
        let action = if prune { ChangeAction::Delete } else { ChangeAction::Unmanaged };
        let slug = stored.definition.slug.as_str();
        self.planned.push(PlannedChange::new(ChangeKind::Agent, action, slug));
    }

    fn agent(&mut self, desired: DesiredAgent, stored: Option<&Agent>, tools: &[Tool]) {
        let DesiredAgent { file, definition, enabled, status } = desired;
        let status = target_status(status, stored.map(|stored| stored.status));
        let is_enabled = |stored: &Agent| stored.enabled || stored.status == Status::Disabled;
        let enabled = enabled.unwrap_or_else(|| stored.is_none_or(is_enabled));
        let is_same = stored.is_some_and(|stored| *stored.definition == definition);
        if !is_same {
            self.check_agent(&file, &definition, tools);
        }
        let Some(stored) = stored else {
            let slug = definition.slug.as_str();
            let mut change = PlannedChange::new(ChangeKind::Agent, ChangeAction::Create, slug);
            change.summary.clone_from(&definition.description);
            change.file = Some(file);
            self.planned.push(change);
            let definition = Box::new(definition);
            return self.changes.agents.push(ResourceChange::Create { definition, enabled, status });
        };
        if let Some(path) = stored.path.as_ref().filter(|_| !is_same) {
            let message = format!(
                "the agent `{}` is defined by the file `{path}` of the home folder; edit or remove that file",
                definition.slug
            );
            return self.problems.push(Problem::new(file, "defined_by_file", message));
        }
        let mut change = updated(stored, &definition, (enabled, status));
        change.file = Some(file);
        if change.action.is_change() {
            let (id, definition) = (stored.id, Box::new(definition));
            self.changes.agents.push(ResourceChange::Update { id, definition, enabled, status });
        }
        self.planned.push(change);
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

/// Returns the change of a stored agent.
fn updated(stored: &Agent, definition: &AgentDefinition, (enabled, status): (bool, Status)) -> PlannedChange {
    let slug = definition.slug.as_str();
    let mut change = PlannedChange::new(ChangeKind::Agent, ChangeAction::Unchanged, slug);
    if *stored.definition != *definition {
        change.fields = fields(&as_json(&stored.definition), &as_json(definition));
    }
    let enabled = enabled && status != Status::Disabled;
    if stored.enabled != enabled {
        change.fields.push(field("enabled", stored.enabled, enabled));
    }
    if !change.fields.is_empty() {
        change.action = ChangeAction::Update;
    }
    let published = stored.published_revision();
    if stored.status != status {
        change.fields.push(field("status", stored.status.as_str(), status.as_str()));
    } else if status == Status::Published && published != Some(stored.revision) {
        change.fields.push(field("published_revision", published, stored.revision));
    }
    if change.action == ChangeAction::Unchanged && !change.fields.is_empty() {
        change.action =
            if status == Status::Published { ChangeAction::Publish } else { ChangeAction::Update };
    }
    change
}

fn as_json(definition: &AgentDefinition) -> Value {
    let mut shown = definition.clone();
    super::export_agents::hide_secrets(&mut shown);
    serde_json::to_value(shown).unwrap_or_default()
}

/// Returns the tools that the bundles of a folder bring, as rules for tools see them.
pub(super) fn tools_of(bundles: &[DesiredBundle]) -> Vec<Tool> {
    let mut tools = Vec::new();
    for bundle in bundles {
        match &bundle.content {
            BundleContent::Tools { tools: own, .. } => {
                tools.extend(own.iter().map(|tool| planned_tool(&bundle.slug, &tool.parsed.spec)));
            }
            BundleContent::Package(package) => {
                tools.extend(package.toolset.tools.iter().map(|tool| planned_tool(&bundle.slug, &tool.spec)));
            }
        }
    }
    tools
}

fn planned_tool(bundle: &BundleSlug, spec: &ToolSpec) -> Tool {
    Tool {
        // Rules look at the names and tags only.
        id: ToolId(Uuid::nil()),
        tenant: TenantId::default_tenant(),
        bundle_id: BundleId(Uuid::nil()),
        bundle: bundle.clone(),
        spec: Arc::new(spec.clone()),
        revision: 1,
        published: None,
        status: Status::Draft,
        enabled: true,
        built_in: false,
        fault: None,
        source: Source::User,
        path: None,
        usage: Usage::default(),
        created_at: Timestamp::UNIX_EPOCH,
        modified_at: Timestamp::UNIX_EPOCH,
        published_at: None,
        lifecycle: Lifecycle::default(),
    }
}
