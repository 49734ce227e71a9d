//! Checks the default and `enum` values in the schema of the arguments against that schema.

use serde_json::{Map, Value, json};

use super::CheckReport;
use haft_core::implementation::Implementation;
use haft_core::problem::excerpt;
use haft_core::schema::Schema;
use haft_core::spec::ToolSpec;

/// The code of a default or `enum` value that does not match its own schema.
pub const INVALID_SCHEMA_VALUE: &str = "unfitting_value";

/// The maximum number of `enum` values that are checked per argument.
const MAX_LISTED: usize = 64;

/// Rejects invalid defaults, which are passed on without validation, and warns of `enum` values that can never be used.
/// API descriptions often have invalid defaults, so those of an imported tool are only warnings.
pub(super) fn check(spec: &ToolSpec, checked: &mut CheckReport) {
    let input = spec.input_schema.value();
    let Some(properties) = input.get("properties").and_then(Value::as_object) else { return };
    for (name, schema) in properties {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let (Some(min), Some(max)) = (bound("minimum"), bound("maximum"))
            && min > max
        {
            let field = format!("input_schema.properties.{}.maximum", excerpt(name, 60));
            let message = format!("no value is valid: the maximum {max} is less than the minimum {min}");
            checked.warn(field, INVALID_SCHEMA_VALUE, message);
        }
    }
    let has_values =
        |schema: &Value| schema.get("default").is_some_and(|v| !v.is_null()) || schema.get("enum").is_some();
    let with_values: Map<String, Value> = properties
        .iter()
        .filter(|(_, schema)| has_values(schema))
        .map(|(n, s)| (n.clone(), s.clone()))
        .collect();
    if with_values.is_empty() {
        return;
    }
    let mut schema = Map::from_iter([("properties".to_owned(), Value::Object(with_values.clone()))]);
    for definitions in ["$defs", "definitions"] {
        let found = input.get(definitions).cloned();
        schema.extend(found.map(|found| (definitions.to_owned(), found)));
    }
    // A schema that does not compile is reported elsewhere.
    let Ok(compiled) = Schema::compile("input_schema", &Value::Object(schema)) else { return };
    let is_imported = spec.origin.is_some() || matches!(spec.implementation, Implementation::Mcp(_));
    for (name, schema) in &with_values {
        let mut check = |keyword: &str, value: &Value| {
            let Err(violations) = compiled.check(&json!({name: value})) else { return };
            let reason = violations.first().map(|violation| violation.message.clone()).unwrap_or_default();
            let field = format!("input_schema.properties.{}.{keyword}", excerpt(name, 60));
            let is_default = keyword == "default";
            let what = if is_default { "the default" } else { "an `enum` value" };
            let message = format!("{what} does not match the argument's schema: {reason}");
            if is_default && !is_imported {
                checked.error(field, INVALID_SCHEMA_VALUE, message);
            } else {
                checked.warn(field, INVALID_SCHEMA_VALUE, message);
            }
        };
        if let Some(value) = schema.get("default").filter(|value| !value.is_null()) {
            check("default", value);
        }
        for value in schema.get("enum").and_then(Value::as_array).into_iter().flatten().take(MAX_LISTED) {
            check("enum", value);
        }
    }
}
