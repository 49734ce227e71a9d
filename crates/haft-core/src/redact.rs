//! Literal secrets in definitions: masked in every read, kept when the mask is written back.

use serde_json::{Map, Value};

use crate::implementation::Implementation;
use crate::secret::MASK;
use crate::spec::ToolSpec;

/// Parts of a key that mark its value as secret, with `-`, `_` and case left out.
const SENSITIVE: [&str; 9] = [
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
];
/// Keys that only sound like it.
const HARMLESS: [&str; 5] = ["tokenurl", "maxtokens", "credentialsref", "credentialref", "tokenendpoint"];

/// Returns the spec with every literal secret of its implementation masked.
pub fn masked(spec: &ToolSpec) -> ToolSpec {
    let mut copy = spec.clone();
    if let Ok(mut value) = serde_json::to_value(&spec.implementation)
        && mask(&mut value, Context::default())
        && let Ok(implementation) = serde_json::from_value::<Implementation>(value)
    {
        copy.implementation = implementation;
    }
    copy
}

/// Tells whether a spec holds a literal secret, that is, whether [`masked`] would change it.
pub fn has_literal_secret(spec: &ToolSpec) -> bool {
    serde_json::to_value(&spec.implementation).is_ok_and(|mut value| mask(&mut value, Context::default()))
}

/// Puts back what was masked in a read: `***` at a place means the earlier value of that place.
///
/// Returns the places where there is no earlier value.
pub fn restore(spec: &mut ToolSpec, earlier: Option<&ToolSpec>) -> Vec<String> {
    let Ok(mut value) = serde_json::to_value(&spec.implementation) else { return Vec::new() };
    let before = earlier.and_then(|earlier| serde_json::to_value(&earlier.implementation).ok());
    let mut lost = Vec::new();
    if unmask(&mut value, before.as_ref(), "implementation", &mut lost)
        && let Ok(implementation) = serde_json::from_value::<Implementation>(value)
    {
        spec.implementation = implementation;
    }
    lost
}

#[derive(Clone, Copy, Default)]
struct Context {
    /// Whether the value belongs to a key that marks it as secret.
    sensitive: bool,
    /// Whether the map is the `auth` of an HTTP tool, whose `value` and `key` are secret too.
    auth: bool,
}

fn mask(value: &mut Value, context: Context) -> bool {
    match value {
        Value::String(text) => {
            let hide = context.sensitive && is_literal(text);
            if hide {
                MASK.clone_into(text);
            }
            hide
        }
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| mask(item, context).then_some(())).count() > 0
        }
        Value::Object(map) => mask_map(map, context),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn mask_map(map: &mut Map<String, Value>, context: Context) -> bool {
    let mut any = false;
    for (key, item) in map.iter_mut() {
        let sensitive = context.sensitive
            || is_sensitive(key)
            || (context.auth && matches!(key.as_str(), "value" | "key"));
        any |= mask(item, Context { sensitive, auth: key == "auth" });
    }
    any
}

fn is_sensitive(key: &str) -> bool {
    let plain: String =
        key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
    !HARMLESS.contains(&plain.as_str()) && SENSITIVE.iter().any(|part| plain.contains(part))
}

/// A text that refers to a secret by name shows nothing; one without a reference is the secret itself.
fn is_literal(text: &str) -> bool {
    !text.is_empty() && !text.contains("${") && !text.contains("{{")
}

fn unmask(value: &mut Value, earlier: Option<&Value>, place: &str, lost: &mut Vec<String>) -> bool {
    match value {
        Value::String(text) if text == MASK => {
            if let Some(before @ Value::String(_)) = earlier {
                *value = before.clone();
                return true;
            }
            lost.push(place.to_owned());
            false
        }
        Value::Array(items) => items.iter_mut().enumerate().fold(false, |any, (index, item)| {
            let before = earlier.and_then(|list| list.get(index));
            unmask(item, before, &format!("{place}[{index}]"), lost) || any
        }),
        Value::Object(map) => map.iter_mut().fold(false, |any, (key, item)| {
            let before = earlier.and_then(|map| map.get(key));
            unmask(item, before, &format!("{place}.{key}"), lost) || any
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ToolName;
    use serde_json::json;

    fn spec(implementation: Value) -> ToolSpec {
        ToolSpec::new(ToolName::new("t").unwrap(), serde_json::from_value(implementation).unwrap())
    }

    #[test]
    fn literals_are_masked_and_references_shown() {
        let before = spec(json!({
            "type": "http", "url": "https://api.example.com/v1?q=${q}", "method": "POST",
            "headers": {"Authorization": "Bearer ${KEY}", "X-Api-Key": "abc123", "Accept": "text/plain"},
            "auth": {"type": "api_key", "name": "key", "value": "literal", "in": "query"},
        }));
        let shown = serde_json::to_value(&masked(&before).implementation).unwrap();
        assert_eq!(
            shown,
            json!({
                "type": "http", "url": "https://api.example.com/v1?q=${q}", "method": "POST",
                "headers": {"Authorization": "Bearer ${KEY}", "X-Api-Key": "***", "Accept": "text/plain"},
                "auth": {"type": "api_key", "name": "key", "value": "***", "in": "query"},
            })
        );
        assert!(has_literal_secret(&before));
        let mut written_back = masked(&before);
        assert_eq!(restore(&mut written_back, Some(&before)), Vec::<String>::new());
        assert_eq!(written_back, before);
        assert_eq!(
            restore(&mut masked(&before), None),
            ["implementation.headers.X-Api-Key", "implementation.auth.value"]
        );
    }

    #[test]
    fn nothing_to_hide_is_unchanged() {
        let before = spec(json!({
            "type": "http", "url": "https://x.example",
            "auth": {"type": "oauth2", "token_url": "https://x.example/token", "client_id": "me",
                     "client_secret": "${SECRET}"},
        }));
        assert_eq!(masked(&before), before);
        assert!(!has_literal_secret(&before));
    }
}
