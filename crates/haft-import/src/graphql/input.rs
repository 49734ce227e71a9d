//! Converts the types of arguments to JSON Schema.

use serde_json::{Map, Value, json};

use super::schema::{InputDef, Schema, TypeDef, TypeKind, TypeRef};
use crate::api::text::clean;
use haft_core::problem::excerpt;

/// The maximum number of input objects of one tool.
const MAX_OBJECTS: usize = 150;
/// The maximum number of values of an enum, and of fields of an input object.
const MAX_VALUES: usize = 500;
const MAX_FIELDS: usize = 300;
/// The maximum size of a description.
const MAX_DESCRIPTION: usize = 600;

/// Converts the arguments of one tool.
pub(super) struct Inputs<'s> {
    schema: &'s Schema,
    /// The input objects that the arguments refer to, in order.
    objects: Vec<&'s str>,
    /// Whether something was left out because of the limits.
    pub(super) is_cut: bool,
}

impl<'s> Inputs<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self { schema, objects: Vec::new(), is_cut: false }
    }

    /// Converts the type of an argument.
    pub(super) fn argument(&mut self, input: &'s InputDef) -> Value {
        let mut schema = self.value(&input.ty);
        let mut words = clean(&input.description, MAX_DESCRIPTION);
        if let Some(default) = &input.default {
            let space = if words.is_empty() { "" } else { " " };
            words = format!("{words}{space}Default: `{}`.", excerpt(default, 100));
        }
        if let Value::Object(map) = &mut schema
            && !words.is_empty()
        {
            if map.contains_key("$ref") {
                let target = Value::Object(std::mem::take(map));
                map.insert("allOf".to_owned(), json!([target]));
            }
            map.insert("description".to_owned(), json!(words));
        }
        schema
    }

    /// Returns the definitions that the arguments refer to. A type that contains itself refers to itself.
    pub(super) fn definitions(&mut self) -> Map<String, Value> {
        let mut out = Map::new();
        let mut done = 0;
        while let Some(name) = self.objects.get(done).copied() {
            done += 1;
            let Some(def) = self.schema.types.get(name) else { continue };
            let value = self.object(def);
            out.insert(name.to_owned(), value);
        }
        out
    }

    fn object(&mut self, def: &'s TypeDef) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        self.is_cut |= def.inputs.len() > MAX_FIELDS;
        for input in def.inputs.iter().take(MAX_FIELDS) {
            if input.is_required() {
                required.push(json!(input.name));
            }
            let mut schema = self.argument(input);
            if !matches!(input.ty, TypeRef::NonNull(_)) {
                allow_null(&mut schema);
            }
            properties.insert(input.name.clone(), schema);
        }
        let mut out = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let Value::Object(map) = &mut out {
            if !required.is_empty() {
                map.insert("required".to_owned(), Value::Array(required));
            }
            let description = clean(&def.description, MAX_DESCRIPTION);
            if !description.is_empty() {
                map.insert("description".to_owned(), json!(description));
            }
        }
        out
    }

    fn value(&mut self, ty: &'s TypeRef) -> Value {
        match ty {
            TypeRef::NonNull(inner) => self.value(inner),
            TypeRef::List(inner) => json!({"type": "array", "items": self.value(inner)}),
            TypeRef::Named(name) => self.named(name),
        }
    }

    fn named(&mut self, name: &'s str) -> Value {
        match name {
            "Int" => return json!({"type": "integer"}),
            "Float" => return json!({"type": "number"}),
            "String" => return json!({"type": "string"}),
            "ID" => return json!({"type": ["string", "integer"]}),
            "Boolean" => return json!({"type": "boolean"}),
            _ => {}
        }
        let Some((name, def)) = self.schema.types.get_key_value(name) else { return json!({}) };
        match def.kind {
            TypeKind::Enum if !def.names.is_empty() => {
                self.is_cut |= def.names.len() > MAX_VALUES;
                if def.names.len() > MAX_VALUES {
                    return json!({"type": "string"});
                }
                json!({"type": "string", "enum": def.names})
            }
            TypeKind::Input => {
                if !self.objects.contains(&name.as_str()) {
                    if self.objects.len() >= MAX_OBJECTS {
                        self.is_cut = true;
                        return json!({"type": "object"});
                    }
                    self.objects.push(name);
                }
                json!({"$ref": format!("#/$defs/{name}")})
            }
            _ => json!({"description": format!("A value of the scalar type `{name}`")}),
        }
    }
}

/// Allows `null`, which clears a field in many updates.
fn allow_null(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        values.push(Value::Null);
    }
    match map.get_mut("type") {
        Some(Value::Array(kinds)) => kinds.push(json!("null")),
        Some(kind) => *kind = json!([kind.clone(), "null"]),
        None => {}
    }
}
