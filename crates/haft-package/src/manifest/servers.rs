//! Reads `mcp_servers`: a list, or a map from ids to servers as MCP clients have it.

use std::collections::{BTreeMap, HashSet};

use haft_core::mcp::{OAuthClient, Stdio, StreamableHttp, Transport};
use haft_core::name::BundleSlug;
use haft_core::problem::excerpt;
use haft_core::redact::redact_transport;
use haft_core::spec::Policy;
use haft_definition::dialect::{Fields, describe, item_path, join};
use serde_json::Value;

use crate::toolset::DeclaredServer;

/// The maximum number of servers.
const MAX_SERVERS: usize = 50;

/// Takes the servers.
pub(super) fn read(fields: &mut Fields<'_>) -> Vec<DeclaredServer> {
    let report = fields.report();
    let entries = entries(fields);
    if entries.len() > MAX_SERVERS {
        let message = format!("has {} servers; the limit is {MAX_SERVERS}", entries.len());
        fields.error("mcp_servers", "too_large", message);
        return Vec::new();
    }
    let mut servers = Vec::new();
    let mut ids = HashSet::new();
    for (path, name, item) in entries {
        let Value::Object(mut map) = item else {
            report.error(path, "wrong_type", format!("expected a map, found {}", describe(&item)));
            continue;
        };
        if let Some(name) = name {
            map.entry("id").or_insert(Value::String(name));
        }
        let server = server(Fields::new(path.as_str(), map, report));
        if let Some(server) = server {
            if !ids.insert(server.id.clone()) {
                let message = format!("duplicate MCP server `{}`; rename or remove one of them", server.id);
                report.error(join(&path, "id"), "duplicate_server", message);
            }
            servers.push(server);
        }
    }
    servers
}

/// Returns every entry with its path, and its key if it is an entry of a map.
fn entries(fields: &mut Fields<'_>) -> Vec<(String, Option<String>, Value)> {
    let path = |fields: &Fields<'_>| fields.path("mcp_servers");
    match fields.value("mcp_servers") {
        None => Vec::new(),
        Some(Value::Array(items)) => {
            let path = path(fields);
            items.into_iter().enumerate().map(|(index, item)| (item_path(&path, index), None, item)).collect()
        }
        Some(Value::Object(map)) => {
            let path = path(fields);
            map.into_iter().map(|(key, item)| (join(&path, &excerpt(&key, 60)), Some(key), item)).collect()
        }
        Some(other) => {
            let message = format!("expected a list of servers, found {}", describe(&other));
            fields.error("mcp_servers", "wrong_type", message);
            Vec::new()
        }
    }
}

fn server(mut fields: Fields<'_>) -> Option<DeclaredServer> {
    let id = fields.required_text("id", "the id of the server, such as `files`").and_then(|text| {
        let id = BundleSlug::new(&text).map_err(|error| {
            fields.error("id", "invalid_name", error.to_string().replacen("bundle name", "server id", 1));
        });
        id.ok()
    });
    let kind = fields.alias(&["type", "transport"]).and_then(|key| fields.text(key));
    if kind.as_deref() == Some("sse") {
        let message = "the SSE transport is unsupported; use the streamable HTTP URL of the server";
        fields.error("type", "unsupported_transport", message);
    }
    let transport = transport(&mut fields);
    let enabled = fields.alias(&["enabled", "auto_enabled"]).and_then(|key| fields.flag(key)).unwrap_or(true);
    let policies = [("allow", Policy::Allow), ("deny", Policy::Deny), ("elevated", Policy::Elevated)];
    let policy = fields.choice("policy", &policies).unwrap_or_default();
    let prefix = fields.text("prefix").unwrap_or_default();
    if !prefix.is_empty() && BundleSlug::new(&prefix).is_err() {
        fields.error("prefix", "invalid_value", "use letters, digits, `-` and `_`");
    }
    let transport = transport?;
    warn_of_secrets(&fields, &transport);
    Some(DeclaredServer { id: id?, transport, enabled, policy, prefix })
}

fn transport(fields: &mut Fields<'_>) -> Option<Transport> {
    let (is_program, is_url) = (fields.has("command"), fields.has("url"));
    let command = fields.text("command");
    let url = fields.text("url").map(reference);
    if is_program == is_url {
        let message = if is_program {
            "expected either `command` or `url`, not both"
        } else {
            "missing required field; expected `command` with a program, or `url`"
        };
        fields.error("command", "missing_field", message);
        drop(fields.rest());
        return None;
    }
    if is_program { stdio(fields, command) } else { http(fields, url) }
}

fn stdio(fields: &mut Fields<'_>, command: Option<String>) -> Option<Transport> {
    let args = fields.scalar_texts("args").unwrap_or_default().into_iter().map(reference).collect();
    let env = references(fields.text_map("env"));
    for name in env.keys().filter(|name| !is_variable(name)) {
        let path = join("env", &excerpt(name, 60));
        let message = "invalid name of an environment variable: use letters, digits and `_`";
        fields.error(&path, "invalid_value", message);
    }
    let cwd = fields.text("cwd");
    let network = fields.flag("network").unwrap_or_default();
    let sandbox = fields.flag("sandbox").unwrap_or_default();
    let workspace = fields.flag("workspace").unwrap_or_default();
    if workspace && cwd.is_some() {
        fields.error("workspace", "invalid_value", "set either `cwd` or `workspace`, not both");
    }
    let command = command?;
    if command.trim().is_empty() {
        fields.error("command", "missing_field", "is empty; expected the name of a program");
        return None;
    }
    Some(Transport::Stdio(Stdio { command, args, env, cwd, network, sandbox, workspace }))
}

fn http(fields: &mut Fields<'_>, url: Option<String>) -> Option<Transport> {
    let headers = references(fields.text_map("headers"));
    let oauth = fields.object("oauth").and_then(|map| {
        let client = serde_json::from_value::<OAuthClient>(Value::Object(map));
        client.map_err(|error| fields.error("oauth", "invalid_value", excerpt(&error.to_string(), 120))).ok()
    });
    let url = url?;
    if !["http://", "https://", "${"].iter().any(|start| url.starts_with(start)) {
        fields.error("url", "invalid_url", "expected a URL that starts with `http://` or `https://`");
    }
    Some(Transport::Http(StreamableHttp { url, headers, oauth }))
}

/// Rewrites `${env:NAME}`, as other clients write it, to `${NAME}`.
fn reference(text: String) -> String {
    if text.contains("${env:") { text.replace("${env:", "${") } else { text }
}

fn references(map: Option<BTreeMap<String, String>>) -> BTreeMap<String, String> {
    map.unwrap_or_default().into_iter().map(|(name, value)| (name, reference(value))).collect()
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A package is shared, so a credential in it is shared too.
fn warn_of_secrets(fields: &Fields<'_>, transport: &Transport) {
    let redacted = redact_transport(transport);
    let mut places = redacted.suspicious;
    if places.is_empty() && !redacted.literals.is_empty() {
        let key = if matches!(transport, Transport::Stdio(_)) { "env" } else { "headers" };
        places.push(key.to_owned());
    }
    for place in places {
        let message = "seems to contain a credential; write a reference such as `${API_KEY}` instead";
        fields.warn(&place, "literal_secret", message);
    }
}
