//! Converts schemas to OpenAI's strict mode, in which the arguments of a model always match the schema.
//!
//! Every object is closed and requires all its properties; an optional one accepts null instead, which a call treats as
//! omitted. Constraints that strict mode does not support (`maxLength`, `not`) are added to descriptions; calls are
//! validated against the original schema anyway. Objects with arbitrary keys, values of any type and tuples cannot be
//! expressed; such a tool is exported without strict mode.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::parts::{alternatives, definition, definition_name, description, has_properties, merge_all_of};
use haft_core::problem::{Problem, excerpt};
use haft_core::schema::normalize::allow_null;
use haft_core::schema::walk::{MAX_DEPTH, includes_type, lists_name};

/// The documented limits of OpenAI for one schema.
const MAX_PROPERTIES: usize = 5000;
const MAX_LEVELS: usize = 10;
const MAX_ENUM_VALUES: usize = 1000;
const MAX_CHARS: usize = 120_000;
const LONG_ENUM: usize = 250;
const MAX_LONG_ENUM_CHARS: usize = 15_000;

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Keywords that strict mode supports.
const KEPT_KEYWORDS: [&str; 10] = [
    "title",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "const",
];
/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 5;

/// Rewrites a schema, or returns why strict mode does not support it.
pub(super) fn rewrite(schema: Map<String, Value>) -> Result<Value, Vec<Problem>> {
    let root = Value::Object(schema);
    let mut rewriter = StrictRewriter::new(&root);
    let mut made = rewriter.object("input_schema", root.as_object().unwrap_or(&Map::new()), Depth::top());
    rewriter.definitions(&mut made);
    rewriter.limits();
    if rewriter.problems.is_empty() { Ok(Value::Object(made)) } else { Err(rewriter.problems) }
}

/// The depth of a schema: in the document, and in the value that it describes.
#[derive(Clone, Copy)]
struct Depth {
    left: usize,
    level: usize,
}

impl Depth {
    fn top() -> Self {
        Self { left: MAX_DEPTH, level: 1 }
    }

    fn inner(self) -> Self {
        Self { left: self.left.saturating_sub(1), level: self.level + 1 }
    }

    fn same(self) -> Self {
        Self { left: self.left.saturating_sub(1), ..self }
    }
}

struct StrictRewriter<'a> {
    root: &'a Value,
    problems: Vec<Problem>,
    /// The definitions that are referenced.
    referenced: BTreeSet<String>,
    properties: usize,
    values: usize,
    chars: usize,
    levels: usize,
}

impl<'a> StrictRewriter<'a> {
    fn new(root: &'a Value) -> Self {
        let referenced = BTreeSet::new();
        Self { root, problems: Vec::new(), referenced, properties: 0, values: 0, chars: 0, levels: 0 }
    }

    fn reject(&mut self, path: &str, message: &str) -> Value {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem::new(path, "not_strict", message));
        }
        json!({})
    }

    fn subschema(&mut self, path: &str, schema: &Value, depth: Depth) -> Value {
        let Value::Object(own) = schema else {
            return self.reject(path, "strict mode needs a type for every value; add `type`");
        };
        if depth.left == 0 || self.problems.len() >= MAX_PROBLEMS {
            return json!({});
        }
        if let Some(Value::String(reference)) = own.get("$ref") {
            return self.reference(path, own, reference);
        }
        let Some(own) = merge_all_of(self.root, own) else {
            return self.reject(
                path,
                "strict mode does not support this `allOf`, which cannot be merged into one schema",
            );
        };
        let simple = !includes_type(own.get("type"), "object") && own.contains_key("type");
        match alternatives(&own) {
            // Next to a type or properties, alternatives only add constraints.
            Some(choice) if !simple && !has_properties(&own) => self.choice(path, &own, choice, depth),
            _ if includes_type(own.get("type"), "object") || own.contains_key("properties") => {
                Value::Object(self.object(path, &own, depth))
            }
            _ => self.plain(path, &own, depth),
        }
    }

    /// Rewrites a reference, which must be to a definition or to the root and has no other keywords beside it.
    fn reference(&mut self, path: &str, own: &Map<String, Value>, reference: &str) -> Value {
        let target = match definition_name(reference) {
            Some(name) => {
                let target = format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1"));
                self.referenced.insert(name);
                target
            }
            None if reference == "#" => reference.to_owned(),
            None => return self.reject(path, "strict mode supports only references to `$defs`"),
        };
        match description(own, |_| false) {
            Some(text) => json!({"anyOf": [{"$ref": target}], "description": text}),
            None => json!({"$ref": target}),
        }
    }

    fn choice(&mut self, path: &str, own: &Map<String, Value>, choice: &[Value], depth: Depth) -> Value {
        let mut made = Vec::new();
        for (number, branch) in choice.iter().enumerate() {
            let mut branch = branch.clone();
            if let (Value::Object(branch), Some(kind)) = (&mut branch, own.get("type"))
                && !branch.contains_key("$ref")
            {
                branch.entry("type").or_insert_with(|| kind.clone());
            }
            made.push(self.subschema(&format!("{path}.anyOf.{number}"), &branch, depth.same()));
        }
        Value::Object(described(own, Map::from_iter([("anyOf".to_owned(), Value::Array(made))])))
    }

    fn object(&mut self, path: &str, own: &Map<String, Value>, depth: Depth) -> Map<String, Value> {
        self.levels = self.levels.max(depth.level);
        if allows_other_keys(own, depth.level == 1) {
            self.reject(
                path,
                "strict mode does not support objects with arbitrary keys; declare the properties",
            );
        }
        let required = |name: &str| lists_name(own.get("required"), name);
        let mut properties = Map::new();
        for (name, schema) in own.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.properties += 1;
            self.chars += name.len();
            let inner = self.subschema(&format!("{path}.{}", excerpt(name, 60)), schema, depth.inner());
            properties.insert(name.clone(), if required(name) { inner } else { nullable(inner) });
        }
        let names = properties.keys().map(String::as_str).collect();
        let kind = own.get("type").cloned().unwrap_or_else(|| json!("object"));
        let mut made = Map::new();
        made.insert("type".to_owned(), kind);
        made.insert("properties".to_owned(), Value::Object(properties));
        made.insert("required".to_owned(), names);
        made.insert("additionalProperties".to_owned(), json!(false));
        described(own, made)
    }

    /// Rewrites the schema of a value that is not an object.
    fn plain(&mut self, path: &str, own: &Map<String, Value>, depth: Depth) -> Value {
        let mut made = Map::new();
        match own.get("type").cloned().or_else(|| types_of(own)) {
            Some(kind) => drop(made.insert("type".to_owned(), kind)),
            None => {
                return self.reject(path, "strict mode needs a type for every value; add `type`");
            }
        }
        if includes_type(made.get("type"), "array") {
            let Some(items) = own.get("items").filter(|_| !own.contains_key("prefixItems")) else {
                let message = "strict mode needs one schema for all items of an array; set `items`";
                return self.reject(path, message);
            };
            self.levels = self.levels.max(depth.level);
            let items = self.subschema(&format!("{path}.items"), items, depth.inner());
            made.insert("items".to_owned(), items);
        }
        if let Some(Value::Array(list)) = own.get("enum") {
            self.enum_values(path, list);
            made.insert("enum".to_owned(), Value::Array(list.clone()));
        }
        if let Some(Value::String(text)) = own.get("const") {
            self.chars += text.len();
        }
        let format = own.get("format").filter(|format| FORMATS.iter().any(|known| format == known));
        if let Some(format) = format {
            made.insert("format".to_owned(), format.clone());
        }
        Value::Object(described(own, made))
    }

    fn enum_values(&mut self, path: &str, list: &[Value]) {
        let chars: usize = list.iter().filter_map(Value::as_str).map(str::len).sum();
        self.values += list.len();
        self.chars += chars;
        if list.iter().any(|value| value.is_object() || value.is_array()) {
            self.reject(path, "strict mode supports only strings, numbers, booleans and null in `enum`");
        } else if list.len() > LONG_ENUM && chars > MAX_LONG_ENUM_CHARS {
            let message = format!(
                "strict mode allows at most {MAX_LONG_ENUM_CHARS} characters in an `enum` with more than {LONG_ENUM} values"
            );
            self.reject(path, &message);
        }
    }

    /// Adds the definitions that are referenced, directly or indirectly.
    fn definitions(&mut self, made: &mut Map<String, Value>) {
        let mut defs = Map::new();
        while let Some(name) = self.referenced.iter().find(|name| !defs.contains_key(*name)).cloned() {
            let path = format!("input_schema.$defs.{}", excerpt(&name, 60));
            self.chars += name.len();
            let root = self.root;
            let written = match definition(root, &name) {
                Some(schema) => self.subschema(&path, schema, Depth::top()),
                None => self.reject(&path, "definition not found"),
            };
            defs.insert(name, written);
        }
        if !defs.is_empty() {
            made.insert("$defs".to_owned(), Value::Object(defs));
        }
    }

    fn limits(&mut self) {
        for (what, count, limit) in [
            ("properties", self.properties, MAX_PROPERTIES),
            ("levels of objects and lists", self.levels, MAX_LEVELS),
            ("values in `enum`", self.values, MAX_ENUM_VALUES),
            ("characters in names and `enum`", self.chars, MAX_CHARS),
        ] {
            if count > limit {
                let message = format!("strict mode allows at most {limit} {what}; the schema has {count}");
                self.reject("input_schema", &message);
            }
        }
    }
}

/// Adds the supported keywords, and describes the others.
fn described(own: &Map<String, Value>, mut made: Map<String, Value>) -> Map<String, Value> {
    for key in KEPT_KEYWORDS {
        if let Some(value) = own.get(key) {
            made.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(text) = description(own, |key| made.contains_key(key)) {
        made.insert("description".to_owned(), text.into());
    }
    made
}

/// Returns whether an object is meant to have properties that are not declared.
fn allows_other_keys(own: &Map<String, Value>, is_root: bool) -> bool {
    let more = match own.get("additionalProperties").or_else(|| own.get("unevaluatedProperties")) {
        Some(more) => *more != Value::Bool(false),
        // Without any declaration it is an arbitrary object, except for a tool without arguments.
        None => !is_root && !own.contains_key("properties"),
    };
    more || own.contains_key("patternProperties")
}

/// Returns the types of the `enum` and `const` values.
fn types_of(own: &Map<String, Value>) -> Option<Value> {
    if own.contains_key("items") {
        return Some(json!("array"));
    }
    let list = own
        .get("const")
        .map(std::slice::from_ref)
        .or_else(|| Some(own.get("enum")?.as_array()?.as_slice()))?;
    let mut kinds: Vec<&str> = Vec::new();
    for value in list {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) | Value::Object(_) => return None,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds.as_slice() {
        [] => None,
        [only] => Some(json!(only)),
        several => Some(json!(several)),
    }
}

/// Creates a schema accept null, too.
fn nullable(schema: Value) -> Value {
    match schema {
        Value::Object(map) => allow_null(map),
        other => other,
    }
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
