//! Reads `haft.toml` key by key, so that every error has a line number.

use std::path::Path;

use haft_server::settings::{SettingSource, declared_issuer, declared_mcp_server, declared_secret_command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, ConfigSource};
use super::keys::{KEYS, Key};
use super::resolved::Resolved;
use super::value::{InvalidValue, Value};

/// The section of sign-on, and its list of issuers, each a table; no other key is a list of tables.
const SIGN_ON: &str = "sign_on";
const ISSUERS: &str = "sign_on.issuers";
/// The most issuers.
const MAX_ISSUERS: usize = 20;
/// The table of MCP servers, and that of commands whose output is a secret; no other key is a table of tables.
const SERVERS: &str = "mcp.servers";
const COMMANDS: &str = "secrets.commands";

/// The largest configuration file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Applies a file; a missing file is ignored.
pub(super) fn apply(path: &Path, to: &mut Resolved) -> Result<(), ConfigError> {
    let read = |source| ConfigError::Read { path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(read(error)),
        Ok(metadata) if metadata.len() > MAX_BYTES => {
            return Err(read(std::io::Error::other("larger than 1 MiB")));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(read)?;
    apply_text(path, &text, to)
}

/// Applies the text of a file.
pub(super) fn apply_text(path: &Path, text: &str, to: &mut Resolved) -> Result<(), ConfigError> {
    let source = |offset: usize| {
        let before = text.get(..offset).unwrap_or(text);
        ConfigSource::File { path: path.to_owned(), line: before.matches('\n').count() + 1 }
    };
    let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        at: source(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    apply_table("", document.get_ref(), to, &source)
}

fn apply_table(
    section: &str,
    table: &DeTable<'_>,
    to: &mut Resolved,
    source: &dyn Fn(usize) -> ConfigSource,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let full = if section.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{section}.{}", name.get_ref())
        };
        let is_section = full == SIGN_ON
            || KEYS.iter().any(|key| key.full.strip_prefix(&full).is_some_and(|rest| rest.starts_with('.')));
        if let (true, DeValue::Table(inner)) = (is_section, value.get_ref()) {
            apply_table(&full, inner, to, source)?;
            continue;
        }
        if let (SERVERS, DeValue::Table(servers)) = (full.as_str(), value.get_ref()) {
            declare_servers(servers, to, source)?;
            continue;
        }
        if let (COMMANDS, DeValue::Table(commands)) = (full.as_str(), value.get_ref()) {
            declare_commands(commands, to, source)?;
            continue;
        }
        if let (ISSUERS, DeValue::Array(issuers)) = (full.as_str(), value.get_ref()) {
            declare_issuers(issuers, to, source)?;
            continue;
        }
        let at = source(name.span().start);
        let Some(key) = KEYS.iter().find(|key| key.full == full) else {
            return Err(ConfigError::UnknownKey { at, nearest: nearest(&full), key: full });
        };
        to.set(key, read(value), SettingSource::File).map_err(|reason| ConfigError::Value {
            at,
            key: key.full,
            reason,
        })?;
    }
    Ok(())
}

/// Adds the MCP servers, each a table of its own.
fn declare_servers(
    servers: &DeTable<'_>,
    to: &mut Resolved,
    source: &dyn Fn(usize) -> ConfigSource,
) -> Result<(), ConfigError> {
    for (name, definition) in servers {
        let id = name.get_ref();
        let server = declared_mcp_server(id, to_json(definition)).map_err(|error| ConfigError::Value {
            at: source(name.span().start),
            key: SERVERS,
            reason: InvalidValue(format!("has an invalid server `{id}`: {error}")),
        })?;
        to.mcp_servers.push(server);
    }
    Ok(())
}

/// Adds the commands whose output is a secret, each a table of its own.
fn declare_commands(
    commands: &DeTable<'_>,
    to: &mut Resolved,
    source: &dyn Fn(usize) -> ConfigSource,
) -> Result<(), ConfigError> {
    for (name, table) in commands {
        let command = name.get_ref();
        let declared =
            declared_secret_command(command, to_json(table)).map_err(|error| ConfigError::Value {
                at: source(name.span().start),
                key: COMMANDS,
                reason: InvalidValue(format!("has an invalid command `{command}`: {error}")),
            })?;
        to.secret_commands.push(declared);
    }
    Ok(())
}

/// Adds the issuers, each a table of its own.
fn declare_issuers(
    issuers: &[Spanned<DeValue<'_>>],
    to: &mut Resolved,
    source: &dyn Fn(usize) -> ConfigSource,
) -> Result<(), ConfigError> {
    for (index, table) in issuers.iter().enumerate() {
        let invalid = |error: String| ConfigError::Value {
            at: source(table.span().start),
            key: ISSUERS,
            reason: InvalidValue(format!("has an invalid issuer: {error}")),
        };
        let issuer = declared_issuer(to_json(table)).map_err(invalid)?;
        let known = &mut to.settings.sign_on.issuers;
        if index == MAX_ISSUERS {
            return Err(invalid(format!("more than {MAX_ISSUERS} issuers")));
        }
        if known.iter().any(|other| other.id == issuer.id) {
            return Err(invalid(format!("the `id` `{}` is used twice", issuer.id)));
        }
        if known.iter().any(|other| other.issuer == issuer.issuer) {
            return Err(invalid(format!("the `issuer` `{}` is configured twice", issuer.issuer)));
        }
        known.push(issuer);
    }
    Ok(())
}

/// Returns the default of a key, which is written in TOML, as JSON.
pub(super) fn default_value(text: &str) -> serde_json::Value {
    let document = format!("value = {text}");
    let parsed = DeTable::parse(&document).ok();
    let value = parsed.as_ref().and_then(|table| table.get_ref().get("value"));
    value.map(to_json).unwrap_or_default()
}

/// Converts a TOML value to JSON.
fn to_json(value: &Spanned<DeValue<'_>>) -> serde_json::Value {
    match value.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(on) => (*on).into(),
        DeValue::Integer(number) => {
            number.as_str().parse::<i64>().map_or(serde_json::Value::Null, Into::into)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(serde_json::Value::Null, Into::into),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(items) => items.iter().map(to_json).collect(),
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(name, value)| (name.get_ref().to_string(), to_json(value)));
            serde_json::Value::Object(pairs.collect())
        }
    }
}

fn read(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Value::Number(number.as_str().to_owned()),
        DeValue::Integer(_) => Value::Other("a number that is not decimal"),
        DeValue::Float(_) => Value::Other("a fraction"),
        DeValue::Boolean(on) => Value::Boolean(*on),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Table(_) => Value::Other("a table"),
        DeValue::Array(items) => items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .map_or(Value::Other("a list with other values"), Value::List),
    }
}

/// Returns the most similar key; the name without its section counts too, because sections are easily forgotten.
pub(super) fn nearest(full: &str) -> &'static str {
    let name = full.rsplit('.').next().unwrap_or(full);
    let similarity = |key: &&Key| {
        let whole = strsim::jaro_winkler(full, key.full);
        let part = if name == key.name() { 0.99 } else { strsim::jaro_winkler(name, key.name()) * 0.95 };
        whole.max(part)
    };
    let best = KEYS.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    best.map_or("addr", |key| key.full)
}
