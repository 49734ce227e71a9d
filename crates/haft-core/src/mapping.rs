//! Mappings: JSON whose strings refer to values, such as `{"city": "$args.city"}`.
//!
//! A string that is exactly one reference becomes the value with its JSON type; inside a longer string the value is
//! inserted as text; `$$` is a dollar sign. A value is never read as a mapping again. Settings of renderers and the
//! steps of a tool use this notation, each with its own names.

use serde_json::{Map, Value};

/// The deepest nesting of a mapping; what is deeper is taken literally.
const MAX_DEPTH: usize = 32;

/// The names that references start with in one kind of mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// The names that may be followed by a path.
    pub with_path: &'static [&'static str],
    /// The names that are a value on their own.
    pub without_path: &'static [&'static str],
    /// What becomes of a reference without a value in a map.
    pub missing: MissingValue,
}

/// What becomes of a reference that has no value, where it is a value of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingValue {
    /// It becomes `null`.
    Null,
    /// The entry is left out.
    Omit,
}

/// The mappings of `steps`: `$args`, `$steps`, `$item` and `$index`.
pub const STEPS: Mapping =
    Mapping { with_path: &["args", "steps", "item"], without_path: &["index"], missing: MissingValue::Omit };

/// `$name` with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<'a> {
    /// As it is written.
    pub text: &'a str,
    /// The name after the dollar sign.
    pub name: &'a str,
    /// The fields and list positions after the name.
    pub path: Vec<&'a str>,
}

impl Mapping {
    /// Fills in the values of references.
    pub fn fill(self, mapping: &Value, resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>) -> Value {
        self.fill_value(mapping, MAX_DEPTH, resolve).unwrap_or(Value::Null)
    }

    /// Fills in the values of the references of a map.
    pub fn fill_map(
        self,
        mapping: &Map<String, Value>,
        resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>,
    ) -> Map<String, Value> {
        self.fill_fields(mapping, MAX_DEPTH, resolve)
    }

    /// Calls `visit` with every reference of a mapping, and the string that it is part of.
    pub fn visit<'a>(self, mapping: &'a Value, visit: &mut dyn FnMut(Reference<'a>, &'a str)) {
        self.visit_value(mapping, MAX_DEPTH, visit);
    }

    /// Returns the reference that a whole text is.
    pub fn whole(self, text: &str) -> Option<Reference<'_>> {
        self.parse(text).filter(|(_, rest)| rest.is_empty()).map(|(reference, _)| reference)
    }

    /// Parses the reference at the start of a text; returns it with what follows.
    pub fn parse(self, text: &str) -> Option<(Reference<'_>, &str)> {
        let after_sign = text.strip_prefix('$')?;
        let is_at_start = |name: &&&str| {
            after_sign.strip_prefix(**name).is_some_and(|rest| !rest.starts_with(is_name_character))
        };
        let name = self.with_path.iter().chain(self.without_path).find(is_at_start)?;
        let mut rest = after_sign.get(name.len()..)?;
        let mut path = Vec::new();
        if self.with_path.contains(name) {
            while let Some((step, after)) = parse_step(rest) {
                path.push(step);
                rest = after;
            }
        }
        let text = text.get(..text.len() - rest.len())?;
        Some((Reference { text, name, path }, rest))
    }

    /// Returns `None` if the mapping is exactly one reference, which has no value.
    fn fill_value(
        self,
        mapping: &Value,
        depth: usize,
        resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>,
    ) -> Option<Value> {
        match mapping {
            Value::String(text) => self.fill_text(text, resolve),
            Value::Array(items) if depth > 0 => {
                let mut filled = Vec::with_capacity(items.len());
                for item in items {
                    filled.push(self.fill_value(item, depth - 1, resolve).unwrap_or(Value::Null));
                }
                Some(Value::Array(filled))
            }
            Value::Object(fields) if depth > 0 => {
                Some(Value::Object(self.fill_fields(fields, depth - 1, resolve)))
            }
            other => Some(other.clone()),
        }
    }

    fn fill_fields(
        self,
        fields: &Map<String, Value>,
        depth: usize,
        resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>,
    ) -> Map<String, Value> {
        let mut filled = Map::new();
        for (name, mapping) in fields {
            match (self.fill_value(mapping, depth, resolve), self.missing) {
                (Some(value), _) => drop(filled.insert(name.clone(), value)),
                (None, MissingValue::Null) => drop(filled.insert(name.clone(), Value::Null)),
                (None, MissingValue::Omit) => {}
            }
        }
        filled
    }

    fn fill_text(
        self,
        text: &str,
        resolve: &mut dyn FnMut(&Reference<'_>) -> Option<Value>,
    ) -> Option<Value> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('$') {
            let (before, from) = rest.split_at(start);
            filled.push_str(before);
            if let Some(after) = from.strip_prefix("$$") {
                filled.push('$');
                rest = after;
                continue;
            }
            let Some((reference, after)) = self.parse(from) else {
                filled.push('$');
                rest = from.get(1..).unwrap_or_default();
                continue;
            };
            let value = resolve(&reference);
            if reference.text.len() == text.len() {
                return value;
            }
            match value {
                Some(Value::String(value)) => filled.push_str(&value),
                Some(Value::Null) | None => {}
                Some(other) => filled.push_str(&other.to_string()),
            }
            rest = after;
        }
        filled.push_str(rest);
        Some(Value::String(filled))
    }

    fn visit_value<'a>(
        self,
        mapping: &'a Value,
        depth: usize,
        visit: &mut dyn FnMut(Reference<'a>, &'a str),
    ) {
        match mapping {
            Value::String(text) => self.visit_text(text, visit),
            Value::Array(items) if depth > 0 => {
                for item in items {
                    self.visit_value(item, depth - 1, visit);
                }
            }
            Value::Object(fields) if depth > 0 => {
                for value in fields.values() {
                    self.visit_value(value, depth - 1, visit);
                }
            }
            _ => {}
        }
    }

    fn visit_text<'a>(self, text: &'a str, visit: &mut dyn FnMut(Reference<'a>, &'a str)) {
        let mut rest = text;
        while let Some(start) = rest.find('$') {
            let from = rest.get(start..).unwrap_or_default();
            rest = if let Some(after) = from.strip_prefix("$$") {
                after
            } else if let Some((reference, after)) = self.parse(from) {
                visit(reference, text);
                after
            } else {
                from.get(1..).unwrap_or_default()
            };
        }
    }
}

impl Reference<'_> {
    /// Follows the path from a value.
    pub fn walk<'v>(&self, start: &'v Value) -> Option<&'v Value> {
        walk(start, &self.path)
    }
}

/// Follows a path from a value: fields of maps and positions in lists.
pub fn walk<'v>(start: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(start, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

/// Parses `.name`, `.0` or `[0]`. A dot at the end of a sentence is not part of a path.
fn parse_step(text: &str) -> Option<(&str, &str)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (step, after) = inside.split_once(']')?;
        let is_number = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        return is_number.then_some((step, after));
    }
    let name = text.strip_prefix('.')?;
    let end = name.find(|character| !is_name_character(character)).unwrap_or(name.len());
    (end > 0).then(|| name.split_at(end))
}

fn is_name_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(mapping: &Value, expected: &Value) {
        let values = json!({
            "args": {"city": "Bern", "days": 3, "tags": ["a", "b"], "none": null},
            "steps": {"fetch": {"ok": true, "value": {"rows": [{"name": "x"}]}}},
            "item": {"id": 7},
            "index": 2,
        });
        let found =
            STEPS.fill(mapping, &mut |reference| reference.walk(values.get(reference.name)?).cloned());
        assert_eq!(&found, expected, "{mapping}");
    }

    #[test]
    fn references_become_values() {
        check(&json!("$args.days"), &json!(3));
        check(&json!("$args.tags[1]"), &json!("b"));
        check(&json!("$args.tags.0"), &json!("a"));
        check(&json!("$steps.fetch.value.rows[0].name"), &json!("x"));
        check(&json!("$steps.fetch.ok"), &json!(true));
        check(&json!("$index"), &json!(2));
        check(&json!({"a": ["$item.id"]}), &json!({"a": [7]}));
        check(&json!(["$args.other", "$args.none"]), &json!([null, null]));
        check(&json!({"gone": "$args.other", "kept": "$args.none"}), &json!({"kept": null}));
    }

    #[test]
    fn references_in_a_text_are_inserted() {
        check(&json!("for $args.days days in $args.city."), &json!("for 3 days in Bern."));
        check(&json!("$args.tags!"), &json!("[\"a\",\"b\"]!"));
        check(&json!("<$args.other>"), &json!("<>"));
        check(&json!("$$args.city costs $5, $ and $argsx"), &json!("$args.city costs $5, $ and $argsx"));
        check(&json!("${city} $index.x"), &json!("${city} 2.x"));
    }

    #[test]
    fn all_references_are_visited() {
        let mapping = json!({"a": "$args.x and $steps.y.ok", "b": [{"c": "$$item"}, "$index"]});
        let mut found = Vec::new();
        STEPS.visit(&mapping, &mut |reference, _| found.push(reference.text));
        assert_eq!(found, ["$args.x", "$steps.y.ok", "$index"]);
    }
}
