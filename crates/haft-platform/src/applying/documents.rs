//! The documents of a folder that are not definitions of tools: `bundle.yaml`, `mcp-servers.yaml`, `mcp.json`, agents,
//! pipelines and artifacts.

use haft_core::problem::Problem;
use haft_core::tool::Status;
use haft_definition::agent;
use haft_definition::dialect::{DocumentLimits, YamlDocument};
use haft_import::mcp_client_config;
use serde_json::{Map, Value};

use super::desired_resource::{DesiredAgent, DesiredResource};

const LIMITS: DocumentLimits = DocumentLimits { bytes: 1 << 20, values: 50_000 };
/// The keys under which the servers may be.
const SERVER_KEYS: [&str; 3] = ["mcp_servers", "mcpServers", "servers"];

/// What `bundle.yaml` says; what it does not say stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WrittenBundle {
    pub(super) display_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) enabled: Option<bool>,
    /// A home folder keeps deleted bundles for a while.
    pub(super) is_deleted: bool,
}

/// An MCP server, before `***` is replaced and its fields are checked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DesiredServer {
    pub(super) id: String,
    pub(super) file: String,
    pub(super) line: Option<u32>,
    /// The request body that adds it.
    pub(super) body: Value,
}

/// Returns the name of a file of agents, pipelines or artifacts without its extension.
pub(super) fn definition_stem(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    ["yaml", "yml", "json"].contains(&extension).then_some(stem)
}

/// Reads a file of agents; each comes with its warnings.
pub(super) fn agents(
    file: &str,
    text: &str,
    stem: &str,
) -> Result<Vec<(DesiredAgent, Vec<Problem>)>, Vec<Problem>> {
    let read = agent::read(text, stem)?;
    // A file with several agents says nothing about their states.
    let (enabled, status) = if read.len() == 1 { agent_state(text)? } else { (None, None) };
    let desired = |agent: agent::ReadAgent| {
        let (definition, file) = (agent.definition, file.to_owned());
        (DesiredResource { file, definition, enabled, status }, agent.warnings)
    };
    Ok(read.into_iter().map(desired).collect())
}

/// Reads the state of an agent, which is not part of its definition.
fn agent_state(text: &str) -> Result<(Option<bool>, Option<Status>), Vec<Problem>> {
    // The reader of definitions has checked the syntax; streams of documents have no state.
    let Ok(mut document) = YamlDocument::parse(text, LIMITS) else { return Ok((None, None)) };
    let Value::Object(map) = document.take_value() else { return Ok((None, None)) };
    let mut problems = Vec::new();
    let enabled = match map.get("enabled") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(enabled)) => Some(*enabled),
        Some(_) => {
            problems.push(Problem::new("enabled", "wrong_type", "expected `true` or `false`"));
            None
        }
    };
    let status = match map.get("status") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let status = value.as_str().and_then(Status::parse);
            if status.is_none() {
                let message = "expected `draft`, `published`, `deprecated` or `disabled`";
                problems.push(Problem::new("status", "invalid_value", message));
            }
            status
        }
    };
    document.locate(&mut problems);
    if problems.is_empty() { Ok((enabled, status)) } else { Err(problems) }
}

/// Reads `bundle.yaml`.
pub(super) fn bundle(text: &str) -> Result<WrittenBundle, Vec<Problem>> {
    if text.trim().is_empty() {
        return Ok(WrittenBundle::default());
    }
    let mut document = YamlDocument::parse(text, LIMITS).map_err(|problem| vec![problem])?;
    let Value::Object(mut map) = document.take_value() else {
        return Err(vec![Problem::new("", "wrong_type", "expected a map of keys such as `description`")]);
    };
    let mut problems = Vec::new();
    let written = WrittenBundle {
        display_name: take_text(&mut map, "display_name", &mut problems),
        description: take_text(&mut map, "description", &mut problems),
        enabled: match map.remove("enabled") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(enabled)) => Some(enabled),
            Some(_) => {
                problems.push(Problem::new("enabled", "wrong_type", "expected `true` or `false`"));
                None
            }
        },
        is_deleted: map.get("soft_deleted_at").is_some_and(|at| !at.is_null()),
    };
    document.locate(&mut problems);
    if problems.is_empty() { Ok(written) } else { Err(problems) }
}

fn take_text(map: &mut Map<String, Value>, key: &str, problems: &mut Vec<Problem>) -> Option<String> {
    match map.remove(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(_) => {
            problems.push(Problem::new(key, "wrong_type", "expected a text"));
            None
        }
    }
}

/// Reads `mcp-servers.yaml`: a map of ids to servers, with the fields of `POST /mcp-servers`.
pub(super) fn servers(file: &str, text: &str) -> Result<Vec<DesiredServer>, Vec<Problem>> {
    let mut document = YamlDocument::parse(text, LIMITS).map_err(|problem| vec![problem])?;
    let mut value = document.take_value();
    let found = SERVER_KEYS.iter().find_map(|key| Some((*key, value.get_mut(key)?.take())));
    let (key, servers) = match found {
        Some((key, Value::Object(servers))) => (key, servers),
        Some((key, Value::Null)) => (key, Map::new()),
        _ => {
            let message = "expected `mcp_servers`, a map of ids to servers";
            return Err(vec![Problem::new("mcp_servers", "missing_field", message)]);
        }
    };
    let mut problems = Vec::new();
    let mut all = Vec::new();
    for (id, body) in servers {
        let field = format!("{key}.{id}");
        let Value::Object(mut body) = body else {
            problems.push(Problem::new(field, "wrong_type", "expected a map with `command` or `url`"));
            continue;
        };
        let mut place = [Problem::new(field, "", "")];
        document.locate(&mut place);
        body.insert("id".to_owned(), Value::from(id.clone()));
        let line = place.first().and_then(|problem| problem.line);
        all.push(DesiredServer { id, file: file.to_owned(), line, body: Value::Object(body) });
    }
    document.locate(&mut problems);
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

/// Reads the configuration of another MCP client.
pub(super) fn client_servers(file: &str, text: &str) -> Result<Vec<DesiredServer>, Vec<Problem>> {
    let invalid = |message: String| vec![Problem::new("", "invalid_document", message)];
    let read = mcp_client_config::read(text, false).map_err(|error| invalid(error.to_string()))?;
    let mut problems = Vec::new();
    let mut all = Vec::new();
    for server in read {
        match server.body {
            Ok(body) => {
                let id = body.get("id").and_then(Value::as_str).unwrap_or(&server.name).to_owned();
                all.push(DesiredServer { id, file: file.to_owned(), line: None, body });
            }
            Err(error) => {
                problems.push(Problem::new(server.name, "invalid_server", error.to_string()));
            }
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}
