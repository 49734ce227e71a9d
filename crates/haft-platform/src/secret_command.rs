//! Parses a command whose output is a secret, from the configuration.

use std::time::Duration;

use haft_core::duration;
use haft_core::secret::ExternalReference;
use haft_executors::secret_sources::SecretCommandSettings;
use serde::Deserialize;
use serde_json::Value;

/// The longest time that a command may run.
const MAX_TIMEOUT: Duration = Duration::from_mins(5);

/// A table `[secrets.commands.NAME]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct CommandTable {
    /// The program and its arguments.
    command: Vec<String>,
    /// The variables of the server's environment that it gets.
    #[serde(default)]
    environment: Vec<String>,
    /// How long it may run.
    timeout: Option<String>,
    /// How long its output is kept.
    cache: Option<String>,
    /// The tenants that may use it.
    tenants: Option<Vec<String>>,
}

/// A command of the configuration, before the variables of its environment are read.
#[derive(Debug, Clone)]
pub struct DeclaredSecretCommand {
    pub name: String,
    /// Its settings, without an environment.
    pub settings: SecretCommandSettings,
    /// The names of the variables that it gets.
    pub variables: Vec<String>,
}

/// Parses a command; the error names the field and the fix.
pub fn declared(name: &str, table: Value) -> Result<DeclaredSecretCommand, String> {
    if !matches!(ExternalReference::parse(&format!("cmd:{name}")), Some(Ok(_))) {
        return Err("the name must have 1 to 128 letters, digits, `_`, `-` and `.`".to_owned());
    }
    let table: CommandTable = serde_json::from_value(table).map_err(|error| error.to_string())?;
    if table.command.first().is_none_or(String::is_empty) {
        return Err("`command` must be a list with a program, e.g. [\"op\", \"read\", \"op://…\"]".to_owned());
    }
    if table.environment.iter().any(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err("`environment` must be a list of names of environment variables".to_owned());
    }
    let mut settings = SecretCommandSettings::new(table.command);
    let second = Duration::from_secs(1);
    if let Some(text) = table.timeout {
        settings.timeout = duration::parse(&text, second).map_err(|error| format!("`timeout`: {error}"))?;
    }
    if settings.timeout.is_zero() || settings.timeout > MAX_TIMEOUT {
        return Err("`timeout` must be more than \"0s\" and at most \"5m\"".to_owned());
    }
    if let Some(text) = table.cache {
        settings.cache = duration::parse_long(&text, second).map_err(|error| format!("`cache`: {error}"))?;
    }
    if let Some(tenants) = table.tenants {
        settings.tenants = tenants;
    }
    Ok(DeclaredSecretCommand { name: name.to_owned(), settings, variables: table.environment })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_a_fixed_list_of_arguments() {
        let table = json!({
            "command": ["op", "read", "op://vault/github/token"], "environment": ["OP_TOKEN"], "timeout": "30s",
            "cache": "1h", "tenants": ["*"],
        });
        let DeclaredSecretCommand { name, settings, variables } = declared("github", table).unwrap();
        assert_eq!((name.as_str(), &variables[..]), ("github", &["OP_TOKEN".to_owned()][..]));
        assert_eq!(settings.command, ["op", "read", "op://vault/github/token"]);
        let times = (settings.timeout, settings.cache);
        assert_eq!(times, (Duration::from_secs(30), Duration::from_hours(1)));
        assert_eq!(settings.tenants, ["*"]);
    }

    #[test]
    fn invalid_commands_name_the_field() {
        for (name, table, expected) in [
            ("a b", json!({"command": ["x"]}), "the name must have"),
            ("a", json!({}), "missing field `command`"),
            ("a", json!({"command": []}), "`command` must be a list with a program"),
            ("a", json!({"command": "op read x"}), "invalid type"),
            ("a", json!({"command": ["x"], "shell": true}), "unknown field `shell`"),
            ("a", json!({"command": ["x"], "timeout": "soon"}), "`timeout`: invalid duration"),
            ("a", json!({"command": ["x"], "timeout": "1h"}), "`timeout` must be more than"),
            ("a", json!({"command": ["x"], "environment": ["A=b"]}), "`environment` must be a list"),
        ] {
            let error = declared(name, table).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
