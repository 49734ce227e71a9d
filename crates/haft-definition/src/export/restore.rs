//! Converts the arguments that a model sends to those of the definition.
//!
//! In strict mode a model sends every property, and null for one that it would omit; and some arguments have aliases.
//! Arguments that match their schema are not changed.

use serde_json::{Map, Value};

use super::names::argument_alias;
use haft_core::schema::walk::{MAX_DEPTH, combined, includes_type, lists_name, resolve};

/// The maximum number of schemas of one value that are visited.
const MAX_SCHEMAS: usize = 200;
/// The maximum number of alternatives that are tried.
const MAX_ALTERNATIVES: usize = 32;

/// The arguments of a schema that models see under other names.
#[derive(Debug, Default)]
pub struct ArgumentAliases(Vec<ArgumentAlias>);

#[derive(Debug)]
struct ArgumentAlias {
    alias: String,
    name: String,
}

impl ArgumentAliases {
    /// Collects the aliases of the arguments of a schema.
    pub fn new(schema: &Value) -> Self {
        let Some(Value::Object(declared)) = schema.get("properties") else { return Self::default() };
        let aliases = declared
            .keys()
            .filter_map(|name| Some(ArgumentAlias { alias: argument_alias(name)?, name: name.clone() }));
        Self(aliases.filter(|one| !declared.contains_key(&one.alias)).collect())
    }

    /// Replaces aliases by the original names.
    pub fn restore(&self, args: &mut Value) {
        let Value::Object(args) = args else { return };
        for ArgumentAlias { alias, name } in &self.0 {
            if !args.contains_key(name)
                && let Some(value) = args.shift_remove(alias)
            {
                args.insert(name.clone(), value);
            }
        }
    }
}

/// Removes the nulls of optional properties that do not accept null; returns whether there were any.
pub fn drop_nulls(schema: &Value, args: &mut Value) -> bool {
    let mut remover = NullRemover { root: schema, dropped: false };
    remover.value(&[schema], args, MAX_DEPTH);
    remover.dropped
}

/// Returns the arguments for each top-level alternative of a schema, without the nulls of properties that the alternative
/// does not declare: strict mode has one object with the properties of all alternatives.
pub fn for_alternatives<'a>(schema: &'a Value, args: &'a Value) -> impl Iterator<Item = Value> + 'a {
    let all = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let args = args.as_object().filter(|args| args.values().any(Value::is_null));
    all.take(MAX_ALTERNATIVES).filter_map(move |alternative| {
        let alternative = match alternative.get("$ref").and_then(Value::as_str) {
            Some(reference) => resolve(schema, reference)?,
            None => alternative,
        };
        let declares = |name: &str| {
            [schema, alternative]
                .iter()
                .any(|one| one.get("properties").is_some_and(|all| all.get(name).is_some()))
        };
        let mut own = args?.clone();
        own.retain(|name, value| !value.is_null() || declares(name));
        let mut own = Value::Object(own);
        drop_nulls(alternative, &mut own);
        Some(own)
    })
}

struct NullRemover<'a> {
    root: &'a Value,
    dropped: bool,
}

impl<'a> NullRemover<'a> {
    fn value(&mut self, schemas: &[&'a Value], value: &mut Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::Object(map) => {
                let schemas = self.same_value(schemas);
                self.object(&schemas, map, depth);
            }
            Value::Array(items) => {
                let of_items: Vec<&Value> =
                    self.same_value(schemas).into_iter().filter_map(|schema| schema.get("items")).collect();
                for item in items {
                    self.value(&of_items, item, depth);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, schemas: &[&'a Map<String, Value>], map: &mut Map<String, Value>, depth: usize) {
        map.retain(|name, value| {
            let declaring = schemas.iter().filter(|schema| property(schema, name).is_some());
            let remove = value.is_null()
                && declaring.clone().any(|schema| !lists_name(schema.get("required"), name))
                && !declaring
                    .clone()
                    .filter_map(|schema| property(schema, name))
                    .any(|one| self.accepts_null(one, MAX_DEPTH));
            self.dropped |= remove;
            !remove
        });
        for (name, value) in map {
            let inner: Vec<&Value> = schemas.iter().filter_map(|schema| property(schema, name)).collect();
            self.value(&inner, value, depth);
        }
    }

    /// Returns all schemas that may apply to the same value, references followed.
    fn same_value(&self, schemas: &[&'a Value]) -> Vec<&'a Map<String, Value>> {
        let mut pending: Vec<&Value> = schemas.to_vec();
        let mut found = Vec::new();
        while let Some(schema) = pending.pop() {
            let Value::Object(map) = schema else { continue };
            if found.len() >= MAX_SCHEMAS {
                break;
            }
            found.push(map);
            pending.extend(combined(self.root, schema));
        }
        found
    }

    /// Returns whether a schema accepts null, judging by its keywords only.
    fn accepts_null(&self, schema: &Value, depth: usize) -> bool {
        let Value::Object(map) = schema else { return *schema == Value::Bool(true) };
        let Some(depth) = depth.checked_sub(1) else { return true };
        let of = |key: &str, test: &dyn Fn(&Value) -> bool| map.get(key).is_none_or(test);
        of("type", &|kind| includes_type(Some(kind), "null"))
            && of("enum", &|list| list.as_array().is_some_and(|list| list.contains(&Value::Null)))
            && of("const", &Value::is_null)
            && of("$ref", &|reference| {
                let found = reference.as_str().and_then(|reference| resolve(self.root, reference));
                found.is_none_or(|schema| self.accepts_null(schema, depth))
            })
            && of("allOf", &|all| {
                all.as_array().is_none_or(|all| all.iter().all(|one| self.accepts_null(one, depth)))
            })
            && ["anyOf", "oneOf"].iter().all(|key| {
                of(key, &|any| {
                    any.as_array().is_none_or(|any| any.iter().any(|one| self.accepts_null(one, depth)))
                })
            })
    }
}

fn property<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_is_left_out_where_the_property_may_be_left_out_and_not_be_null() {
        let schema = json!({
            "properties": {
                "city": {"type": "string"}, "unit": {"type": "string", "enum": ["C", "F"]},
                "days": {"type": ["integer", "null"]}, "any": {}, "tree": {"$ref": "#/$defs/tree"},
                "list": {"type": "array", "items": {"properties": {"a": {"const": 1}, "b": {"anyOf": [{"type": "null"}]}}}},
                "shape": {"oneOf": [
                    {"properties": {"kind": {}, "size": {"type": "integer"}}, "required": ["kind"]},
                    {"properties": {"kind": {}, "size": {"type": "string"}}, "required": ["kind", "size"]},
                ]},
            },
            "required": ["city"],
            "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}}},
        });
        let check = |args: Value, expected: Value| {
            let mut made = args.clone();
            assert_eq!(drop_nulls(&schema, &mut made), made != args, "{args}");
            assert_eq!(made, expected, "{args}");
        };
        check(json!({"city": null, "unit": null}), json!({"city": null}));
        check(
            json!({"days": null, "any": null, "other": null}),
            json!({"days": null, "any": null, "other": null}),
        );
        check(json!({"tree": {"left": {"left": null}}}), json!({"tree": {"left": {}}}));
        check(json!({"tree": null}), json!({}));
        check(json!({"list": [{"a": null, "b": null}, null]}), json!({"list": [{"b": null}, null]}));
        check(json!({"shape": {"kind": 1, "size": null}}), json!({"shape": {"kind": 1}}));
        check(json!("no object"), json!("no object"));
    }

    #[test]
    fn each_alternative_is_without_the_nulls_of_the_others() {
        let schema = json!({"oneOf": [
            {"properties": {"action": {"const": "add"}, "text": {"type": "string"}, "note": {"type": ["string", "null"]}},
             "required": ["action", "text"]},
            {"$ref": "#/$defs/remove"},
        ], "$defs": {"remove": {"properties": {"action": {"const": "remove"}, "number": {"type": "integer"}}}}});
        let args = json!({"action": "remove", "text": null, "note": null, "number": 1, "stray": 2});
        assert_eq!(
            for_alternatives(&schema, &args).collect::<Vec<_>>(),
            [
                json!({"action": "remove", "text": null, "note": null, "number": 1, "stray": 2}),
                json!({"action": "remove", "number": 1, "stray": 2}),
            ]
        );
        assert_eq!(for_alternatives(&json!({}), &args).count(), 0);
    }

    #[test]
    fn arguments_get_their_own_names_back() {
        let schema = json!({"properties": {"$top": {}, "b": {}}});
        let alias = argument_alias("$top").unwrap();
        let check = |args: Value, expected: Value| {
            let mut made = args.clone();
            ArgumentAliases::new(&schema).restore(&mut made);
            assert_eq!(made, expected, "{args}");
        };
        check(json!({&alias: 1, "b": 2}), json!({"b": 2, "$top": 1}));
        check(json!({&alias: 1, "$top": 2}), json!({&alias: 1, "$top": 2}));
        check(json!({"x": 1}), json!({"x": 1}));
    }
}
