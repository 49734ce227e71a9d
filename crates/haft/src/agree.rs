//! Whether a schema that was said by hand fits the type that a function takes.
//!
//! What would fail at every call, or could not be called as the schema promises, is told when the tool is
//! registered. The check is one-sided: what it cannot judge, it lets through.

use std::collections::BTreeSet;

use haft_core::problem::Problem;
use haft_core::schema::{Schema, walk};
use serde_json::{Map, Value};

/// How deep schemas are compared.
const MAX_DEPTH: usize = 16;

/// Says where a schema and the schema of a type cannot both hold.
pub(crate) fn disagreements(given: &Value, of_type: &Value) -> Vec<Problem> {
    let mut comparison = Comparison { given, of_type, found: Vec::new() };
    comparison.objects("", given, of_type, 0);
    comparison.found
}

struct Comparison<'a> {
    given: &'a Value,
    of_type: &'a Value,
    found: Vec<Problem>,
}

impl<'a> Comparison<'a> {
    fn objects(&mut self, path: &str, given: &'a Value, of_type: &'a Value, depth: usize) {
        let (given, of_type) = (resolve(self.given, given), resolve(self.of_type, of_type));
        let (Some(ours), Some(theirs)) = (properties(given), properties(of_type)) else { return };
        for field in required(of_type) {
            let is_sure = required(given).any(|name| name == field)
                || ours.get(field).is_some_and(|schema| schema.get("default").is_some());
            if !is_sure {
                let message = "the function needs it; say that it is required, or give it a default, or make the \
                               field an `Option`";
                self.tell(path, field, "not_required", message);
            }
        }
        let closed = of_type.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, schema) in ours {
            match theirs.get(name) {
                Some(of_field) => self.values(&join(path, name), schema, of_field, depth + 1),
                None if closed => self.tell(path, name, "unknown_field", "the function takes no such field"),
                None => {}
            }
        }
    }

    fn values(&mut self, path: &str, given: &'a Value, of_type: &'a Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let (given, of_type) = (resolve(self.given, given), resolve(self.of_type, of_type));
        if let (Some(said), Some(taken)) = (self.kinds(given, 0), self.kinds_of_type(of_type))
            && !said.is_empty()
            && (said.is_disjoint(&taken) || takes_whole_numbers_only(given, &said, &taken))
        {
            let message = format!("the schema says {}, but the function takes {}", list(&said), list(&taken));
            return self.tell("", path, "wrong_type", &message);
        }
        if let (Some(said), Some(taken)) = (constants(given), constants(of_type)) {
            for value in said.iter().filter(|value| !taken.contains(value)) {
                let message = format!("the schema allows {value}, which the function does not take");
                self.tell("", path, "wrong_value", &message);
            }
        }
        if let Some(default) = given.get("default").filter(|default| !default.is_null()) {
            self.default(path, default, of_type);
        }
        self.objects(path, given, of_type, depth);
        if let (Some(ours), Some(theirs)) = (given.get("items"), of_type.get("items")) {
            self.values(&format!("{path}[]"), ours, theirs, depth + 1);
        }
    }

    /// A default is passed to the function as it is.
    fn default(&mut self, path: &str, default: &Value, of_type: &Value) {
        let mut schema = of_type.as_object().cloned().unwrap_or_default();
        schema.extend(self.of_type.get("$defs").map(|definitions| ("$defs".to_owned(), definitions.clone())));
        let Ok(schema) = Schema::compile("", &Value::Object(schema)) else { return };
        if let Err(violations) = schema.check(default) {
            let why = violations.first().map(|violation| violation.message.as_str()).unwrap_or_default();
            self.tell("", path, "wrong_value", &format!("the function does not take the default: {why}"));
        }
    }

    fn tell(&mut self, path: &str, field: &str, code: &str, message: &str) {
        self.found.push(Problem::new(join("input_schema.", &join(path, field)), code, message));
    }

    fn kinds_of_type(&self, schema: &Value) -> Option<BTreeSet<&'static str>> {
        kinds(self.of_type, schema, 0)
    }

    fn kinds(&self, schema: &Value, depth: usize) -> Option<BTreeSet<&'static str>> {
        kinds(self.given, schema, depth)
    }
}

/// Returns which JSON types a schema lets through; `None` where it does not say.
fn kinds(root: &Value, schema: &Value, depth: usize) -> Option<BTreeSet<&'static str>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let schema = resolve(root, schema);
    if let Some(kind) = schema.get("type") {
        let mut kinds: BTreeSet<_> = match kind {
            Value::Array(several) => several.iter().filter_map(known_kind).collect(),
            one => known_kind(one).into_iter().collect(),
        };
        // Every whole number is a number.
        if kinds.contains("number") {
            kinds.insert("integer");
        }
        return Some(kinds);
    }
    if let Some(values) = constants(schema) {
        return Some(values.into_iter().map(kind_of).collect());
    }
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    let mut all = BTreeSet::new();
    for choice in choices {
        all.extend(kinds(root, choice, depth + 1)?);
    }
    Some(all)
}

/// Tells whether a schema lets fractions through that the function cannot take.
fn takes_whole_numbers_only(
    given: &Value,
    said: &BTreeSet<&'static str>,
    taken: &BTreeSet<&'static str>,
) -> bool {
    let is_whole = given.get("multipleOf").and_then(Value::as_f64).is_some_and(|step| step.fract() == 0.0)
        || constants(given).is_some();
    said.contains("number") && taken.contains("integer") && !taken.contains("number") && !is_whole
}

/// Returns the values that a schema lists, where it takes no others.
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

/// Follows `$ref` to a definition of the same document.
fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MAX_DEPTH {
        let reference = schema.get("$ref").and_then(Value::as_str);
        match reference.and_then(|reference| walk::resolve(root, reference)) {
            Some(found) => schema = found,
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

fn known_kind(value: &Value) -> Option<&'static str> {
    let known = ["null", "boolean", "integer", "number", "string", "array", "object"];
    known.into_iter().find(|kind| value == kind)
}

fn kind_of(value: &Value) -> &'static str {
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

fn list(kinds: &BTreeSet<&'static str>) -> String {
    // A number may be whole; that need not be said.
    let told = kinds.iter().filter(|kind| **kind != "integer" || !kinds.contains("number"));
    let names: Vec<String> = told.map(|kind| format!("`{kind}`")).collect();
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
        let found: Vec<String> = disagreements(given, of_type).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{given}");
    }

    #[test]
    fn what_the_function_needs_has_to_come() {
        let of_type = json!({"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
                             "required": ["q"]});
        let text = json!({"type": "string"});
        check(&json!({"properties": {"q": text}, "required": ["q"]}), &of_type, &[]);
        check(&json!({"properties": {"q": {"type": "string", "default": "x"}}}), &of_type, &[]);
        let told = "`input_schema.q`: the function needs it; say that it is required, or give it a default, or make \
                    the field an `Option`";
        check(&json!({"properties": {"q": text}}), &of_type, &[told]);
        check(&json!({"properties": {}}), &of_type, &[told]);
        check(&json!({}), &of_type, &[]);
    }

    #[test]
    fn types_have_to_have_something_in_common() {
        let of = |schema: Value| json!({"properties": {"x": schema}});
        let check =
            |given: Value, of_type: Value, expected: &[&str]| check(&of(given), &of(of_type), expected);
        check(json!({"type": "integer"}), json!({"type": "number"}), &[]);
        check(json!({"type": "number", "multipleOf": 2}), json!({"type": "integer"}), &[]);
        check(json!({"type": "number", "enum": [1, 2]}), json!({"type": "integer"}), &[]);
        check(
            json!({"type": "number"}),
            json!({"type": ["integer", "null"]}),
            &["`input_schema.x`: the schema says `number`, but the function takes `integer` or `null`"],
        );
        check(json!({"type": "string"}), json!({"type": ["string", "null"]}), &[]);
        check(json!({"enum": ["a"]}), json!({"type": "string"}), &[]);
        check(json!({}), json!({"type": "string"}), &[]);
        check(json!({"type": "string"}), json!({"anyOf": [{"type": "null"}, {"type": "string"}]}), &[]);
        check(
            json!({"type": "integer"}),
            json!({"type": "string"}),
            &["`input_schema.x`: the schema says `integer`, but the function takes `string`"],
        );
        check(
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "number"}}),
            &["`input_schema.x[]`: the schema says `string`, but the function takes `number`"],
        );
        check(
            json!({"type": "integer", "default": -3}),
            json!({"type": ["integer", "null"], "minimum": 0}),
            &["`input_schema.x`: the function does not take the default: -3 is less than the minimum of 0"],
        );
        check(
            json!({"enum": ["a", "c"]}),
            json!({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}),
            &["`input_schema.x`: the schema allows \"c\", which the function does not take"],
        );
        check(
            json!({"enum": ["a", "c"]}),
            json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
            &["`input_schema.x`: the schema allows \"c\", which the function does not take"],
        );
    }

    #[test]
    fn references_and_depths_are_followed_and_bounded() {
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
                "`input_schema.tree.next.leaf`: the schema says `string`, but the function takes `boolean`",
                "`input_schema.tree.next.bark`: the function takes no such field",
            ],
        );
        check(&of_type, &of_type, &[]);
        let endless = json!({"$ref": "#"});
        check(&endless, &endless, &[]);
    }
}
