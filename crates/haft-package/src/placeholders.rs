//! Replaces literal secrets by references such as `${API_KEY}`, for exports.

use std::collections::BTreeSet;

use haft_core::mcp::Transport;
use haft_core::redact::{self, redact_transport};
use haft_core::secret::MASK;
use haft_core::spec::ToolSpec;
use serde_json::Value;

use crate::toolset::{DeclaredServer, Toolset};

/// Replaces every literal secret of a toolset by a reference; returns the names that the importer has to provide.
pub fn without_secrets(toolset: &mut Toolset) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for tool in &mut toolset.tools {
        replace_in_tool(&mut tool.spec, &mut names);
    }
    for server in &mut toolset.mcp_servers {
        replace_in_server(server, &mut names);
    }
    names
}

fn replace_in_tool(spec: &mut ToolSpec, names: &mut BTreeSet<String>) {
    if !redact::has_literal_secret(spec) {
        return;
    }
    let masked = redact::masked(spec);
    let Ok(mut value) = serde_json::to_value(&masked.implementation) else { return };
    replace(&mut value, &variable(&[spec.name.as_str()]), names);
    match serde_json::from_value(value) {
        Ok(implementation) => spec.implementation = implementation,
        // The masked form is always safe to share.
        Err(_) => *spec = masked,
    }
}

/// Replaces masks; the name of the variable is the path of the value.
fn replace(value: &mut Value, path: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.contains(MASK) => {
            *text = text.replace(MASK, &format!("${{{path}}}"));
            names.insert(path.to_owned());
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                replace(item, &variable(&[path, &index.to_string()]), names);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                replace(item, &variable(&[path, key]), names);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replace_in_server(server: &mut DeclaredServer, names: &mut BTreeSet<String>) {
    let redacted = redact_transport(&server.transport).transport;
    let mut put = |text: &mut String, name: String| {
        if text.contains(MASK) {
            *text = text.replace(MASK, &format!("${{{name}}}"));
            names.insert(name);
        }
    };
    let id = server.id.as_str();
    server.transport = match redacted {
        Transport::Stdio(mut stdio) => {
            // The program expects the variable under this name, so the secret has the same.
            stdio.env.iter_mut().for_each(|(key, value)| put(value, variable(&[key])));
            for (index, text) in stdio.args.iter_mut().enumerate() {
                put(text, variable(&[id, "arg", &index.to_string()]));
            }
            Transport::Stdio(stdio)
        }
        Transport::Http(mut http) => {
            http.headers.iter_mut().for_each(|(key, value)| put(value, variable(&[id, key])));
            put(&mut http.url, variable(&[id, "url"]));
            Transport::Http(http)
        }
    };
}

/// Returns a name of a variable: `MY_TOOL_API_KEY` for `my-tool` and `api_key`.
fn variable(parts: &[&str]) -> String {
    let mut name = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if !name.is_empty() {
            name.push('_');
        }
        name.extend(
            part.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }),
        );
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use haft_core::implementation::{Http, Implementation};
    use haft_core::mcp::{Stdio, StreamableHttp};
    use haft_core::name::{BundleSlug, ToolName};

    #[test]
    fn literal_secrets_become_references() {
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let mut toolset = Toolset::new(BundleSlug::new("x").unwrap());
        let mut http = Http::default();
        http.request.url = "https://api.test/".to_owned();
        http.request.headers = map("Authorization", "Bearer sk-very-secret-token");
        let name = ToolName::new("get-it").unwrap();
        toolset.tools.push(ToolSpec::new(name, Implementation::Http(Box::new(http))).into());
        let stdio = Stdio { command: "npx".to_owned(), env: map("API_KEY", "abc"), ..Default::default() };
        let remote = StreamableHttp {
            url: "https://x.test/mcp".to_owned(),
            headers: map("X-Token", "${KEEP}"),
            oauth: None,
        };
        for (id, transport) in
            [("local", Transport::Stdio(stdio)), ("remote", Transport::Http(remote.clone()))]
        {
            toolset.mcp_servers.push(DeclaredServer::new(BundleSlug::new(id).unwrap(), transport));
        }
        let names = without_secrets(&mut toolset);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["API_KEY", "GET_IT_HEADERS_AUTHORIZATION"]);
        let text = crate::write::manifest(&toolset);
        assert!(!text.contains("sk-very-secret-token") && !text.contains("abc"), "{text}");
        assert!(text.contains("API_KEY: ${API_KEY}"), "{text}");
        assert_eq!(toolset.mcp_servers[1].transport, Transport::Http(remote));
    }
}
