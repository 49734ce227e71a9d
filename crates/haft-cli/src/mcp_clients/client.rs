//! The known clients: one line for each difference between them.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use crate::environment::Environment;

/// How long goose waits for a response, in seconds.
const GOOSE_TIMEOUT: u32 = 300;

/// An MCP client whose configuration haft can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
    /// Claude Code
    Claude,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// goose
    Goose,
    /// opencode
    Opencode,
    /// VS Code
    Vscode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
}

/// The format of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, possibly with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
    /// YAML in block style.
    Yaml,
}

impl McpClient {
    /// Returns the name in commands.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the name that its users know.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
            Self::Vscode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    /// Returns whether its configuration can name a URL. Claude Desktop starts programs only.
    pub(crate) fn supports_http(self) -> bool {
        self != Self::ClaudeDesktop
    }

    /// Returns whether the folder of its configuration has no other files than its own.
    pub(super) fn has_own_folder(self) -> bool {
        self != Self::Claude
    }

    /// Returns the path of its configuration; `None` if the home folder of the user is unknown.
    pub(super) fn path(self, environment: &Environment) -> Option<PathBuf> {
        let home = Path::new(environment.get("HOME")?);
        let absolute =
            |name| environment.get(name).map(PathBuf::from).filter(|folder: &PathBuf| folder.is_absolute());
        let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        // Where desktop programs keep their settings.
        let desktop =
            if cfg!(target_os = "macos") { home.join("Library/Application Support") } else { config.clone() };
        Some(match self {
            Self::Claude => {
                absolute("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.to_owned()).join(".claude.json")
            }
            Self::ClaudeDesktop => desktop.join("Claude/claude_desktop_config.json"),
            Self::Codex => absolute("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::Goose => config.join("goose/config.yaml"),
            Self::Opencode => config.join("opencode/opencode.json"),
            Self::Vscode => desktop.join("Code/User/mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => config.join("zed/settings.json"),
        })
    }

    pub(super) fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::Goose => Format::Yaml,
            _ => Format::Json,
        }
    }

    /// Returns the name of the object that has the servers.
    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::Goose => "extensions",
            Self::Opencode => "mcp",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            Self::Claude | Self::ClaudeDesktop | Self::Cursor | Self::Gemini | Self::Windsurf => "mcpServers",
        }
    }

    /// Returns the entry of a server.
    pub(crate) fn entry(self, name: &str, endpoint: &Endpoint) -> Value {
        let mut entry = match endpoint {
            Endpoint::Http { url, token } => {
                let mut entry = self.http_entry(url.as_str());
                if let Some(token) = token {
                    let headers = json!({"Authorization": format!("Bearer {}", token.expose())});
                    let key = if self == Self::Codex { "http_headers" } else { "headers" };
                    entry.insert(key.to_owned(), headers);
                }
                entry
            }
            Endpoint::Program { command, args, token } => {
                let mut entry = self.program_entry(command, args);
                if let Some(token) = token {
                    let variables = json!({"HAFT_TOKEN": token.expose()});
                    let key = match self {
                        Self::Goose => "envs",
                        Self::Opencode => "environment",
                        _ => "env",
                    };
                    entry.insert(key.to_owned(), variables);
                }
                entry
            }
        };
        match self {
            Self::Goose => {
                entry.insert("name".to_owned(), json!(name));
                entry.insert("description".to_owned(), json!("Tools of haft"));
                entry.insert("enabled".to_owned(), json!(true));
                entry.insert("timeout".to_owned(), json!(GOOSE_TIMEOUT));
            }
            Self::Opencode => {
                entry.insert("enabled".to_owned(), json!(true));
            }
            _ => {}
        }
        Value::Object(entry)
    }

    fn http_entry(self, url: &str) -> Map<String, Value> {
        object(match self {
            Self::Claude | Self::Vscode => json!({"type": "http", "url": url}),
            Self::Gemini => json!({"httpUrl": url}),
            Self::Goose => json!({"type": "streamable_http", "uri": url}),
            Self::Opencode => json!({"type": "remote", "url": url}),
            Self::Windsurf => json!({"serverUrl": url}),
            Self::ClaudeDesktop | Self::Codex | Self::Cursor | Self::Zed => json!({"url": url}),
        })
    }

    fn program_entry(self, command: &str, args: &[String]) -> Map<String, Value> {
        object(match self {
            Self::Goose => json!({"type": "stdio", "cmd": command, "args": args}),
            Self::Opencode => {
                let all: Vec<&str> =
                    std::iter::once(command).chain(args.iter().map(String::as_str)).collect();
                json!({"type": "local", "command": all})
            }
            Self::Claude | Self::Vscode => json!({"type": "stdio", "command": command, "args": args}),
            _ => json!({"command": command, "args": args}),
        })
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use haft_core::secret::Secret;

    use super::*;

    #[test]
    fn configurations_are_where_the_clients_read_them() {
        let environment = Environment::from([("HOME", "/home/ann")]);
        let path = |client: McpClient| client.path(&environment).unwrap().display().to_string();
        assert_eq!(path(McpClient::Claude), "/home/ann/.claude.json");
        assert_eq!(path(McpClient::Codex), "/home/ann/.codex/config.toml");
        assert_eq!(path(McpClient::Goose), "/home/ann/.config/goose/config.yaml");
        let moved = Environment::from([
            ("HOME", "/home/ann"),
            ("XDG_CONFIG_HOME", "/x"),
            ("CODEX_HOME", "/c"),
            ("CLAUDE_CONFIG_DIR", "relative"),
        ]);
        let path = |client: McpClient| client.path(&moved).unwrap().display().to_string();
        assert_eq!(path(McpClient::Zed), "/x/zed/settings.json");
        assert_eq!(path(McpClient::Codex), "/c/config.toml");
        assert_eq!(path(McpClient::Claude), "/home/ann/.claude.json");
        assert_eq!(McpClient::Cursor.path(&Environment::default()), None);
    }

    #[test]
    fn every_client_gets_the_entry_that_it_reads() {
        let http = Endpoint::Http {
            url: "http://127.0.0.1:18789/mcp".parse().unwrap(),
            token: Some(Secret::new("haft_x".to_owned())),
        };
        let headers = json!({"Authorization": "Bearer haft_x"});
        let url = "http://127.0.0.1:18789/mcp";
        for (client, expected) in [
            (McpClient::Claude, json!({"type": "http", "url": url, "headers": headers})),
            (McpClient::Codex, json!({"url": url, "http_headers": headers})),
            (McpClient::Cursor, json!({"url": url, "headers": headers})),
            (McpClient::Gemini, json!({"httpUrl": url, "headers": headers})),
            (McpClient::Vscode, json!({"type": "http", "url": url, "headers": headers})),
            (McpClient::Windsurf, json!({"serverUrl": url, "headers": headers})),
            (McpClient::Zed, json!({"url": url, "headers": headers})),
            (McpClient::Opencode, json!({"type": "remote", "url": url, "headers": headers, "enabled": true})),
        ] {
            assert_eq!(client.entry("haft", &http), expected, "{client:?}");
        }
        let args = vec!["mcp".to_owned()];
        let program = Endpoint::Program { command: "/bin/haft".to_owned(), args, token: None };
        for (client, expected) in [
            (McpClient::ClaudeDesktop, json!({"command": "/bin/haft", "args": ["mcp"]})),
            (McpClient::Vscode, json!({"type": "stdio", "command": "/bin/haft", "args": ["mcp"]})),
            (McpClient::Opencode, json!({"type": "local", "command": ["/bin/haft", "mcp"], "enabled": true})),
        ] {
            assert_eq!(client.entry("haft", &program), expected, "{client:?}");
        }
    }
}
