//! Checks that a hand-written schema matches the type that the function takes.
//!
//! A mismatch that would make every call fail, or that contradicts the schema, is reported when the tool is
//! registered. The check is conservative: it accepts what it cannot decide.

use std::collections::BTreeSet;

use haft_core::problem::Problem;
use haft_core::schema::{Schema, walk};
use serde_json::{Map, Value};

/// The nesting depth at which the comparison stops.
const MAX_DEPTH: usize = 16;

/// Returns the mismatches between a hand-written schema and the schema of the function's type.
pub(crate) fn mismatches(written: &Value, of_type: &Value) -> Vec<Problem> {
    let mut comparison = Comparison { written, of_type, problems: Vec::new() };
    comparison.compare_properties("", written, of_type, 0);
    comparison.problems
}

struct Comparison<'a> {
    written: &'a Value,
    of_type: &'a Value,
    problems: Vec<Problem>,
}

impl<'a> Comparison<'a> {
    fn compare_properties(&mut self, path: &str, given: &'a Value, of_type: &'a Value, depth: usize) {
        let (given, of_type) = (resolve(self.written, given), resolve(self.of_type, of_type));
        let (Some(ours), Some(theirs)) = (properties(given), properties(of_type)) else { return };
        for field in required(of_type) {
            let is_always_set = required(given).any(|name| name == field)
                || ours.get(field).is_some_and(|schema| schema.get("default").is_some());
            if !is_always_set {
                let message = "the function requires this field; make it required in the schema, give it a default, \
                               or make the field an `Option`";
                self.report(path, field, "not_required", message);
            }
        }
        let closed = of_type.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, schema) in ours {
            match theirs.get(name) {
                Some(of_field) => self.compare_values(&join(path, name), schema, of_field, depth + 1),
                None if closed => self.report(path, name, "unknown_field", "the function has no such field"),
                None => {}
            }
        }
    }

    fn compare_values(&mut self, path: &str, given: &'a Value, of_type: &'a Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let (given, of_type) = (resolve(self.written, given), resolve(self.of_type, of_type));
        if let (Some(allowed), Some(accepted)) =
            (types(self.written, given, 0), types(self.of_type, of_type, 0))
            && !allowed.is_empty()
            && (allowed.is_disjoint(&accepted) || allows_fractions_for_integer(given, &allowed, &accepted))
        {
            let message =
                format!("the schema allows {}, but the function takes {}", list(&allowed), list(&accepted));
            return self.report("", path, "wrong_type", &message);
        }
        if let (Some(allowed), Some(accepted)) = (constants(given), constants(of_type)) {
            for value in allowed.iter().filter(|value| !accepted.contains(value)) {
                let message = format!("the schema allows {value}, which the function does not accept");
                self.report("", path, "wrong_value", &message);
            }
        }
        if let Some(default) = given.get("default").filter(|default| !default.is_null()) {
            self.check_default(path, default, of_type);
        }
        self.compare_properties(path, given, of_type, depth);
        if let (Some(ours), Some(theirs)) = (given.get("items"), of_type.get("items")) {
            self.compare_values(&format!("{path}[]"), ours, theirs, depth + 1);
        }
    }

    /// Checks a default, which the function receives unchanged.
    fn check_default(&mut self, path: &str, default: &Value, of_type: &Value) {
        let mut schema = of_type.as_object().cloned().unwrap_or_default();
        schema.extend(self.of_type.get("$defs").map(|definitions| ("$defs".to_owned(), definitions.clone())));
        let Ok(schema) = Schema::compile("", &Value::Object(schema)) else { return };
        if let Err(violations) = schema.check(default) {
            let why = violations.first().map(|violation| violation.message.as_str()).unwrap_or_default();
            self.report("", path, "wrong_value", &format!("the function does not accept the default: {why}"));
        }
    }

    fn report(&mut self, path: &str, field: &str, code: &str, message: &str) {
        self.problems.push(Problem::new(join("input_schema.", &join(path, field)), code, message));
    }
}

/// Returns the JSON types that a schema allows; `None` if it does not restrict them.
fn types(root: &Value, schema: &Value, depth: usize) -> Option<BTreeSet<&'static str>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let schema = resolve(root, schema);
    if let Some(kind) = schema.get("type") {
        let mut types: BTreeSet<_> = match kind {
            Value::Array(several) => several.iter().filter_map(known_type).collect(),
            one => known_type(one).into_iter().collect(),
        };
        // `number` includes integers.
        if types.contains("number") {
            types.insert("integer");
        }
        return Some(types);
    }
    if let Some(values) = constants(schema) {
        return Some(values.into_iter().map(type_of).collect());
    }
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let mut all = BTreeSet::new();
    for choice in choices {
        all.extend(types(root, choice, depth + 1)?);
    }
    Some(all)
}

/// Returns whether the schema allows fractions where the function takes integers only.
fn allows_fractions_for_integer(
    given: &Value,
    allowed: &BTreeSet<&'static str>,
    accepted: &BTreeSet<&'static str>,
) -> bool {
    let is_whole = given.get("multipleOf").and_then(Value::as_f64).is_some_and(|step| step.fract() == 0.0)
        || constants(given).is_some();
    allowed.contains("number") && accepted.contains("integer") && !accepted.contains("number") && !is_whole
}

/// Returns the values of a schema that allows only listed values.
fn constants(schema: &Value) -> Option<Vec<&Value>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().collect());
    }
    if let Some(value) = schema.get("const") {
        return Some(vec![value]);
    }
    if schema.get("type").is_some_and(|kind| kind == "null") {
        return Some(vec![&Value::Null]);
    }
    let choices = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let lists: Option<Vec<Vec<&Value>>> = choices.iter().map(constants).collect();
    lists.map(|lists| lists.concat())
}

/// Follows `$ref` to a definition in the same document.
fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MAX_DEPTH {
        let reference = schema.get("$ref").and_then(Value::as_str);
        match reference.and_then(|reference| walk::resolve(root, reference)) {
            Some(definition) => schema = definition,
            None => break,
        }
    }
    schema
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn known_type(value: &Value) -> Option<&'static str> {
    let known = ["null", "boolean", "integer", "number", "string", "array", "object"];
    known.into_iter().find(|kind| value == kind)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn list(types: &BTreeSet<&'static str>) -> String {
    // `number` implies `integer`.
    let listed = types.iter().filter(|name| **name != "integer" || !types.contains("number"));
    let names: Vec<String> = listed.map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path if path.ends_with('.') => format!("{path}{name}"),
        path => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(given: &Value, of_type: &Value, expected: &[&str]) {
        let found: Vec<String> = mismatches(given, of_type).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{given}");
    }

    #[test]
    fn required_fields_of_the_function() {
        let of_type = json!({"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
                             "required": ["q"]});
        let text = json!({"type": "string"});
        check(&json!({"properties": {"q": text}, "required": ["q"]}), &of_type, &[]);
        check(&json!({"properties": {"q": {"type": "string", "default": "x"}}}), &of_type, &[]);
        let missing = "`input_schema.q`: the function requires this field; make it required in the schema, give it a \
                       default, or make the field an `Option`";
        check(&json!({"properties": {"q": text}}), &of_type, &[missing]);
        check(&json!({"properties": {}}), &of_type, &[missing]);
        check(&json!({}), &of_type, &[]);
    }

    #[test]
    fn types_must_overlap() {
        let of = |schema: Value| json!({"properties": {"x": schema}});
        let check =
            |given: Value, of_type: Value, expected: &[&str]| check(&of(given), &of(of_type), expected);
        check(json!({"type": "integer"}), json!({"type": "number"}), &[]);
        check(json!({"type": "number", "multipleOf": 2}), json!({"type": "integer"}), &[]);
        check(json!({"type": "number", "enum": [1, 2]}), json!({"type": "integer"}), &[]);
        check(
            json!({"type": "number"}),
            json!({"type": ["integer", "null"]}),
            &["`input_schema.x`: the schema allows `number`, but the function takes `integer` or `null`"],
        );
        check(json!({"type": "string"}), json!({"type": ["string", "null"]}), &[]);
        check(json!({"enum": ["a"]}), json!({"type": "string"}), &[]);
        check(json!({}), json!({"type": "string"}), &[]);
        check(json!({"type": "string"}), json!({"anyOf": [{"type": "null"}, {"type": "string"}]}), &[]);
        check(
            json!({"type": "integer"}),
            json!({"type": "string"}),
            &["`input_schema.x`: the schema allows `integer`, but the function takes `string`"],
        );
        check(
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "number"}}),
            &["`input_schema.x[]`: the schema allows `string`, but the function takes `number`"],
        );
        check(
            json!({"type": "integer", "default": -3}),
            json!({"type": ["integer", "null"], "minimum": 0}),
            &["`input_schema.x`: the function does not accept the default: -3 is less than the minimum of 0"],
        );
        check(
            json!({"enum": ["a", "c"]}),
            json!({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}),
            &["`input_schema.x`: the schema allows \"c\", which the function does not accept"],
        );
        check(
            json!({"enum": ["a", "c"]}),
            json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
            &["`input_schema.x`: the schema allows \"c\", which the function does not accept"],
        );
    }

    #[test]
    fn references_are_followed_to_a_bounded_depth() {
        let of_type = json!({
            "properties": {"tree": {"$ref": "#/$defs/Tree"}},
            "$defs": {"Tree": {"properties": {"next": {"$ref": "#/$defs/Tree"}, "leaf": {"type": "boolean"}},
                               "additionalProperties": false}}
        });
        let given = json!({"properties": {"tree": {"properties": {"next": {"properties": {
            "leaf": {"type": "string"}, "bark": {}}}}}}});
        check(
            &given,
            &of_type,
            &[
                "`input_schema.tree.next.leaf`: the schema allows `string`, but the function takes `boolean`",
                "`input_schema.tree.next.bark`: the function has no such field",
            ],
        );
        check(&of_type, &of_type, &[]);
        let endless = json!({"$ref": "#"});
        check(&endless, &endless, &[]);
    }
}
