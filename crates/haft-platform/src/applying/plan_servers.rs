//! Plans MCP servers and policy rules.

use std::collections::BTreeMap;

use haft_core::bundle::BundleKind;
use haft_core::mcp::{McpServer, Transport};
use haft_core::policy::{PolicyRule, PolicyRules, PolicyScope};
use haft_core::problem::Problem;
use haft_core::redact;
use haft_core::secret::MASK;
use haft_definition::policy as definition;
use serde_json::{Map, Value};

use super::desired::{DesiredPolicy, in_file};
use super::documents::DesiredServer;
use super::plan::{ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planner::Planner;
use crate::mcp_definition::NewServer;
use crate::mcp_servers::{missing_network, plain_credentials};
use crate::policy::{self, LoadPolicyError};

const POLICY_FILE: &str = "policy.yaml";

impl Planner<'_> {
    /// Plans the servers of the folder. `declared` are those that come with its toolsets.
    pub(super) fn servers(&mut self, servers: Option<Vec<DesiredServer>>, declared: &[String]) {
        let Some(servers) = servers else { return };
        let ids: Vec<String> = servers.iter().map(|server| server.id.clone()).collect();
        for server in servers {
            if let Err(message) = self.server(&server) {
                let mut problem =
                    Problem::new(format!("mcp_servers.{}", server.id), "invalid_server", message);
                problem.line = server.line;
                self.problems.push(in_file(&server.file, &problem));
            }
        }
        let state = self.state;
        let of_toolset = |id: &str| {
            declared.iter().any(|known| known == id)
                || state.toolsets.iter().any(|toolset| toolset.mcp_servers.iter().any(|known| known == id))
        };
        let others = state.mcp_servers.iter().filter(|server| !ids.iter().any(|id| server.id.as_str() == id));
        for server in others.filter(|server| server.declared_in.is_none() && !of_toolset(server.id.as_str()))
        {
            let action = if self.options.prune { ChangeAction::Delete } else { ChangeAction::Unmanaged };
            if self.options.prune {
                self.needs_admin = Some("the folder deletes MCP servers");
                self.changes.deleted_mcp_servers.push(server.id.clone());
            }
            self.planned.push(PlannedChange::new(ChangeKind::McpServer, action, server.id.as_str()));
        }
    }

    fn server(&mut self, desired: &DesiredServer) -> Result<(), String> {
        let state = self.state;
        let stored = state.mcp_servers.iter().find(|server| server.id.as_str() == desired.id);
        if let Some(file) = stored.and_then(|stored| stored.declared_in.as_ref()) {
            return Err(format!("the server is declared in `{file}`; change it there"));
        }
        let mut body = desired.body.clone();
        if let Some(stored) = stored {
            unmask(&mut body, &stored.transport);
        }
        let new: NewServer = serde_json::from_value(body).map_err(|error| error.to_string())?;
        let now = self.app.now();
        let mut server = new.parse(self.identity.tenant.clone(), now)?;
        self.reject_taken_bundle(&server)?;
        let mut change = PlannedChange::new(ChangeKind::McpServer, ChangeAction::Create, server.id.as_str());
        change.file = Some(desired.file.clone());
        if let Some(stored) = stored {
            (server.created_at, server.modified_at) = (stored.created_at, stored.modified_at);
            server.reviewed_at = stored.reviewed_at;
            let is_same = server == *stored;
            server.modified_at = now;
            change.fields = fields(&shown(stored), &shown(&server));
            if !is_same && change.fields.is_empty() {
                change.fields.push(field("secrets", MASK, MASK));
            }
            change.action = if is_same { ChangeAction::Unchanged } else { ChangeAction::Update };
        }
        if let Some(warning) = missing_network(&server) {
            self.warnings.push(Problem::new(&desired.file, "network_disabled", warning));
        }
        for warning in plain_credentials(&server) {
            self.warnings.push(Problem::new(
                &desired.file,
                "plain_credential",
                format!("`{}`: {warning}", server.id),
            ));
        }
        // What a toolset declares, the file decides.
        self.changes.mcp_servers.retain(|other| other.id != server.id);
        self.planned.retain(|other| other.kind != ChangeKind::McpServer || other.name != server.id.as_str());
        if change.action.is_change() {
            self.needs_admin = Some("the folder changes MCP servers");
            self.changes.mcp_servers.push(server);
        }
        self.planned.push(change);
        Ok(())
    }

    /// The bundle of the server's tools has its id.
    fn reject_taken_bundle(&self, server: &McpServer) -> Result<(), String> {
        let snapshot = self.app.registry().snapshot();
        let mut bundles = snapshot.bundles(&self.identity.tenant);
        let is_stored = bundles.any(|bundle| bundle.slug == server.id && bundle.kind != BundleKind::Mcp);
        let is_planned = self.planned.iter().any(|change| {
            matches!(change.kind, ChangeKind::Bundle | ChangeKind::Toolset)
                && change.name == server.id.as_str()
        });
        if is_stored || is_planned {
            return Err(format!("bundle `{}` already exists; choose another id", server.id));
        }
        Ok(())
    }

    /// Plans the policy rules of the tenant, which the file replaces as a whole.
    pub(super) async fn policy(&mut self, desired: DesiredPolicy) {
        let DesiredPolicy { rules, text } = desired;
        let scope = PolicyScope::Tenant(self.identity.tenant.clone());
        match policy::check(&scope, &rules).await {
            Ok(()) => {}
            Err(LoadPolicyError::Invalid(mut error)) => {
                definition::locate(&text, &mut error.problems);
                let problems = error.problems.iter().map(|problem| in_file(POLICY_FILE, problem));
                return self.problems.extend(problems);
            }
            Err(error) => {
                return self.problems.push(Problem::new(POLICY_FILE, "not_checked", error.to_string()));
            }
        }
        let before = &self.state.policy;
        let mut change = PlannedChange::new(ChangeKind::Policy, ChangeAction::Unchanged, "policy");
        change.file = Some(POLICY_FILE.to_owned());
        if *before != rules {
            change.fields = fields(&by_name(before), &by_name(&rules));
            if change.fields.is_empty() {
                let names = |rules: &PolicyRules| -> Vec<String> {
                    rules.rules.iter().map(|rule| rule.name.clone()).collect()
                };
                change.fields.push(field("order", names(before), names(&rules)));
            }
            let is_new = before.rules.is_empty();
            change.action = if is_new { ChangeAction::Create } else { ChangeAction::Update };
            self.needs_admin = Some("the folder changes policy rules");
            self.changes.policy = Some(rules);
        }
        self.planned.push(change);
    }
}

/// Returns rules as an object by name, each as one value.
fn by_name(rules: &PolicyRules) -> Value {
    let entry = |rule: &PolicyRule| {
        let mut value = serde_json::to_value(rule).unwrap_or_default();
        if let Value::Object(map) = &mut value {
            map.remove("name");
        }
        (rule.name.clone(), value)
    };
    Value::Object(rules.rules.iter().map(entry).collect::<Map<String, Value>>())
}

/// Returns a server as JSON without secrets and times.
fn shown(server: &McpServer) -> Value {
    let transport = redact::redact_transport(&server.transport).transport;
    let mut value = serde_json::to_value(McpServer { transport, ..server.clone() }).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        for key in ["created_at", "modified_at", "reviewed_at", "tenant", "id", "declared_in"] {
            map.remove(key);
        }
    }
    value
}

/// Replaces `***` by the stored value of the same field, if the server is the same program or address.
fn unmask(body: &mut Value, stored: &Transport) {
    let same = |key: &str, value: &str| body.get(key).and_then(Value::as_str) == Some(value);
    let (key, values): (&str, &BTreeMap<String, String>) = match stored {
        Transport::Stdio(stdio) if same("command", &stdio.command) => ("env", &stdio.env),
        Transport::Http(http) if same("url", &http.url) => ("headers", &http.headers),
        Transport::Stdio(_) | Transport::Http(_) => return,
    };
    let Some(Value::Object(written)) = body.get_mut(key) else { return };
    for (name, value) in written {
        if value.as_str() == Some(MASK)
            && let Some(stored) = values.get(name)
        {
            *value = Value::from(stored.as_str());
        }
    }
}
