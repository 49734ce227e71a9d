//! Checks templates: their notation and their defaults.

use std::collections::HashSet;

use serde_json::Value;

use super::CheckReport;
use haft_core::implementation::{Implementation, Kind, Notation};
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_template::{Scope, overridden_defaults};

/// Warns of probable mistakes in templates.
pub(super) fn check(spec: &ToolSpec, checked: &mut CheckReport) {
    defaults(spec, checked);
    notation(spec, checked);
}

/// Warns of a default in a template that differs from the default in the schema, which callers see.
fn defaults(spec: &ToolSpec, checked: &mut CheckReport) {
    let has_braces = match &spec.implementation {
        Implementation::Http(http) => http.templates == Notation::Braces,
        other => matches!(other.kind(), Kind::Exec | Kind::FileRead | Kind::FileWrite),
    };
    let Ok(implementation) = serde_json::to_value(&spec.implementation) else { return };
    if !has_braces {
        return;
    }
    let scope = Scope::from_schema(&spec.input_schema.value());
    let (mut texts, mut reported) = (Vec::new(), HashSet::new());
    collect(&implementation, &mut texts);
    for (name, own, declared) in texts.into_iter().flat_map(|text| overridden_defaults(text, &scope)) {
        let (own, declared) = (excerpt(&own.to_string(), 40), excerpt(&declared.to_string(), 40));
        if reported.insert((name.clone(), own.clone())) {
            let message = format!(
                "the default {own} of `{name}` in a template overrides the default {declared} in `input_schema`, which callers see; \
                 make them equal or remove the one in the template"
            );
            checked.warn("implementation", "default_overruled", message);
        }
    }
}

/// Collects all strings of a value, whose depth is already bounded.
fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(map) => map.values().for_each(|item| collect(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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
