//! Plans bundles and their tools.

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::id::ToolId;
use haft_core::problem::Problem;
use haft_core::redact;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Status, Tool};
use haft_package::files::PackageFiles;
use haft_store::{ApplyChanges, ApplyState, BundleFields, ToolStep};
use serde_json::Value;

use super::desired::{BundleContent, Desired, DesiredBundle, DesiredTool, in_file};
use super::documents::WrittenBundle;
use super::plan::{ApplyOptions, ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planned_tools::tools_of;
use crate::context::Context;
use crate::definition::{self, CheckContext};
use crate::error::is_ignored_field;
use crate::identity::Identity;
use crate::planned_references::{PlannedReferences, PlannedTarget};

/// The largest number of tools that a plan lists as not ready.
const MAX_LISTED: usize = 20;

/// Compares what a folder says with what is stored.
pub(super) struct Planner<'a> {
    pub(super) app: &'a Context,
    pub(super) identity: &'a Identity,
    pub(super) state: &'a ApplyState,
    pub(super) options: ApplyOptions,
    /// The plan for people.
    pub(super) planned: Vec<PlannedChange>,
    /// The plan for the store.
    pub(super) changes: ApplyChanges,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// Packages to unpack before the store installs them.
    pub(super) packages: Vec<PackageFiles>,
    /// What tools can refer to after the plan.
    pub(super) references: PlannedReferences,
    /// Why an admin has to apply it.
    pub(super) needs_admin: Option<&'static str>,
}

impl Planner<'_> {
    /// Plans everything.
    pub(super) async fn plan(&mut self, desired: Desired) {
        let Desired { bundles, servers, policy, agents, pipelines, artifacts, .. } = desired;
        // Tools refer to these, so they come first.
        if let Some(pipelines) = pipelines {
            self.pipelines(pipelines).await;
        }
        if let Some(artifacts) = artifacts {
            self.artifacts(artifacts).await;
        }
        if let Some(agents) = &agents {
            self.note_agents(agents);
        }
        let tools = tools_of(&bundles);
        for tool in &tools {
            self.references.add_tool(&tool.bundle, &tool.spec.name);
        }
        let agents_of_folder = agents.map(|agents| (agents, tools));
        let declared: Vec<String> = bundles.iter().flat_map(declared_servers).collect();
        for bundle in bundles {
            let stored = self.state.bundles.iter().find(|stored| stored.slug == bundle.slug).cloned();
            self.bundle(bundle, stored).await;
        }
        self.servers(servers, &declared);
        if let Some(policy) = policy {
            self.policy(policy).await;
        }
        if let Some((agents, tools)) = agents_of_folder {
            self.agents(agents, &tools);
        }
        self.warn_of_missing_targets();
    }

    /// Warns of tools that stay as they are but lose what they refer to.
    fn warn_of_missing_targets(&mut self) {
        let is_planned = |id: ToolId| {
            self.changes.tools.iter().any(|step| match step {
                ToolStep::Update { id: changed, .. } | ToolStep::Delete { id: changed } => *changed == id,
                ToolStep::Create { .. } => false,
            })
        };
        let tenant = &self.identity.tenant;
        let snapshot = self.app.registry().snapshot();
        let own = snapshot.tools(tenant).filter(|entry| entry.tool.tenant == *tenant);
        let lost = own.filter_map(|entry| match self.references.target(&entry.tool.spec) {
            PlannedTarget::Missing(problem) => Some((entry, problem)),
            PlannedTarget::Unplanned | PlannedTarget::Exists => None,
        });
        let mut warnings: Vec<Problem> = lost
            .filter(|(entry, _)| !is_planned(entry.tool.id))
            .map(|(entry, problem)| {
                let message = format!("{}; the tool is not ready afterwards", problem.message);
                Problem::new(entry.qualified.to_string(), "missing_reference", message)
            })
            .collect();
        warnings.sort_by(|one, other| one.field.cmp(&other.field));
        let more = warnings.len().saturating_sub(MAX_LISTED);
        warnings.truncate(MAX_LISTED);
        if more > 0 {
            let message = format!("{more} more tools are not ready afterwards");
            warnings.push(Problem::new("", "missing_reference", message));
        }
        self.warnings.extend(warnings);
    }

    async fn bundle(&mut self, bundle: DesiredBundle, stored: Option<Bundle>) {
        let is_package = matches!(bundle.content, BundleContent::Package(_));
        let wrong = match stored.as_ref().map(|stored| stored.kind) {
            Some(BundleKind::BuiltIn) => Some("is built in"),
            Some(BundleKind::Mcp) => Some("mirrors an MCP server"),
            Some(BundleKind::Toolset) if !is_package => Some("is an installed toolset"),
            Some(BundleKind::User) if is_package => {
                Some("exists and is not a toolset; delete it, or change the id of the toolset")
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            let message = format!("bundle `{}` {wrong}", bundle.slug);
            return self.problems.push(Problem::new(bundle.folder, "other_bundle", message));
        }
        match bundle.content {
            BundleContent::Package(package) => self.toolset(&bundle.folder, &package),
            BundleContent::Tools { about, tools } => {
                self.about(&bundle.slug, &bundle.folder, about, stored.as_ref());
                self.tools(&bundle.slug, tools).await;
            }
        }
    }

    fn about(
        &mut self,
        slug: &haft_core::name::BundleSlug,
        folder: &str,
        written: WrittenBundle,
        stored: Option<&Bundle>,
    ) {
        let live = stored.filter(|stored| stored.soft_deleted_at.is_none());
        let after = BundleFields {
            slug: slug.clone(),
            display_name: written
                .display_name
                .or_else(|| stored.map(|stored| stored.display_name.clone()))
                .unwrap_or_else(|| slug.to_string()),
            description: written
                .description
                .or_else(|| stored.map(|stored| stored.description.clone()))
                .unwrap_or_default(),
            enabled: written.enabled.or_else(|| stored.map(|stored| stored.enabled)).unwrap_or(true),
        };
        let mut change = PlannedChange::new(ChangeKind::Bundle, ChangeAction::Create, slug.as_str());
        change.file = Some(folder.to_owned());
        change.summary.clone_from(&after.description);
        if let Some(live) = live {
            change.summary.clear();
            for (name, before, after) in [
                ("display_name", &live.display_name, &after.display_name),
                ("description", &live.description, &after.description),
            ] {
                if before != after {
                    change.fields.push(field(name, before.as_str(), after.as_str()));
                }
            }
            if live.enabled != after.enabled {
                change.fields.push(field("enabled", live.enabled, after.enabled));
            }
            let is_same = change.fields.is_empty();
            change.action = if is_same { ChangeAction::Unchanged } else { ChangeAction::Update };
        }
        if change.action.is_change() {
            self.changes.bundles.push(after);
        }
        self.planned.push(change);
    }

    async fn tools(&mut self, bundle: &haft_core::name::BundleSlug, tools: Vec<DesiredTool>) {
        let stored: Vec<Tool> =
            self.state.tools.iter().filter(|tool| tool.bundle == *bundle).cloned().collect();
        let is_key =
            |tool: &Tool, spec: &ToolSpec| tool.spec.name == spec.name && tool.spec.version == spec.version;
        for tool in &stored {
            if !tools.iter().any(|desired| is_key(tool, &desired.parsed.spec)) {
                self.unmanaged_tool(tool);
            }
        }
        for desired in tools {
            let current = stored.iter().find(|tool| is_key(tool, &desired.parsed.spec));
            self.tool(bundle, desired, current).await;
        }
    }

    fn unmanaged_tool(&mut self, tool: &Tool) {
        let action = if self.options.prune { ChangeAction::Delete } else { ChangeAction::Unmanaged };
        if self.options.prune {
            self.changes.tools.push(ToolStep::Delete { id: tool.id });
        }
        self.planned.push(tool_change(action, tool.bundle.as_str(), &tool.spec));
    }

    async fn tool(
        &mut self,
        bundle: &haft_core::name::BundleSlug,
        desired: DesiredTool,
        current: Option<&Tool>,
    ) {
        let DesiredTool { file, text, parsed } = desired;
        let status = target_status(parsed.status, current.map(|tool| tool.status));
        // A tool that leaves the status `disabled` is enabled, as everywhere.
        let is_revived = |tool: &Tool| tool.status == Status::Disabled && status != Status::Disabled;
        let is_enabled = |tool: &Tool| tool.enabled || is_revived(tool);
        let enabled = parsed.enabled.unwrap_or_else(|| current.is_none_or(is_enabled));
        let mut spec = parsed.spec.clone();
        let lost = redact::restore(&mut spec, current.map(|tool| &*tool.spec));
        let is_same =
            current.is_some_and(|tool| *tool.spec == spec && tool.fault.is_none()) && lost.is_empty();
        if !is_same {
            let tenant = &self.identity.tenant;
            let folder = self.app.store().catalog().bundle_folder(tenant, bundle);
            let context = CheckContext { app: self.app, tenant, folder, planned: &self.references };
            let earlier = current.map(|tool| &*tool.spec);
            let checking = definition::check_in(&context, (parsed, Some(&text)), earlier);
            match Box::pin(checking).await {
                Ok(checked) => {
                    let known = |problem: &Problem| is_ignored_field(problem);
                    let warnings = checked.warnings.iter().filter(|problem| !known(problem));
                    self.warnings.extend(warnings.map(|problem| in_file(&file, problem)));
                    spec = checked.spec;
                }
                Err(error) => {
                    return self
                        .problems
                        .extend(error.problems().iter().map(|problem| in_file(&file, problem)));
                }
            }
        }
        if status == Status::Published
            && let Some(pipeline) = self.references.draft_pipeline(&spec)
        {
            let message =
                format!("pipeline `{pipeline}` is a draft; the tool cannot query it in production mode");
            self.warnings.push(Problem::new(&file, "draft_pipeline", message));
        }
        let Some(tool) = current else {
            let mut change = tool_change(ChangeAction::Create, bundle.as_str(), &spec);
            change.summary.clone_from(&spec.description);
            change.file = Some(file);
            self.planned.push(change);
            let (bundle, spec) = (bundle.clone(), Box::new(spec));
            return self.changes.tools.push(ToolStep::Create { bundle, spec, text, enabled, status });
        };
        let mut change = updated(tool, &spec, (enabled, status));
        change.file = Some(file);
        if change.action.is_change() {
            let (id, spec) = (tool.id, Box::new(spec));
            self.changes.tools.push(ToolStep::Update { id, spec, text, enabled, status });
        }
        self.planned.push(change);
    }
}

/// Returns the status of a tool after it is applied: what the file says, otherwise published. What an operator has
/// deprecated or disabled stays so.
pub(super) fn target_status(written: Option<Status>, current: Option<Status>) -> Status {
    match (written, current) {
        (Some(status), _) | (None, Some(status @ (Status::Deprecated | Status::Disabled))) => status,
        (None, Some(Status::Draft | Status::Published) | None) => Status::Published,
    }
}

/// Returns the change of a stored tool.
fn updated(tool: &Tool, spec: &ToolSpec, (enabled, status): (bool, Status)) -> PlannedChange {
    let mut change = tool_change(ChangeAction::Unchanged, tool.bundle.as_str(), spec);
    if *tool.spec != *spec {
        change.fields = fields(&masked(&tool.spec), &masked(spec));
        if change.fields.is_empty() {
            change.fields.push(field("implementation", "***", "***"));
        }
    }
    if let Some(fault) = &tool.fault {
        change.fields.push(field("error", fault.as_str(), Value::Null));
    }
    let enabled = enabled && status != Status::Disabled;
    if tool.enabled != enabled {
        change.fields.push(field("enabled", tool.enabled, enabled));
    }
    if !change.fields.is_empty() {
        change.action = ChangeAction::Update;
    }
    let published = tool.published.as_ref().map(|(number, _)| *number);
    if tool.status != status {
        change.fields.push(field("status", tool.status.as_str(), status.as_str()));
    } else if status == Status::Published && published != Some(tool.revision) {
        change.fields.push(field("published_revision", published, tool.revision));
    }
    if change.action == ChangeAction::Unchanged && !change.fields.is_empty() {
        change.action =
            if status == Status::Published { ChangeAction::Publish } else { ChangeAction::Update };
    }
    change
}

/// Returns a change of a tool.
pub(super) fn tool_change(action: ChangeAction, bundle: &str, spec: &ToolSpec) -> PlannedChange {
    PlannedChange {
        bundle: Some(bundle.to_owned()),
        version: Some(spec.version.to_string()),
        ..PlannedChange::new(ChangeKind::Tool, action, spec.name.as_str())
    }
}

/// Returns a definition as JSON without secrets.
pub(super) fn masked(spec: &ToolSpec) -> Value {
    serde_json::to_value(redact::masked(spec)).unwrap_or_default()
}

/// Returns the ids of the MCP servers that come with a bundle.
pub(super) fn declared_servers(bundle: &DesiredBundle) -> Vec<String> {
    match &bundle.content {
        BundleContent::Tools { .. } => Vec::new(),
        BundleContent::Package(package) => {
            package.toolset.mcp_servers.iter().map(|server| server.id.to_string()).collect()
        }
    }
}
