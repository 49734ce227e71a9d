//! Plans toolsets: a package is installed or updated as a whole.

use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Status, Tool};
use haft_core::toolset::{PackageSource, bind_package, keep_settings};
use haft_package::package::Package;
use haft_store::{ToolsetInstall, ToolsetStep};

use super::plan::{ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planner::{Planner, masked, tool_change};
use crate::toolsets::{InstallOptions, Origin, new_server, prepare};

impl Planner<'_> {
    pub(super) fn toolset(&mut self, folder: &str, package: &Package) {
        let origin = Origin { kind: PackageSource::Zip, reference: None };
        let options = InstallOptions { allow_unsandboxed: self.options.allow_unsandboxed };
        let install = match prepare(self.app, self.identity, package, origin, options) {
            Ok((install, warnings)) => {
                let warning = |text: String| Problem::new(folder, "package", text);
                self.warnings.extend(warnings.into_iter().map(warning));
                install
            }
            Err(error) => {
                let problem = Problem::new(folder, error.code.as_str(), error.message);
                return self.problems.push(problem);
            }
        };
        let id = install.toolset.id.clone();
        let stored: Vec<Tool> = self.state.tools.iter().filter(|tool| tool.bundle == id).cloned().collect();
        let tools = self.tools_of_toolset(&install, &stored);
        let known = self.state.toolsets.iter().find(|toolset| toolset.id == id);
        let mut change = PlannedChange::new(ChangeKind::Toolset, ChangeAction::Create, id.as_str());
        change.version = Some(install.toolset.version.clone());
        change.file = Some(folder.to_owned());
        match known {
            None => change.summary.clone_from(&install.toolset.description),
            Some(known) => {
                let short = |hash: &str| hash.chars().take(12).collect::<String>();
                if known.version != install.toolset.version {
                    change.fields.push(field(
                        "version",
                        known.version.as_str(),
                        install.toolset.version.as_str(),
                    ));
                }
                if known.package != install.toolset.package {
                    change.fields.push(field(
                        "package",
                        short(&known.package),
                        short(&install.toolset.package),
                    ));
                }
                let is_same = change.fields.is_empty() && tools.iter().all(|tool| !tool.action.is_change());
                change.action = if is_same { ChangeAction::Unchanged } else { ChangeAction::Update };
            }
        }
        let is_change = change.action.is_change();
        self.planned.push(change);
        self.planned.extend(tools);
        if is_change {
            let disabled = package.toolset.tools.iter().filter(|entry| !entry.enabled);
            let disabled = disabled.map(|entry| entry.spec.name.clone()).collect();
            self.changes.toolsets.push(ToolsetStep { install, disabled });
            self.packages.push(package.files.clone());
            self.servers_of_toolset(folder, package);
        }
    }

    /// Returns what happens to each tool when the package is installed.
    fn tools_of_toolset(&self, install: &ToolsetInstall, stored: &[Tool]) -> Vec<PlannedChange> {
        let bundle = install.toolset.id.as_str();
        let mut changes = Vec::new();
        for package in &install.tools {
            let Some(tool) = stored.iter().find(|tool| tool.spec.name == package.name) else {
                let mut change = tool_change(ChangeAction::Create, bundle, package);
                change.summary.clone_from(&package.description);
                changes.push(change);
                continue;
            };
            let mut spec = package.clone();
            if let Some(before) = self.state.package_specs.get(&tool.id) {
                keep_settings(&mut spec, &tool.spec, before);
            }
            let mut change = tool_change(ChangeAction::Unchanged, bundle, &spec);
            change.fields = fields(&masked(&without_package(&tool.spec)), &masked(&without_package(&spec)));
            if !change.fields.is_empty() {
                change.action = ChangeAction::Update;
            } else if tool.status == Status::Draft {
                change.fields.push(field("status", tool.status.as_str(), Status::Published.as_str()));
                change.action = ChangeAction::Publish;
            }
            changes.push(change);
        }
        // A package is installed as a whole: tools that it no longer has go.
        let is_gone = |tool: &&Tool| !install.tools.iter().any(|package| package.name == tool.spec.name);
        let gone = stored.iter().filter(is_gone);
        changes.extend(gone.map(|tool| tool_change(ChangeAction::Delete, bundle, &tool.spec)));
        changes
    }

    /// Adds the servers that come with a package and do not exist yet.
    fn servers_of_toolset(&mut self, folder: &str, package: &Package) {
        for declared in &package.toolset.mcp_servers {
            let exists = self.state.mcp_servers.iter().any(|server| server.id == declared.id)
                || self.changes.mcp_servers.iter().any(|server| server.id == declared.id);
            if exists {
                continue;
            }
            let mut change =
                PlannedChange::new(ChangeKind::McpServer, ChangeAction::Create, declared.id.as_str());
            change.file = Some(folder.to_owned());
            self.planned.push(change);
            self.needs_admin = Some("the folder adds MCP servers");
            self.changes.mcp_servers.push(new_server(self.app, self.identity, declared));
        }
    }
}

/// Returns a definition without the hash of its package, which every new version changes.
fn without_package(spec: &ToolSpec) -> ToolSpec {
    let mut spec = spec.clone();
    bind_package(&mut spec, None);
    spec
}
