//! Reads `haft.toml` key by key, so that every fault has its line.

use std::path::Path;

use haft_server::settings::declared_mcp_server;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place};
use super::keys::{KEYS, Key, Resolved};
use super::value::{Value, Wrong};

/// Where MCP servers are declared; no other key is a table of tables.
const SERVERS: &str = "mcp.servers";

/// The largest configuration that is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// Enters what the file says; a file that does not exist says nothing.
pub(super) fn apply(path: &Path, to: &mut Resolved) -> Result<(), ConfigError> {
    let read = |source| ConfigError::Read { path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(read(error)),
        Ok(metadata) if metadata.len() > MAX_BYTES => {
            return Err(read(std::io::Error::other("it is larger than 1 MiB")));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(read)?;
    apply_text(path, &text, to)
}

/// Enters what the text of a file says.
pub(super) fn apply_text(path: &Path, text: &str, to: &mut Resolved) -> Result<(), ConfigError> {
    let place = |offset: usize| {
        let before = text.get(..offset).unwrap_or(text);
        Place::File { path: path.to_owned(), line: before.matches('\n').count() + 1 }
    };
    let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        place: place(error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    apply_table("", document.get_ref(), to, &place)
}

fn apply_table(
    section: &str,
    table: &DeTable<'_>,
    to: &mut Resolved,
    place: &dyn Fn(usize) -> Place,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let full = if section.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{section}.{}", name.get_ref())
        };
        let is_section = section.is_empty() && KEYS.iter().any(|key| key.section() == full);
        if let (true, DeValue::Table(inner)) = (is_section, value.get_ref()) {
            apply_table(&full, inner, to, place)?;
            continue;
        }
        if let (SERVERS, DeValue::Table(servers)) = (full.as_str(), value.get_ref()) {
            declare(servers, to, place)?;
            continue;
        }
        let place = place(name.span().start);
        let Some(key) = KEYS.iter().find(|key| key.full == full) else {
            return Err(ConfigError::UnknownKey { place, nearest: nearest(&full), key: full });
        };
        (key.set)(to, &read(value)).map_err(|wrong| ConfigError::Value { place, key: key.full, wrong })?;
    }
    Ok(())
}

/// Enters the MCP servers, each a table of its own.
fn declare(
    servers: &DeTable<'_>,
    to: &mut Resolved,
    place: &dyn Fn(usize) -> Place,
) -> Result<(), ConfigError> {
    for (name, said) in servers {
        let id = name.get_ref();
        let server = declared_mcp_server(id, json(said)).map_err(|why| ConfigError::Value {
            place: place(name.span().start),
            key: SERVERS,
            wrong: Wrong(format!("has `{id}`: {why}")),
        })?;
        to.mcp_servers.push(server);
    }
    Ok(())
}

/// A value that is more than a key takes.
fn json(value: &Spanned<DeValue<'_>>) -> serde_json::Value {
    match value.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(on) => (*on).into(),
        DeValue::Integer(number) => {
            number.as_str().parse::<i64>().map_or(serde_json::Value::Null, Into::into)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(serde_json::Value::Null, Into::into),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(items) => items.iter().map(json).collect(),
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(name, value)| (name.get_ref().to_string(), json(value)));
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
        DeValue::Boolean(on) => Value::Switch(*on),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Table(_) => Value::Other("a table"),
        DeValue::Array(items) => items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .map_or(Value::Other("a list of other things"), Value::List),
    }
}

/// Returns the known key that looks most like this one; the name alone counts too, as a section is easily
/// forgotten.
pub(super) fn nearest(full: &str) -> &'static str {
    let name = full.rsplit('.').next().unwrap_or(full);
    let likeness = |key: &&Key| {
        let whole = strsim::jaro_winkler(full, key.full);
        let part = if name == key.name() { 0.99 } else { strsim::jaro_winkler(name, key.name()) * 0.95 };
        whole.max(part)
    };
    let best = KEYS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.map_or("addr", |key| key.full)
}
