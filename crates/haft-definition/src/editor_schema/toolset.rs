//! The schema of the manifest of a toolset.

use serde_json::{Value, json};

use super::object::{Object, flag, map, shared, text, text_map, texts, with_definitions, words};
use super::tool;

pub(super) fn schema() -> Value {
    let servers = json!({"anyOf": [
        {"type": "array", "items": shared("mcpServer")},
        {"type": "object", "additionalProperties": shared("mcpServer")},
    ]});
    let manifest = Object::default()
        .key("manifest_version", json!({"enum": ["1", 1]}), "The version of this format: `\"1\"`")
        .key("id", text(), "The id of the toolset, and the name of its bundle")
        .key("name", text(), "The name that people see")
        .key("version", text(), "Three numbers, such as `1.0.0`")
        .key("description", text(), "What its tools are for")
        .key("dependencies", texts(), "The Python packages that its tools need")
        .key("tools", json!({"type": "array", "items": shared("tool")}), "The tools")
        .key("mcp_servers", servers, "MCP servers that belong to the toolset")
        .needs(&["manifest_version"])
        .needs(&["id"])
        .needs(&["version"])
        .needs(&["tools", "mcp_servers"]);
    let mut definitions = tool::definitions();
    definitions.extend([("tool", entry()), ("mcpServer", server()), ("ownRenderer", renderer())]);
    with_definitions(manifest.closed(), definitions)
}

/// One entry of `tools`: a Python function, or any other tool.
fn entry() -> Value {
    let permissions = Object::default().keys(&["network", "sandbox"], flag(), "").key(
        "policy",
        words(&["allow", "deny", "elevated"]),
        "Who may call the tool",
    );
    let example = Object::default()
        .key("name", text(), "The name of the example")
        .key("description", text(), "What it shows")
        .key("args", map(), "The arguments")
        .key("expect", json!({}), "The value that it returns")
        .needs(&["name"]);
    tool::keys()
        .key("id", text(), "The name by which the tool is called")
        .key("entrypoint", text(), "`tools.MODULE:FUNCTION`")
        .key("permissions", permissions.closed(), "What the tool may do")
        .key("renderer", json!({"anyOf": [text(), shared("ownRenderer")]}), "How the value is shown")
        .key(
            "renderers",
            json!({"type": "array", "items": shared("ownRenderer")}),
            "Several of them, with priorities",
        )
        .key("examples", json!({"type": "array", "items": example.closed()}), "Saved calls")
        .closed()
}

/// A renderer with its settings beside its type, or in `config`.
fn renderer() -> Value {
    Object::default()
        .keys(&["type", "renderer"], text(), "How the value is shown, such as `html`")
        .key("priority", json!({"type": "integer"}), "The highest one is used first")
        .key("config", map(), "Settings of the renderer")
        .needs(&["type", "renderer"])
        .open()
}

fn server() -> Value {
    let oauth = Object::default()
        .keys(&["client_id", "client_secret", "private_key"], text(), "")
        .key("scopes", texts(), "OAuth scopes")
        .key("grant", words(&["authorization_code", "client_credentials"]), "The OAuth grant");
    Object::default()
        .key("id", text(), "The id of the server")
        .keys(&["type", "transport"], text(), "")
        .key("command", text(), "The program")
        .key(
            "args",
            json!({"type": "array", "items": {"type": ["string", "number", "boolean"]}}),
            "Its arguments",
        )
        .key("env", text_map(), "Its environment variables")
        .key("cwd", text(), "Its working folder")
        .keys(&["network", "sandbox", "workspace"], flag(), "")
        .key("url", text(), "The URL of a remote server")
        .key("headers", text_map(), "Headers of every request")
        .key("oauth", oauth.closed(), "How haft logs in")
        .keys(&["enabled", "auto_enabled"], flag(), "Whether haft connects to it")
        .key("policy", words(&["allow", "deny", "elevated"]), "Who may call its tools")
        .key("prefix", text(), "A prefix for the names of its tools")
        .closed()
}
