//! JSON Schema of Rust types.

use haft_core::spec::empty_schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// Returns the schema of the arguments that a type reads: short, as a model pays for every word of it.
pub(crate) fn of_arguments<P: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<P>();
    schema.remove("title");
    RecursiveTransform(strip_sizes).transform(&mut schema);
    match schema.to_value() {
        // What takes everything takes every object.
        Value::Bool(_) => Value::Object(Map::new()),
        // What takes nothing is called with an empty map.
        schema if schema.get("type").is_some_and(|kind| kind == "null") => empty_schema(),
        schema => schema,
    }
}

/// Takes away names such as `uint32`, which no validator and no model knows; the bounds stay.
fn strip_sizes(schema: &mut Schema) {
    let sized = schema.get("format").and_then(Value::as_str).is_some_and(|format| {
        format.starts_with("int") || format.starts_with("uint") || format == "float" || format == "double"
    });
    if sized {
        schema.remove("format");
    }
}
