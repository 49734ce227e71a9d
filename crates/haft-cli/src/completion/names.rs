//! Names from the server, for completion.

use std::collections::HashSet;

use serde_json::Value;

use super::Candidate;
use crate::client::{Client, Request};
use crate::contexts::{Contexts, LOCAL};
use crate::environment::Environment;
use crate::error::CliError;
use crate::server_url::shown;
use crate::view;

/// A kind of name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Agent,
    Pipeline,
    Artifact,
    McpServer,
    Toolset,
    Bundle,
    Workspace,
    Person,
    ServiceAccount,
    Group,
    Token,
    Tenant,
    Secret,
    Webhook,
    Approval,
    Run,
    Call,
    Context,
}

impl Kind {
    /// Returns the kind of name that an argument of a command takes.
    pub(super) fn of(path: &[&str], argument: &str) -> Option<Self> {
        let (group, verb) = match path {
            _ if argument == "context" => return Some(Self::Context),
            [] => return None,
            [group] => (*group, ""),
            [group, verb, ..] => (*group, *verb),
        };
        let by_group = || {
            Some(match group {
                "agent" => Self::Agent,
                "pipeline" => Self::Pipeline,
                "artifact" => Self::Artifact,
                "mcp-server" => Self::McpServer,
                "toolset" => Self::Toolset,
                "bundle" => Self::Bundle,
                "workspace" => Self::Workspace,
                "token" => Self::Token,
                "tenant" => Self::Tenant,
                "secret" => Self::Secret,
                "webhook" => Self::Webhook,
                "approval" => Self::Approval,
                "run" => Self::Run,
                "call" => Self::Call,
                "context" | "logout" => Self::Context,
                _ => return None,
            })
        };
        match argument {
            // New names are not completed; a secret that exists can be set again.
            "id" | "name" | "slug" if matches!(verb, "create" | "add" | "new") => None,
            "id" if (group, verb) == ("toolset", "export") => Some(Self::Bundle),
            "id" | "name" | "slug" | "reference" => by_group(),
            "tools" if group == "mcp-server" => None,
            "tool" | "tools" => Some(Self::Tool),
            "target" if (group, verb) == ("tool", "validate") => Some(Self::Tool),
            "bundle" => Some(Self::Bundle),
            "agent" => Some(Self::Agent),
            "pipeline" => Some(Self::Pipeline),
            "artifact" => Some(Self::Artifact),
            "person" | "responsible" | "members" => Some(Self::Person),
            "owner" if verb == "list" => Some(Self::Person),
            "to" if (group, verb) == ("person", "hand-over") => Some(Self::Person),
            "service_account" | "owner" => Some(Self::ServiceAccount),
            "group" | "groups" => Some(Self::Group),
            "tenant" => Some(Self::Tenant),
            "workspace" => Some(Self::Workspace),
            _ => None,
        }
    }

    /// Returns the route of the list, its key in the response, and the fields with the name and with a short text; `None` if
    /// servers do not know the names.
    fn source(self) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
        Some(match self {
            Self::Tool => ("/api/tools?include_disabled=true", "tools", "name", "description"),
            Self::Agent => ("/api/agents", "agents", "slug", "description"),
            Self::Pipeline => ("/api/pipelines", "pipelines", "slug", "description"),
            Self::Artifact => ("/api/code-artifacts", "artifacts", "slug", "description"),
            Self::McpServer => ("/api/mcp-servers", "mcp_servers", "id", "state.phase"),
            Self::Toolset => ("/api/toolsets", "toolsets", "id", "description"),
            Self::Bundle => ("/api/tools/bundles?include_disabled=true", "bundles", "slug", "description"),
            Self::Workspace => ("/api/workspaces", "workspaces", "name", "modified_at"),
            Self::Person => ("/api/people", "people", "email", "name"),
            Self::ServiceAccount => ("/api/service-accounts", "service_accounts", "name", "description"),
            Self::Group => ("/api/groups", "groups", "name", "description"),
            Self::Token => ("/api/tokens", "tokens", "id", "name"),
            Self::Tenant => ("/api/tenants", "tenants", "id", "name"),
            Self::Secret => ("/api/credentials", "credentials", "name", "category"),
            Self::Webhook => ("/api/webhooks", "webhooks", "id", "url"),
            Self::Approval => ("/api/approvals?status=pending", "approvals", "id", "tool"),
            Self::Run => ("/api/runs", "runs", "id", "agent"),
            Self::Call => ("/api/calls", "calls", "id", "tool"),
            Self::Context => return None,
        })
    }
}

/// The page size of lists that grow with use, whose newest items are offered.
const RECENT: &str = "50";
/// The page size of other lists.
const ALL: &str = "500";

/// Returns the names of a kind; `prefix` is the beginning of the word.
pub(crate) async fn names(kind: Kind, prefix: &str, client: &Client) -> Result<Vec<Candidate>, CliError> {
    let Some((route, key, name, help)) = kind.source() else { return Ok(Vec::new()) };
    let size =
        if matches!(kind, Kind::Run | Kind::Call | Kind::Approval | Kind::Webhook) { RECENT } else { ALL };
    let data = client.data(Request::get(route).query("page_size", size)).await?;
    let list = view::list(&data, key);
    let word = |item: &Value| match kind {
        Kind::Tool => tool(item, prefix),
        Kind::Person | Kind::ServiceAccount | Kind::Group => one_word(item, name),
        _ => view::text(item, name),
    };
    let mut seen = HashSet::new();
    let found = list
        .iter()
        .map(|item| Candidate { word: word(item), help: view::first_line(&view::text(item, help), 60) });
    // Tools with the same name are offered once; the bundle distinguishes them.
    Ok(found.filter(|one| !one.word.is_empty() && seen.insert(one.word.clone())).collect())
}

/// Returns the names of the stored logins, and the one of the home folder.
pub(crate) fn context_names(environment: &Environment) -> Vec<Candidate> {
    let contexts = Contexts::load(environment);
    let stored = contexts
        .iter()
        .flat_map(Contexts::all)
        .map(|context| Candidate { word: context.name.to_string(), help: shown(&context.server).to_owned() });
    let local = Candidate { word: LOCAL.to_owned(), help: "the home folder of this machine".to_owned() };
    stored.chain([local]).collect()
}

/// Returns the text of a field, or the id if it is missing or is several words.
fn one_word(item: &Value, field: &str) -> String {
    let text = view::text(item, field);
    if text.is_empty() || text.contains(char::is_whitespace) { view::text(item, "id") } else { text }
}

/// Returns the name of a tool, with its bundle if the prefix contains one.
fn tool(item: &Value, prefix: &str) -> String {
    let (bundle, name) = (view::text(item, "bundle"), view::text(item, "name"));
    if prefix.contains(':') { format!("{bundle}:{name}") } else { name }
}
