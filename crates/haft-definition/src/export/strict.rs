//! OpenAI's strict mode: the part of JSON Schema in which a model's arguments always fit.
//!
//! Every object is closed and requires all its properties; one that may be left out may be null instead, and a call
//! takes that for left out. Rules that strict mode does not know (`maxLength`, `not`) only widen what a model may send,
//! which is checked anyway: they are said in descriptions. What would have to narrow a tool cannot be said at all: maps
//! with keys of their own, values of any type, lists of different items. Such a tool is not told strictly.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::parts::{branches, declares, definition, definition_name, description, joined};
use haft_core::problem::{Problem, excerpt};
use haft_core::schema::normalize::allow_null;
use haft_core::schema::walk::{MAX_DEPTH, includes_type, lists_name};

/// What OpenAI documents as the limits of one schema.
const MAX_PROPERTIES: usize = 5000;
const MAX_LEVELS: usize = 10;
const MAX_VALUES: usize = 1000;
const MAX_LETTERS: usize = 120_000;
const LONG_LIST: usize = 250;
const MAX_LETTERS_OF_LONG_LIST: usize = 15_000;

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Keywords that are kept as they are.
const KEPT: [&str; 10] = [
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
/// The most places that are told.
const MAX_PROBLEMS: usize = 5;

/// Rewrites a schema, or tells what strict mode cannot say.
pub(super) fn rewrite(schema: Map<String, Value>) -> Result<Value, Vec<Problem>> {
    let root = Value::Object(schema);
    let mut rewriting = Rewriting::new(&root);
    let mut made = rewriting.object_of("input_schema", root.as_object().unwrap_or(&Map::new()), Depth::top());
    rewriting.definitions(&mut made);
    rewriting.limits();
    if rewriting.problems.is_empty() { Ok(Value::Object(made)) } else { Err(rewriting.problems) }
}

/// How deep something is: in the schema, and in the value that it describes.
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

struct Rewriting<'a> {
    root: &'a Value,
    problems: Vec<Problem>,
    /// Definitions that something refers to.
    wanted: BTreeSet<String>,
    properties: usize,
    values: usize,
    letters: usize,
    levels: usize,
}

impl<'a> Rewriting<'a> {
    fn new(root: &'a Value) -> Self {
        let wanted = BTreeSet::new();
        Self { root, problems: Vec::new(), wanted, properties: 0, values: 0, letters: 0, levels: 0 }
    }

    fn impossible(&mut self, place: &str, message: &str) -> Value {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem::new(place, "not_strict", message));
        }
        json!({})
    }

    fn subschema(&mut self, place: &str, schema: &Value, depth: Depth) -> Value {
        let Value::Object(own) = schema else {
            return self
                .impossible(place, "a value of any type cannot be said in strict mode: give it a `type`");
        };
        if depth.left == 0 || self.problems.len() >= MAX_PROBLEMS {
            return json!({});
        }
        if let Some(Value::String(reference)) = own.get("$ref") {
            return self.reference(place, own, reference);
        }
        let Some(own) = joined(self.root, own) else {
            return self
                .impossible(place, "this `allOf` cannot be said by one schema, which strict mode asks for");
        };
        let simple = !includes_type(own.get("type"), "object") && own.contains_key("type");
        match branches(&own) {
            // Beside a type, or properties of its own, a choice only narrows.
            Some(choice) if !simple && !declares(&own) => self.choice(place, &own, choice, depth),
            _ if includes_type(own.get("type"), "object") || own.contains_key("properties") => {
                Value::Object(self.object_of(place, &own, depth))
            }
            _ => self.plain(place, &own, depth),
        }
    }

    /// A reference stands alone, and to a definition or the whole.
    fn reference(&mut self, place: &str, own: &Map<String, Value>, reference: &str) -> Value {
        let target = match definition_name(reference) {
            Some(name) => {
                let target = format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1"));
                self.wanted.insert(name);
                target
            }
            None if reference == "#" => reference.to_owned(),
            None => return self.impossible(place, "strict mode takes references to `$defs` only"),
        };
        match description(own, |_| false) {
            Some(text) => json!({"anyOf": [{"$ref": target}], "description": text}),
            None => json!({"$ref": target}),
        }
    }

    fn choice(&mut self, place: &str, own: &Map<String, Value>, choice: &[Value], depth: Depth) -> Value {
        let mut made = Vec::new();
        for (number, branch) in choice.iter().enumerate() {
            let mut branch = branch.clone();
            if let (Value::Object(branch), Some(kind)) = (&mut branch, own.get("type"))
                && !branch.contains_key("$ref")
            {
                branch.entry("type").or_insert_with(|| kind.clone());
            }
            made.push(self.subschema(&format!("{place}.anyOf.{number}"), &branch, depth.same()));
        }
        Value::Object(described(own, Map::from_iter([("anyOf".to_owned(), Value::Array(made))])))
    }

    fn object_of(&mut self, place: &str, own: &Map<String, Value>, depth: Depth) -> Map<String, Value> {
        self.levels = self.levels.max(depth.level);
        if has_keys_of_its_own(own, depth.level == 1) {
            self.impossible(
                place,
                "an object with keys of its own cannot be said in strict mode: declare its properties",
            );
        }
        let required = |name: &str| lists_name(own.get("required"), name);
        let mut properties = Map::new();
        for (name, schema) in own.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.properties += 1;
            self.letters += name.len();
            let inner = self.subschema(&format!("{place}.{}", excerpt(name, 60)), schema, depth.inner());
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

    /// A value that is no object.
    fn plain(&mut self, place: &str, own: &Map<String, Value>, depth: Depth) -> Value {
        let mut made = Map::new();
        match own.get("type").cloned().or_else(|| types_of(own)) {
            Some(kind) => drop(made.insert("type".to_owned(), kind)),
            None => {
                return self.impossible(
                    place,
                    "a value of any type cannot be said in strict mode: give it a `type`",
                );
            }
        }
        if includes_type(made.get("type"), "array") {
            let Some(items) = own.get("items").filter(|_| !own.contains_key("prefixItems")) else {
                let message = "strict mode takes lists of one kind of items only: say which by `items`";
                return self.impossible(place, message);
            };
            self.levels = self.levels.max(depth.level);
            let items = self.subschema(&format!("{place}.items"), items, depth.inner());
            made.insert("items".to_owned(), items);
        }
        if let Some(Value::Array(list)) = own.get("enum") {
            self.list(place, list);
            made.insert("enum".to_owned(), Value::Array(list.clone()));
        }
        if let Some(Value::String(text)) = own.get("const") {
            self.letters += text.len();
        }
        let format = own.get("format").filter(|format| FORMATS.iter().any(|known| format == known));
        if let Some(format) = format {
            made.insert("format".to_owned(), format.clone());
        }
        Value::Object(described(own, made))
    }

    fn list(&mut self, place: &str, list: &[Value]) {
        let letters: usize = list.iter().filter_map(Value::as_str).map(str::len).sum();
        self.values += list.len();
        self.letters += letters;
        if list.iter().any(|value| value.is_object() || value.is_array()) {
            self.impossible(place, "strict mode lists only strings, numbers and the like in `enum`");
        } else if list.len() > LONG_LIST && letters > MAX_LETTERS_OF_LONG_LIST {
            let message = format!(
                "strict mode takes at most {MAX_LETTERS_OF_LONG_LIST} letters in an `enum` of more than {LONG_LIST} values"
            );
            self.impossible(place, &message);
        }
    }

    /// Writes the definitions that are referred to, and those that they refer to.
    fn definitions(&mut self, made: &mut Map<String, Value>) {
        let mut defs = Map::new();
        while let Some(name) = self.wanted.iter().find(|name| !defs.contains_key(*name)).cloned() {
            let place = format!("input_schema.$defs.{}", excerpt(&name, 60));
            self.letters += name.len();
            let root = self.root;
            let written = match definition(root, &name) {
                Some(schema) => self.subschema(&place, schema, Depth::top()),
                None => self.impossible(&place, "there is no such definition"),
            };
            defs.insert(name, written);
        }
        if !defs.is_empty() {
            made.insert("$defs".to_owned(), Value::Object(defs));
        }
    }

    fn limits(&mut self) {
        for (what, count, most) in [
            ("properties", self.properties, MAX_PROPERTIES),
            ("levels of objects and lists", self.levels, MAX_LEVELS),
            ("values in `enum`", self.values, MAX_VALUES),
            ("letters in names and `enum`", self.letters, MAX_LETTERS),
        ] {
            if count > most {
                let message = format!("strict mode takes at most {most} {what}; there are {count}");
                self.impossible("input_schema", &message);
            }
        }
    }
}

/// Adds what is kept of a schema, and in words what is not.
fn described(own: &Map<String, Value>, mut made: Map<String, Value>) -> Map<String, Value> {
    for key in KEPT {
        if let Some(value) = own.get(key) {
            made.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(text) = description(own, |key| made.contains_key(key)) {
        made.insert("description".to_owned(), text.into());
    }
    made
}

/// Tells whether an object may have properties that are not declared and are meant to be there.
fn has_keys_of_its_own(own: &Map<String, Value>, is_root: bool) -> bool {
    let more = match own.get("additionalProperties").or_else(|| own.get("unevaluatedProperties")) {
        Some(more) => *more != Value::Bool(false),
        // Nothing said and nothing declared is any object, but for a tool without arguments.
        None => !is_root && !own.contains_key("properties"),
    };
    more || own.contains_key("patternProperties")
}

/// Tells the types of the values that are listed.
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

/// Makes a schema accept null, too.
fn nullable(schema: Value) -> Value {
    match schema {
        Value::Object(map) => allow_null(map),
        other => other,
    }
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
