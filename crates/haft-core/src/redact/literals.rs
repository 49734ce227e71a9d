//! Collects the literal secrets of a definition, so that they can be removed from outcomes.

use serde_json::Value;

use crate::redact::masked;
use crate::secret::{MASK, Secret};
use crate::spec::ToolSpec;

/// Returns every literal secret of a spec. A server may echo them, which must not reach a model.
pub fn literal_secrets(spec: &ToolSpec) -> Vec<Secret> {
    let mut found = Vec::new();
    if let (Ok(plain), Ok(shown)) =
        (serde_json::to_value(&spec.implementation), serde_json::to_value(masked(spec).implementation))
    {
        collect(&plain, &shown, &mut found);
    }
    found
}

fn collect(plain: &Value, shown: &Value, found: &mut Vec<Secret>) {
    match (plain, shown) {
        (Value::String(plain), Value::String(shown)) if plain != shown => differing(plain, shown, found),
        (Value::Array(plain), Value::Array(shown)) => {
            plain.iter().zip(shown).for_each(|(plain, shown)| collect(plain, shown, found));
        }
        (Value::Object(plain), Value::Object(shown)) => {
            for (key, plain) in plain {
                if let Some(shown) = shown.get(key) {
                    collect(plain, shown, found);
                }
            }
        }
        _ => {}
    }
}

fn differing(plain: &str, shown: &str, found: &mut Vec<Secret>) {
    let mut keep = |text: &str| {
        if !text.is_empty() {
            found.push(Secret::new(text.to_owned()));
        }
    };
    if shown == MASK {
        keep(plain);
        // `Bearer abc`: the server may echo the credential without its scheme.
        if let Some((_, credential)) = plain.split_once(' ') {
            keep(credential.trim());
        }
        return;
    }
    // A URL in whose query some values are masked.
    let parts = |text: &str| text.split(['?', '&', '#']).map(str::to_owned).collect::<Vec<_>>();
    for (plain, shown) in parts(plain).iter().zip(parts(shown)) {
        if let (true, Some((_, value))) = (*plain != shown, plain.split_once('=')) {
            keep(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ToolName;
    use serde_json::json;

    #[test]
    fn masked_secrets_are_collected() {
        let implementation = json!({
            "type": "http", "url": "https://a.example/?q=${q}&api_key=in-url",
            "headers": {"X-Api-Key": "in-header", "Authorization": "Bearer in-scheme", "Accept": "text/plain"},
            "steps": [{"name": "one", "url": "https://a.example/", "body": {"password": "in-body"}}],
        });
        let spec =
            ToolSpec::new(ToolName::new("t").unwrap(), serde_json::from_value(implementation).unwrap());
        let mut found: Vec<_> =
            literal_secrets(&spec).iter().map(|secret| secret.expose().to_owned()).collect();
        found.sort();
        assert_eq!(found, ["Bearer in-scheme", "in-body", "in-header", "in-scheme", "in-url"]);
    }
}
