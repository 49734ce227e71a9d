//! Reads the model of an agent: a name, or a map with settings.

use haft_core::agent::AgentModel;
use serde_json::{Map, Value};

use crate::credential::credential;
use crate::dialect::{Fields, describe, write_yaml};

/// The name of the model that the settings of the server choose, for agents that name none.
pub const DEFAULT_MODEL: &str = "default";

/// The longest name of a model, in bytes.
const MAX_NAME: usize = 256;
/// The largest script, in bytes.
const MAX_SCRIPT: usize = 512 * 1024;

/// Settings of the model that may be beside its name.
const BESIDE: [(&str, &[&str]); 6] = [
    ("provider", &["provider"]),
    ("base_url", &["base_url"]),
    ("credential", &["credential", "credentials_ref"]),
    ("temperature", &["temperature"]),
    ("max_tokens", &["max_tokens", "max_output_tokens"]),
    ("reasoning", &["reasoning", "reasoning_effort"]),
];

/// Reads `model`, and the settings beside it; `inherited` is that of the team.
pub(super) fn main(fields: &mut Fields<'_>, inherited: Option<&Value>) -> Option<AgentModel> {
    let key = fields.alias(&["model", "model_name"]).unwrap_or("model");
    let value = fields.value(key).or_else(|| inherited.cloned());
    let path = fields.path(key);
    let mut map = match value {
        Some(Value::String(name)) => named(name),
        Some(Value::Object(map)) => map,
        None => named(DEFAULT_MODEL.to_owned()),
        Some(other) => {
            let message = format!("expected the name of a model or a map, found {}", describe(&other));
            fields.error(key, "wrong_type", message);
            return None;
        }
    };
    for (setting, keys) in BESIDE {
        let Some(key) = fields.alias(keys) else { continue };
        let Some(value) = fields.value(key) else { continue };
        if map.get(setting).is_some_and(|own| *own != value) {
            fields.error(
                key,
                "conflicting_fields",
                format!("conflicts with `{path}.{setting}`; remove one of them"),
            );
        }
        map.insert(setting.to_owned(), value);
    }
    read(Fields::new(path, map, fields.report()))
}

/// Reads `fallback`.
pub(super) fn fallback(fields: &mut Fields<'_>, inherited: Option<&Value>) -> Option<AgentModel> {
    let key = fields.alias(&["fallback", "fallback_model"]).unwrap_or("fallback");
    let map = match fields.value(key).or_else(|| inherited.cloned())? {
        Value::String(name) => named(name),
        Value::Object(map) => map,
        other => {
            let message = format!("expected the name of a model or a map, found {}", describe(&other));
            fields.error(key, "wrong_type", message);
            return None;
        }
    };
    read(Fields::new(fields.path(key), map, fields.report()))
}

fn named(name: String) -> Map<String, Value> {
    Map::from_iter([("name".to_owned(), Value::String(name))])
}

fn read(mut fields: Fields<'_>) -> Option<AgentModel> {
    let script = script(&mut fields);
    let provider = fields.text("provider");
    let name = match fields.alias(&["name", "model", "id"]) {
        Some(key) => fields.text(key),
        // A scripted model needs no name.
        None if script.is_some() => Some("scripted".to_owned()),
        None => fields.required_text("name", "the name of the model, such as `claude-sonnet-5`"),
    };
    if name.as_ref().is_some_and(|name| name.trim().is_empty() || name.len() > MAX_NAME) {
        fields.error("name", "invalid_value", format!("expected the name of a model, 1 to {MAX_NAME} bytes"));
    }
    let base_url =
        fields.alias(&["base_url", "url", "endpoint", "api_base"]).and_then(|key| fields.text(key));
    if base_url.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
        fields.error("base_url", "invalid_url", "expected a URL that starts with `http://` or `https://`");
    }
    let credential = fields
        .alias(&["credential", "credentials_ref", "credential_id"])
        .and_then(|key| credential(&mut fields, key));
    if fields.has("api_key") {
        let message =
            "a definition must not contain a key; store it as a credential and name that in `credential`";
        fields.error("api_key", "secret", message);
        fields.ignore(&["api_key"]);
    }
    Some(AgentModel {
        provider,
        base_url,
        credential,
        temperature: temperature(&mut fields),
        max_tokens: max_tokens(&mut fields),
        reasoning: reasoning(&mut fields),
        text_tools: fields.flag("text_tools").unwrap_or_default(),
        script,
        name: name?,
    })
}

fn temperature(fields: &mut Fields<'_>) -> Option<f64> {
    let value = fields.value("temperature")?;
    let number = value.as_f64().filter(|number| (0.0..=2.0).contains(number));
    if number.is_none() {
        fields.error("temperature", "invalid_value", "expected a number from 0 to 2");
    }
    number
}

fn max_tokens(fields: &mut Fields<'_>) -> Option<u32> {
    let key = fields.alias(&["max_tokens", "max_output_tokens"])?;
    super::rules::bounded(fields, key, 1..=10_000_000)
}

fn reasoning(fields: &mut Fields<'_>) -> Option<String> {
    let key = fields.alias(&["reasoning", "reasoning_effort"])?;
    let word = fields.choice(key, &[("low", "low"), ("medium", "medium"), ("high", "high")])?;
    Some(word.to_owned())
}

/// A script is a YAML text, or the turns themselves.
fn script(fields: &mut Fields<'_>) -> Option<String> {
    let text = match fields.value("script")? {
        Value::String(text) => text,
        Value::Object(script) => write_yaml(&script),
        turns @ Value::Array(_) => write_yaml(&Map::from_iter([("turns".to_owned(), turns)])),
        other => {
            let message = format!("expected the text or the turns of a script, found {}", describe(&other));
            fields.error("script", "wrong_type", message);
            return None;
        }
    };
    if text.len() > MAX_SCRIPT {
        fields.error("script", "too_large", format!("{} bytes; the limit is {MAX_SCRIPT}", text.len()));
    }
    Some(text)
}
