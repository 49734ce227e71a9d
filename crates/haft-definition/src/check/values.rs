//! Values in a schema of arguments that its own rules refuse.

use serde_json::{Map, Value, json};

use super::CheckReport;
use haft_core::problem::excerpt;
use haft_core::schema::Schema;
use haft_core::spec::ToolSpec;

/// The code of a default or a listed value that its own schema refuses. Descriptions of other people's APIs have them,
/// so a definition is not refused for one.
pub const UNFITTING_VALUE: &str = "unfitting_value";

/// The most listed values of one argument that are tried.
const MAX_LISTED: usize = 64;

/// Warns of defaults, which are passed on as they are, and of listed values that no call can have.
pub(super) fn check(spec: &ToolSpec, checked: &mut CheckReport) {
    let Some(properties) = spec.input_schema.get("properties").and_then(Value::as_object) else { return };
    for (name, schema) in properties {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let (Some(least), Some(most)) = (bound("minimum"), bound("maximum"))
            && least > most
        {
            let field = format!("input_schema.properties.{}.maximum", excerpt(name, 60));
            let message = format!("no value fits: the maximum, {most}, is below the minimum, {least}");
            checked.warn(field, UNFITTING_VALUE, message);
        }
    }
    let said =
        |schema: &Value| schema.get("default").is_some_and(|v| !v.is_null()) || schema.get("enum").is_some();
    let with_values: Map<String, Value> =
        properties.iter().filter(|(_, schema)| said(schema)).map(|(n, s)| (n.clone(), s.clone())).collect();
    if with_values.is_empty() {
        return;
    }
    let mut schema = Map::from_iter([("properties".to_owned(), Value::Object(with_values.clone()))]);
    for definitions in ["$defs", "definitions"] {
        let found = spec.input_schema.get(definitions).cloned();
        schema.extend(found.map(|found| (definitions.to_owned(), found)));
    }
    // What does not compile is told elsewhere, or refers to what is not here.
    let Ok(compiled) = Schema::compile("input_schema", &Value::Object(schema)) else { return };
    for (name, schema) in &with_values {
        let mut tell = |keyword: &str, value: &Value| {
            let Err(violations) = compiled.check(&json!({name: value})) else { return };
            let why = violations.first().map(|violation| violation.message.clone()).unwrap_or_default();
            let field = format!("input_schema.properties.{}.{keyword}", excerpt(name, 60));
            let what = if keyword == "default" { "the default" } else { "a listed value" };
            checked.warn(
                field,
                UNFITTING_VALUE,
                format!("{what} does not fit the argument's own schema: {why}"),
            );
        };
        if let Some(value) = schema.get("default").filter(|value| !value.is_null()) {
            tell("default", value);
        }
        for value in schema.get("enum").and_then(Value::as_array).into_iter().flatten().take(MAX_LISTED) {
            tell("enum", value);
        }
    }
}
