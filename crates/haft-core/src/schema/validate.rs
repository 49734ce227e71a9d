//! Compiling a schema and checking values against it.

use std::fmt;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, Validator};
use serde::Serialize;
use serde_json::Value;

use crate::problem::Problem;
use crate::schema::{bounds, walk};
use crate::schema::message::{message, unexpected};

/// The most violations that are listed of one value.
const MAX_VIOLATIONS: usize = 20;
/// The largest automaton that a `pattern` may need.
const PATTERN_SIZE: usize = 1024 * 1024;

/// The most values within a value of which every violation is sought.
const MAX_LISTED_NODES: u64 = 4000;
/// The most judgements (of one schema on one value) that a search for violations may come to: the library
/// collects each of them, and what an `anyOf` found as well, before it hands out the first.
const MAX_JUDGEMENTS: u64 = 1_000_000;
/// The same, where the search stops at the first violation and keeps nothing on its way.
const MAX_JUDGEMENTS_TO_FIRST: u64 = 20_000_000;

/// A compiled schema.
pub struct Schema {
    /// `None` for the schema that accepts everything.
    validator: Option<Validator>,
    /// How many schemas judge one value at most.
    weight: u64,
    /// Whether it has an `anyOf` or `oneOf`.
    has_choices: bool,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// One way in which a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where in the value, as a JSON pointer; empty for the whole.
    pub path: String,
    /// Which rule, such as `required`.
    pub code: String,
    /// What was expected.
    pub message: String,
}

impl Schema {
    /// Compiles a schema; `field` is where it stands in its definition.
    ///
    /// References to other documents, loops of references, and schemas beyond the bounds are refused.
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
                let place = error.instance_path().as_str().replace('/', ".");
                let message = format!("not a valid JSON Schema: {}", message(&error));
                vec![Problem::new(format!("{field}{place}"), "invalid_schema", message)]
            })?;
        Ok(Self { validator: Some(validator), weight, has_choices: has_choices(schema) })
    }

    /// Checks a value; returns the violations, bounded in number and length.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        let Some(validator) = &self.validator else { return Ok(()) };
        // Nearly every value is valid, and to know that takes no memory.
        if validator.is_valid(value) {
            return Ok(());
        }
        let (nodes, depth) = measure(value);
        let judgements = nodes.saturating_mul(self.weight.saturating_pow(depth));
        if nodes <= MAX_LISTED_NODES && judgements <= MAX_JUDGEMENTS {
            let errors = validator.iter_errors(value).take(MAX_VIOLATIONS);
            let mut violations: Vec<_> = errors.map(|error| violation(value, &error)).collect();
            violations.sort_by(|a, b| (&a.path, &a.code).cmp(&(&b.path, &b.code)));
            return if violations.is_empty() { Ok(()) } else { Err(violations) };
        }
        let most = if self.has_choices { MAX_JUDGEMENTS } else { MAX_JUDGEMENTS_TO_FIRST };
        if judgements <= most {
            return validator.validate(value).map_err(|error| vec![violation(value, &error)]);
        }
        Err(vec![Violation {
            path: String::new(),
            code: "schema".to_owned(),
            message: "does not fit the schema; it is too large to say where".to_owned(),
        }])
    }
}

/// Returns how many values there are in a value, itself included, and how many levels.
fn measure(value: &Value) -> (u64, u32) {
    let (mut nodes, mut deepest) = (0_u64, 1);
    let mut pending = vec![(value, 1_u32)];
    while let Some((value, depth)) = pending.pop() {
        nodes += 1;
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => pending.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    (nodes, deepest)
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
    // Where no properties are declared, the library says of one only that it is there.
    let closed = error.schema_path().as_str().ends_with("/additionalProperties");
    let map = whole.pointer(path).and_then(Value::as_object);
    match (error.kind(), map) {
        (ValidationErrorKind::FalseSchema, Some(map)) if closed => Violation {
            path: path.to_owned(),
            code: "additionalProperties".to_owned(),
            message: unexpected(map.keys()),
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
            "message": "Additional properties are not allowed ('x' was unexpected)"
          },
          {
            "path": "",
            "code": "required",
            "message": "\"unit\" is a required property"
          },
          {
            "path": "/city",
            "code": "type",
            "message": "3 is not of type \"string\""
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
    fn what_takes_nothing_names_what_came() {
        let schema =
            json!({"properties": {"none": {"type": "object", "additionalProperties": false}, "no": false}});
        let violations =
            check(&schema, &json!({"none": {"city": "Oslo", "days": 3}, "no": "thanks"})).unwrap_err();
        insta::assert_json_snapshot!(violations, @r#"
        [
          {
            "path": "/no",
            "code": "falseSchema",
            "message": "is not taken; leave it out"
          },
          {
            "path": "/none",
            "code": "additionalProperties",
            "message": "takes no properties; leave out `city` and `days`"
          }
        ]
        "#);
    }

    #[test]
    fn a_message_says_what_would_fit() {
        let told = |schema: Value, value: Value| {
            let violations = check(&schema, &value).unwrap_err();
            violations.iter().map(|v| v.message.clone()).collect::<Vec<_>>().join(" | ")
        };
        let methods = json!({"enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]});
        assert_eq!(
            told(methods, json!("FETCH")),
            r#""FETCH" is not one of "GET", "POST", "PUT", "PATCH", "DELETE" or "HEAD""#
        );
        let shapes = json!({"oneOf": [
            {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
            {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
        ]});
        assert_eq!(
            told(shapes.clone(), json!({"kind": "sqare", "side": 1})),
            r#"fits none of the alternatives: /kind: "sqare" is not one of "circle" or "square""#
        );
        assert_eq!(
            told(shapes.clone(), json!({"kind": "square"})),
            r#"fits none of the alternatives: "side" is a required property"#
        );
        assert_eq!(
            told(json!({"properties": {"shape": shapes}}), json!({"shape": {"kind": "circle", "r": "x"}})),
            r#"fits none of the alternatives: /r: "x" is not of type "number""#
        );
        let either = json!({"anyOf": [{"required": ["path"]}, {"required": ["url"]}]});
        assert_eq!(
            told(either, json!({})),
            r#"fits none of the alternatives: "path" is a required property; or: "url" is a required property"#
        );
        let choice = json!({"anyOf": [{"type": "null"}, {"enum": ["a", "b"]}]});
        assert_eq!(
            told(choice, json!("c")),
            r#"fits none of the alternatives: "c" is not one of "a" or "b""#
        );
        let kinds = json!({"anyOf": [{"type": "null"}, {"type": "string"}]});
        assert_eq!(
            told(kinds, json!(5)),
            r#"fits none of the alternatives: 5 is not of type "null"; or: 5 is not of type "string""#
        );
        let both = json!({"oneOf": [{"minimum": 1}, {"maximum": 9}]});
        assert_eq!(told(both, json!(5)), "fits more than one of the alternatives");
    }

    #[test]
    fn messages_are_bounded() {
        let violations = check(&json!({"type": "integer"}), &json!("x".repeat(1_000_000))).unwrap_err();
        assert!(violations[0].message.chars().count() <= 301);
        let many = check(&json!({"items": {"type": "string"}}), &json!(vec![1; 1000])).unwrap_err();
        assert_eq!(many.len(), MAX_VIOLATIONS);
    }

    #[test]
    fn of_a_large_value_the_first_violation_is_told() {
        let large = json!(vec![1; 100_000]);
        let first = |schema: &Value| check(schema, &large).unwrap_err();
        let violations = first(&json!({"items": {"type": "string"}}));
        assert_eq!(violations.iter().map(|v| v.path.as_str()).collect::<Vec<_>>(), ["/0"]);
        // The library lists everything that is wrong with every branch, so it is not asked.
        let branch = json!({"items": {"allOf": [{"type": "string"}, {"minimum": 9}, {"maximum": 0}]}});
        let violations = first(&json!({"anyOf": [branch, branch]}));
        assert_eq!((violations.len(), violations[0].code.as_str()), (1, "schema"));
    }

    /// Every level of the value is judged twice by each of the judgements of the level above.
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
    fn what_is_no_schema_is_refused_with_its_place() {
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
