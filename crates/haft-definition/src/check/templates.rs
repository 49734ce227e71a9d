//! Checks templates: their notation and their defaults.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::CheckReport;
use crate::defaults::in_templates;
use haft_core::implementation::{Implementation, Notation};
use haft_core::problem::excerpt;
use haft_core::schema::declared_properties;
use haft_core::spec::ToolSpec;
use haft_template::Scope;

/// Warns of probable mistakes in templates.
pub(super) fn check(spec: &ToolSpec, checked: &mut CheckReport) {
    defaults(spec, checked);
    notation(spec, checked);
}

/// Warns about a default in a template that differs from the default in the schema or in another template.
fn defaults(spec: &ToolSpec, checked: &mut CheckReport) {
    let schema = spec.input_schema.value();
    let declared: HashMap<&str, &Value> = declared_properties(&schema)
        .into_iter()
        .filter_map(|(name, property)| Some((name, property.get("default")?)))
        .collect();
    let (mut first, mut reported) = (HashMap::new(), HashSet::new());
    for (name, own) in in_templates(spec, &Scope::from_schema(&schema)) {
        let holds = first.entry(name.clone()).or_insert_with(|| own.clone());
        let message = if plain(holds) != plain(&own) {
            let (own, holds) = (excerpt(&own.to_string(), 40), excerpt(&holds.to_string(), 40));
            format!(
                "the default {own} of `{name}` in a template has no effect: the first one, {holds}, holds everywhere"
            )
        } else if let Some(declared) =
            declared.get(name.as_str()).filter(|declared| plain(declared) != plain(&own))
        {
            let (own, declared) = (excerpt(&own.to_string(), 40), excerpt(&declared.to_string(), 40));
            format!(
                "the default {own} of `{name}` in a template overrides the default {declared} in `input_schema`, which callers see; \
                 make them equal or remove the one in the template"
            )
        } else {
            continue;
        };
        if reported.insert((name, own.to_string())) {
            checked.warn("implementation", "default_overruled", message);
        }
    }
}

/// Returns a value as a template writes it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Warns of arguments in the other notation, which would be read as a secret or sent literally.
fn notation(spec: &ToolSpec, checked: &mut CheckReport) {
    let notation = match &spec.implementation {
        Implementation::Http(http) => http.templates,
        Implementation::FileRead(_) | Implementation::FileWrite(_) => Notation::Braces,
        _ => return,
    };
    let Ok(text) = serde_json::to_string(&spec.implementation) else { return };
    for name in &spec.declared_arguments() {
        let (dollar, braces) = (format!("${{{name}}}"), format!("{{{{{name}}}}}"));
        match notation {
            Notation::Braces if text.contains(&dollar) => checked.warn(
                "implementation",
                "template_notation",
                format!("`{dollar}` refers to a secret here; use `{braces}` for the argument"),
            ),
            Notation::Dollar if text.contains(&braces) => checked.warn(
                "implementation",
                "template_notation",
                format!("`{braces}` is sent literally; use `{dollar}` for the argument"),
            ),
            Notation::Braces | Notation::Dollar => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use haft_core::name::ToolName;
    use haft_core::spec::ToolSpec;
    use serde_json::json;

    #[test]
    fn a_default_that_overrides_the_schema_is_reported() {
        let warning = "the default 10 of `n` in a template overrides the default 5 in `input_schema`, which callers see; make them \
                    equal or remove the one in the template";
        for (implementation, default, expected) in [
            (json!({"type": "http", "url": "https://a.example/{{n | default:10}}"}), json!(5), warning),
            (
                json!({"type": "http", "url": "https://a.example", "body": {"a": ["{{n|default:10}}"]}}),
                json!(5),
                warning,
            ),
            (
                json!({"type": "exec", "command": "seq {{n | default:10}} {{n | default:10}}"}),
                json!(5),
                warning,
            ),
            (
                json!({"type": "exec", "command": "seq {{n | default:1}} {{n | default:2}}"}),
                json!(null),
                "the default 2 of `n` in a template has no effect: the first one, 1, holds everywhere",
            ),
            (json!({"type": "http", "url": "https://a.example/{{n | default:5}}"}), json!(5), ""),
            (json!({"type": "http", "url": "https://a.example/{{n | default:5}}"}), json!("5"), ""),
            (json!({"type": "http", "url": "https://a.example/{{n | default:5}}"}), json!(null), ""),
            (json!({"type": "http", "url": "https://a.example/{{n}}"}), json!(5), ""),
            (json!({"type": "http", "url": "https://a.example/{{m | default:1}}"}), json!(5), ""),
        ] {
            let mut implementation = implementation;
            if implementation["type"] == "http" {
                implementation["templates"] = json!("braces");
            }
            let implementation = serde_json::from_value(implementation).unwrap();
            let mut spec = ToolSpec::new(ToolName::new("t").unwrap(), implementation);
            let mut n = json!({"type": "integer"});
            if !default.is_null() {
                n["default"] = default;
            }
            spec.input_schema = json!({"type": "object", "properties": {"n": n, "m": {}}}).into();
            let mut checked = super::CheckReport::default();
            super::check(&spec, &mut checked);
            let said: Vec<_> = checked.warnings.iter().map(|warning| warning.message.as_str()).collect();
            assert_eq!(said.join(""), expected, "{:?}", spec.implementation);
        }
    }

    #[test]
    fn the_other_notation_is_reported() {
        for (templates, url, expected) in [
            (
                "braces",
                "https://a.example/${city}",
                "`${city}` refers to a secret here; use `{{city}}` for the argument",
            ),
            (
                "dollar",
                "https://a.example/{{city}}",
                "`{{city}}` is sent literally; use `${city}` for the argument",
            ),
            ("braces", "https://a.example/{{city}}?key=${KEY}", ""),
            ("dollar", "https://a.example/${city}", ""),
        ] {
            let implementation = json!({"type": "http", "url": url, "templates": templates});
            let mut spec =
                ToolSpec::new(ToolName::new("t").unwrap(), serde_json::from_value(implementation).unwrap());
            spec.input_schema = json!({"type": "object", "properties": {"city": {"type": "string"}}}).into();
            let mut checked = super::CheckReport::default();
            super::check(&spec, &mut checked);
            let said: Vec<_> = checked.warnings.iter().map(|warning| warning.message.as_str()).collect();
            assert_eq!(said.join(""), expected, "{url}");
        }
    }

    #[test]
    fn the_other_notation_is_reported_in_file_tools() {
        for (implementation, expected) in [
            (json!({"type": "file_read", "path": "${path}"}), true),
            (json!({"type": "file_write", "path": "a/${path}", "content": "x"}), true),
            (json!({"type": "file_write", "path": "a", "content": "${path}"}), true),
            (json!({"type": "file_read", "path": "{{path}}"}), false),
            (json!({"type": "file_read", "path": "${SECRET}/{{path}}"}), false),
        ] {
            let implementation = serde_json::from_value(implementation).unwrap();
            let mut spec = ToolSpec::new(ToolName::new("t").unwrap(), implementation);
            spec.input_schema = json!({"type": "object", "properties": {"path": {"type": "string"}}}).into();
            let mut checked = super::CheckReport::default();
            super::check(&spec, &mut checked);
            let said: Vec<_> = checked.warnings.iter().map(|warning| warning.message.as_str()).collect();
            let warning = "`${path}` refers to a secret here; use `{{path}}` for the argument";
            assert_eq!(said.join(""), if expected { warning } else { "" }, "{:?}", spec.implementation);
        }
    }
}
