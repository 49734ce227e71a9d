//! Compiles schemas and validates values.

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, Validator};
use serde::Serialize;
use serde_json::Value;

use crate::problem::{Problem, nearest_type};
use crate::schema::message::{message, not_empty};
use crate::schema::{bounds, walk};

/// The maximum number of violations that are reported for one value.
const MAX_VIOLATIONS: usize = 20;
/// The maximum size of the compiled automaton of a `pattern`.
const PATTERN_SIZE: usize = 1024 * 1024;

/// The maximum number of nodes of a value for which all violations are collected.
const MAX_LISTED_NODES: u64 = 4000;
/// The maximum number of schema evaluations for collecting violations: the library collects all of them, including
/// those inside `anyOf`, before it returns the first.
const MAX_EVALUATIONS: u64 = 1_000_000;
/// The same limit for a search that stops at the first violation and collects nothing.
const MAX_EVALUATIONS_TO_FIRST: u64 = 20_000_000;

/// A compiled schema.
pub struct Schema {
    /// `None` for the schema that accepts everything.
    validator: Option<Validator>,
    /// The maximum number of schemas that apply to one value.
    weight: u64,
    /// Whether it has an `anyOf` or `oneOf`.
    has_choices: bool,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// One violation of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The JSON pointer of the invalid value; empty for the whole.
    pub path: String,
    /// The violated keyword, such as `required`.
    pub code: String,
    /// What was expected.
    pub message: String,
}

impl Schema {
    /// Compiles a schema; `field` is its path in the definition.
    ///
    /// References to other documents, reference cycles, and schemas that exceed the limits are rejected.
    pub fn compile(field: &str, schema: &Value) -> Result<Self, Vec<Problem>> {
        let weight = bounds::check(field, schema)?;
        if accepts_everything(schema) {
            return Ok(Self { validator: None, weight, has_choices: false });
        }
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(
                PatternOptions::regex().size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE),
            )
            .should_validate_formats(true)
            .offline()
            .build(schema)
            .map_err(|error| {
                let pointer = error.instance_path().as_str();
                let path = pointer.replace('/', ".");
                let found =
                    schema.pointer(pointer).and_then(Value::as_str).filter(|_| pointer.ends_with("/type"));
                let hint = found.and_then(nearest_type).map(|near| format!("; did you mean `{near}`?"));
                let message = format!("invalid JSON Schema: {}{}", message(&error), hint.unwrap_or_default());
                vec![Problem::new(format!("{field}{path}"), "invalid_schema", message)]
            })?;
        Ok(Self { validator: Some(validator), weight, has_choices: has_choices(schema) })
    }

    /// Validates a value; the violations are limited in number and length.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let Some(validator) = &self.validator else { return Ok(()) };
        // Nearly every value is valid, and this check does not allocate.
        if validator.is_valid(value) {
            return Ok(());
        }
        let (nodes, depth) = walk::measure(value);
        let evaluations = nodes.saturating_mul(self.weight.saturating_pow(depth));
        if nodes <= MAX_LISTED_NODES && evaluations <= MAX_EVALUATIONS {
            let errors = validator.iter_errors(value).take(MAX_VIOLATIONS);
            let mut violations: Vec<_> = errors.map(|error| violation(value, &error)).collect();
            violations.sort_by(|a, b| (&a.path, &a.code).cmp(&(&b.path, &b.code)));
            return if violations.is_empty() { Ok(()) } else { Err(violations) };
        }
        let limit = if self.has_choices { MAX_EVALUATIONS } else { MAX_EVALUATIONS_TO_FIRST };
        if evaluations <= limit {
            return validator.validate(value).map_err(|error| vec![violation(value, &error)]);
        }
        Err(vec![Violation {
            path: String::new(),
            code: "schema".to_owned(),
            message: "does not match the schema; the value is too large to locate the violation".to_owned(),
        }])
    }
}

fn has_choices(schema: &Value) -> bool {
    walk::any_value(schema, &|value| value.get("anyOf").is_some() || value.get("oneOf").is_some())
}

fn accepts_everything(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn violation(whole: &Value, error: &jsonschema::ValidationError<'_>) -> Violation {
    let path = error.instance_path().as_str();
    // If no properties are declared, the library reports a false schema instead of the property.
    let is_closed = error.schema_path().as_str().ends_with("/additionalProperties");
    let map = whole.pointer(path).and_then(Value::as_object);
    match (error.kind(), map) {
        (ValidationErrorKind::FalseSchema, Some(map)) if is_closed => Violation {
            path: path.to_owned(),
            code: "additionalProperties".to_owned(),
            message: not_empty(map.keys()),
        },
        _ => Violation {
            path: path.to_owned(),
            code: error.kind().keyword().to_owned(),
            message: message(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Result<(), Vec<Violation>> {
        Schema::compile("input_schema", schema).unwrap().check(value)
    }

    #[test]
    fn every_violation_has_path_code_and_message() {
        let schema = json!({
            "type": "object",
            "properties": {"unit": {}, "city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
            "required": ["city", "unit"],
            "additionalProperties": false,
        });
        let violations = check(&schema, &json!({"city": 3, "days": 9, "x": 1})).unwrap_err();
        insta::assert_json_snapshot!(violations, @r#"
        [
          {
            "path": "",
            "code": "additionalProperties",
            "message": "unknown property `x`"
          },
          {
            "path": "",
            "code": "required",
            "message": "missing required property `unit`"
          },
          {
            "path": "/city",
            "code": "type",
            "message": "expected a string, got 3"
          },
          {
            "path": "/days",
            "code": "maximum",
            "message": "9 is greater than the maximum of 7"
          }
        ]
        "#);
        assert_eq!(check(&schema, &json!({"city": "Oslo", "unit": "C"})), Ok(()));
    }

    #[test]
    fn closed_objects_list_the_unknown_properties() {
        let schema =
            json!({"properties": {"none": {"type": "object", "additionalProperties": false}, "no": false}});
        let violations =
            check(&schema, &json!({"none": {"city": "Oslo", "days": 3}, "no": "thanks"})).unwrap_err();
        insta::assert_json_snapshot!(violations, @r#"
        [
          {
            "path": "/no",
            "code": "falseSchema",
            "message": "is not allowed; remove it"
          },
          {
            "path": "/none",
            "code": "additionalProperties",
            "message": "no properties are allowed; remove `city` and `days`"
          }
        ]
        "#);
    }

    #[test]
    fn messages_describe_what_is_expected() {
        let messages = |schema: Value, value: Value| {
            let violations = check(&schema, &value).unwrap_err();
            violations.iter().map(|v| v.message.clone()).collect::<Vec<_>>().join(" | ")
        };
        let methods = json!({"enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]});
        assert_eq!(
            messages(methods, json!("FETCH")),
            r#""FETCH" is not one of "GET", "POST", "PUT", "PATCH", "DELETE" or "HEAD""#
        );
        let shapes = json!({"oneOf": [
            {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
            {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
        ]});
        assert_eq!(
            messages(shapes.clone(), json!({"kind": "sqare", "side": 1})),
            r#"matches none of the alternatives: /kind: "sqare" is not one of "circle" or "square""#
        );
        assert_eq!(
            messages(shapes.clone(), json!({"kind": "square"})),
            "matches none of the alternatives: missing required property `side`"
        );
        assert_eq!(
            messages(
                json!({"properties": {"shape": shapes}}),
                json!({"shape": {"kind": "circle", "r": "x"}})
            ),
            r#"matches none of the alternatives: /r: expected a number, got "x""#
        );
        let either = json!({"anyOf": [{"required": ["path"]}, {"required": ["url"]}]});
        assert_eq!(
            messages(either, json!({})),
            "matches none of the alternatives: missing required property `path`; or: missing required property `url`"
        );
        let choice = json!({"anyOf": [{"type": "null"}, {"enum": ["a", "b"]}]});
        assert_eq!(
            messages(choice, json!("c")),
            r#"matches none of the alternatives: "c" is not one of "a" or "b""#
        );
        let kinds = json!({"anyOf": [{"type": "null"}, {"type": "string"}]});
        assert_eq!(
            messages(kinds, json!(5)),
            "matches none of the alternatives: expected null, got 5; or: expected a string, got 5"
        );
        let both = json!({"oneOf": [{"minimum": 1}, {"maximum": 9}]});
        assert_eq!(messages(both, json!(5)), "matches more than one of the alternatives");
    }

    #[test]
    fn messages_are_bounded() {
        let violations = check(&json!({"type": "integer"}), &json!("x".repeat(1_000_000))).unwrap_err();
        assert!(violations[0].message.chars().count() <= 301);
        let many = check(&json!({"items": {"type": "string"}}), &json!(vec![1; 1000])).unwrap_err();
        assert_eq!(many.len(), MAX_VIOLATIONS);
    }

    #[test]
    fn large_values_report_the_first_violation() {
        let large = json!(vec![1; 100_000]);
        let first = |schema: &Value| check(schema, &large).unwrap_err();
        let violations = first(&json!({"items": {"type": "string"}}));
        assert_eq!(violations.iter().map(|v| v.path.as_str()).collect::<Vec<_>>(), ["/0"]);
        // Collecting the violations of every branch would be too expensive.
        let branch = json!({"items": {"allOf": [{"type": "string"}, {"minimum": 9}, {"maximum": 0}]}});
        let violations = first(&json!({"anyOf": [branch, branch]}));
        assert_eq!((violations.len(), violations[0].code.as_str()), (1, "schema"));
    }

    /// Each level of the value doubles the number of evaluations.
    #[test]
    fn a_deep_value_does_not_double_the_work_per_level() {
        let schema = json!({
            "$defs": {"n": {"allOf": [
                {"properties": {"c": {"$ref": "#/$defs/n"}}}, {"properties": {"c": {"$ref": "#/$defs/n"}}},
            ], "not": {"const": 7}}},
            "$ref": "#/$defs/n",
        });
        let mut deep = json!(7);
        for _ in 0..60 {
            deep = json!({"c": deep});
        }
        assert_eq!(check(&schema, &deep).unwrap_err()[0].code, "schema");
    }

    #[test]
    fn references_from_many_places_compile_fast() {
        let mut defs = serde_json::Map::new();
        for level in 0..60 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({"properties": {"a": next, "b": next}}));
        }
        defs.insert("d60".to_owned(), json!({"type": "string"}));
        let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
        assert_eq!(check(&schema, &json!({"a": {"b": {}}})), Ok(()));
    }

    #[test]
    fn a_recursive_schema_is_fine() {
        let tree = json!({
            "$defs": {"node": {"type": "object", "properties": {"children": {"items": {"$ref": "#/$defs/node"}}}}},
            "$ref": "#/$defs/node",
        });
        assert_eq!(check(&tree, &json!({"children": [{"children": []}]})), Ok(()));
        assert!(check(&tree, &json!({"children": [{"children": [1]}]})).is_err());
    }

    #[test]
    fn invalid_schemas_are_rejected_with_their_path() {
        for (schema, expected) in [
            (json!({"type": "strin"}), "invalid_schema"),
            (json!({"properties": {"a": {"minimum": "x"}}}), "invalid_schema"),
            (json!({"pattern": "("}), "invalid_schema"),
            (json!({"pattern": "(?=look)"}), "invalid_schema"),
            (json!({"pattern": "((a{1000}){1000}){1000}"}), "invalid_schema"),
            (json!({"$ref": "https://example.com/schema.json"}), "remote_reference"),
            (json!({"$ref": "file:///etc/passwd"}), "remote_reference"),
            (json!({"$ref": "other.json"}), "remote_reference"),
            (json!({"$ref": "#/$defs/gone"}), "missing_reference"),
            (json!({"$ref": "#anchor"}), "anchor_reference"),
            (json!({"$ref": "#"}), "reference_loop"),
            (json!(7), "invalid_schema"),
            (json!("x"), "invalid_schema"),
        ] {
            let problems = Schema::compile("input_schema", &schema).unwrap_err();
            assert_eq!(problems[0].code, expected, "{schema} {problems:?}");
            assert!(problems[0].field.starts_with("input_schema"), "{problems:?}");
        }
    }
}
