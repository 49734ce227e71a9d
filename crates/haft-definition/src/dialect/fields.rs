//! Reads the fields of an object, collects all errors with their paths, and warns of unknown fields.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use haft_core::duration;
use haft_core::problem::{Problem, excerpt, nearest};

/// The maximum number of errors, and of warnings: a hostile document could have millions.
const MAX_PROBLEMS: usize = 50;

/// Collects errors and warnings.
#[derive(Debug, Default)]
pub struct Report {
    errors: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl Report {
    /// Adds an error.
    pub fn error(&self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        push(&self.errors, field.into(), code, message.into());
    }

    /// Adds a warning.
    pub fn warn(&self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        push(&self.warnings, field.into(), code, message.into());
    }

    /// Returns the errors and the warnings.
    pub fn into_parts(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.errors.into_inner(), self.warnings.into_inner())
    }
}

fn push(list: &RefCell<Vec<Problem>>, field: String, code: &str, message: String) {
    let mut list = list.borrow_mut();
    if list.len() < MAX_PROBLEMS {
        list.push(Problem::new(field, code, message));
    }
}

/// The fields of one object. On drop, the fields that were not taken are reported as unknown.
pub struct Fields<'r> {
    path: String,
    map: Map<String, Value>,
    known: Vec<&'static str>,
    /// Keys that the author wrote in camelCase.
    camel: Vec<&'static str>,
    report: &'r Report,
}

impl<'r> Fields<'r> {
    /// Reads an object; `path` is its dotted path in the document.
    pub fn new(path: impl Into<String>, map: Map<String, Value>, report: &'r Report) -> Self {
        Self { path: path.into(), map, known: Vec::new(), camel: Vec::new(), report }
    }

    /// Returns the report that problems are added to.
    pub fn report(&self) -> &'r Report {
        self.report
    }

    /// Returns the dotted path of a key, as the author wrote it.
    pub fn path(&self, key: &str) -> String {
        match camel_case(key).filter(|_| self.camel.contains(&key)) {
            Some(camel) => join(&self.path, &camel),
            None => join(&self.path, key),
        }
    }

    /// Returns whether a key is present and not `null`.
    pub fn has(&self, key: &str) -> bool {
        self.peek(key).is_some_and(|value| !value.is_null())
    }

    /// Returns a value without taking it.
    pub fn peek(&self, key: &str) -> Option<&Value> {
        self.map.get(key).or_else(|| self.map.get(&camel_case(key)?))
    }

    /// Renames a key in camelCase, so that every key can be written in either style.
    fn rename_camel_case(&mut self, key: &'static str) {
        let Some(value) = camel_case(key).and_then(|camel| self.map.shift_remove(&camel)) else { return };
        match self.map.get(key) {
            None | Some(Value::Null) => {
                self.map.insert(key.to_owned(), value);
                self.camel.push(key);
            }
            Some(own) if *own == value || value.is_null() => {}
            Some(_) => {
                let camel = camel_case(key).unwrap_or_default();
                self.error(&camel, "conflicting_fields", conflict(&self.path(key)));
            }
        }
    }

    /// Returns the remaining keys, in order.
    pub fn keys(&self) -> Vec<String> {
        self.map.keys().cloned().collect()
    }

    /// Reports an error of a key.
    pub fn error(&self, key: &str, code: &str, message: impl Into<String>) {
        self.report.error(self.path(key), code, message);
    }

    /// Reports a warning about a key.
    pub fn warn(&self, key: &str, code: &str, message: impl Into<String>) {
        self.report.warn(self.path(key), code, message);
    }

    /// Reports a missing key.
    pub fn missing(&self, key: &str, expected: &str) {
        self.error(key, "missing_field", format!("missing required field; expected {expected}"));
    }

    fn wrong(&self, key: &str, expected: &str, found: &Value) {
        self.error(key, "wrong_type", format!("expected {expected}, found {}", describe(found)));
    }

    /// Adds keys that are suggested for misspelled ones.
    pub fn suggest(&mut self, keys: &[&'static str]) {
        self.known.extend(keys);
    }

    /// Takes a value, including `null`.
    pub fn raw(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.rename_camel_case(key);
        self.map.shift_remove(key)
    }

    /// Takes a value; `null` counts as missing.
    pub fn value(&mut self, key: &'static str) -> Option<Value> {
        self.raw(key).filter(|value| !value.is_null())
    }

    /// Returns which of several aliases of a field is present; reports an error if two of them disagree.
    pub fn alias(&mut self, keys: &[&'static str]) -> Option<&'static str> {
        self.known.extend(keys);
        for key in keys {
            self.rename_camel_case(key);
            if self.map.get(*key).is_some_and(Value::is_null) {
                self.map.shift_remove(*key);
            }
        }
        let mut present = keys.iter().copied().filter(|key| self.map.contains_key(*key));
        let first = present.next()?;
        if let Some(second) = present.find(|key| self.map.get(*key) != self.map.get(first)) {
            self.error(second, "conflicting_fields", conflict(&self.path(first)));
        }
        for key in keys.iter().filter(|key| **key != first) {
            self.map.shift_remove(*key);
        }
        Some(first)
    }

    /// Ignores known fields.
    pub fn ignore(&mut self, keys: &[&'static str]) {
        for key in keys {
            self.map.shift_remove(*key);
            if let Some(camel) = camel_case(key) {
                self.map.shift_remove(&camel);
            }
        }
    }

    /// Sets a value if the field is missing.
    pub fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.map.entry(key).or_insert(value.into());
    }

    /// Takes all remaining fields.
    pub fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.map)
    }

    /// Takes a string.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            other => {
                let hint = if other.is_number() || other.is_boolean() { "; quote it" } else { "" };
                self.error(key, "wrong_type", format!("expected a string, found {}{hint}", describe(&other)));
                None
            }
        }
    }

    /// Takes a string that must be present.
    pub fn required_text(&mut self, key: &'static str, expected: &str) -> Option<String> {
        if !self.has(key) {
            self.known.push(key);
            self.missing(key, expected);
            // A `null` must not be reported as unknown in addition.
            self.map.remove(key);
            return None;
        }
        self.text(key)
    }

    /// Takes a boolean.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(flag) => Some(flag),
            other => {
                self.wrong(key, "`true` or `false`", &other);
                None
            }
        }
    }

    /// Takes an integer.
    pub fn integer<T: TryFrom<i128>>(&mut self, key: &'static str, expected: &str) -> Option<T> {
        let value = self.value(key)?;
        let number = as_integer(&value).and_then(|number| T::try_from(number).ok());
        if number.is_none() {
            let found = if value.is_number() { value.to_string() } else { describe(&value).to_owned() };
            self.error(key, "wrong_type", format!("expected {expected}, found {found}"));
        }
        number
    }

    /// Takes a map.
    pub fn object(&mut self, key: &'static str) -> Option<Map<String, Value>> {
        match self.value(key)? {
            Value::Object(map) => Some(map),
            other => {
                self.wrong(key, "a map", &other);
                None
            }
        }
    }

    /// Takes a list.
    pub fn list(&mut self, key: &'static str) -> Option<Vec<Value>> {
        match self.value(key)? {
            Value::Array(items) => Some(items),
            other => {
                self.wrong(key, "a list", &other);
                None
            }
        }
    }

    /// Takes a nested object.
    pub fn nested(&mut self, key: &'static str) -> Option<Fields<'r>> {
        let map = self.object(key)?;
        Some(Fields::new(self.path(key), map, self.report))
    }

    /// Takes a list of objects.
    pub fn nested_list(&mut self, key: &'static str) -> Option<Vec<Fields<'r>>> {
        let items = self.list(key)?;
        let mut all = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = item_path(&self.path(key), index);
            match item {
                Value::Object(map) => all.push(Fields::new(path, map, self.report)),
                other => self.report.error(
                    path,
                    "wrong_type",
                    format!("expected a map, found {}", describe(&other)),
                ),
            }
        }
        Some(all)
    }

    /// Takes a list of strings.
    pub fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let items = self.list(key)?;
        let path = self.path(key);
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                other => self.report.error(
                    item_path(&path, index),
                    "wrong_type",
                    format!("expected a string, found {}", describe(&other)),
                ),
            }
        }
        Some(texts)
    }

    /// Takes a list of strings; numbers and booleans are converted.
    pub fn scalar_texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let items = self.list(key)?;
        let path = self.path(key);
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text),
                Value::Number(number) => texts.push(number.to_string()),
                Value::Bool(flag) => texts.push(flag.to_string()),
                other => {
                    let hint = if other.is_object() { "; put `{{…}}` in quotes" } else { "" };
                    self.report.error(
                        join(&path, &index.to_string()),
                        "wrong_type",
                        format!("expected a string, found {}{hint}", describe(&other)),
                    );
                }
            }
        }
        Some(texts)
    }

    /// Takes a map of strings; numbers and booleans are converted to strings.
    pub fn text_map(&mut self, key: &'static str) -> Option<BTreeMap<String, String>> {
        let map = self.object(key)?;
        let path = self.path(key);
        let mut texts = BTreeMap::new();
        for (name, item) in map {
            match item {
                Value::String(text) => drop(texts.insert(name, text)),
                Value::Number(number) => drop(texts.insert(name, number.to_string())),
                Value::Bool(flag) => drop(texts.insert(name, flag.to_string())),
                other => self.report.error(
                    join(&path, &excerpt(&name, 60)),
                    "wrong_type",
                    format!("expected a string, found {}", describe(&other)),
                ),
            }
        }
        Some(texts)
    }

    /// Takes one of several values.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.error(key, "invalid_value", unknown("value", &text, &words));
        }
        found
    }

    /// Takes a duration in milliseconds: a string such as `30s`, or a bare number in `unit`.
    pub fn duration(&mut self, key: &'static str, unit: Duration) -> Option<u64> {
        let value = self.value(key)?;
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            other => {
                self.wrong(key, "a duration such as `30s`", other);
                return None;
            }
        };
        match duration::parse(&text, unit) {
            Ok(duration) => u64::try_from(duration.as_millis()).ok(),
            Err(error) => {
                self.error(key, "invalid_value", error.to_string());
                None
            }
        }
    }
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        for key in self.map.keys().take(MAX_PROBLEMS) {
            let shown = excerpt(key, 60);
            let path = join(&self.path, &shown);
            if key.starts_with("{{") {
                self.report.error(
                    path,
                    "misplaced_control",
                    format!(
                        "`{shown}` has no effect here; control lines are supported in `body` and `query`"
                    ),
                );
                continue;
            }
            match self.intended(key) {
                Some(near) if BREAKING.contains(&near) => {
                    let near = spelled_like(near, key);
                    let message = format!("unknown field; did you mean `{near}`?");
                    // Not the code of fields that are ignored.
                    self.report.error(path, "misspelled_field", message);
                }
                Some(near) => {
                    let near = spelled_like(near, key);
                    let message = format!("unknown field, ignored; did you mean `{near}`?");
                    self.report.warn(path, "unknown_field", message);
                }
                None => self.report.warn(path, "unknown_field", "unknown field, ignored"),
            }
        }
    }
}

/// Fields without which a tool would do something else, or less safely: a misspelled one is an error.
const BREAKING: [&str; 44] = [
    "input_schema",
    "parameters",
    "argSchema",
    "args_schema",
    "params",
    "implementation",
    "implementation_config",
    "implementation_type",
    "impl",
    "runtime",
    "policy",
    "requires_confirmation",
    "sandbox",
    "network",
    "url",
    "url_template",
    "method",
    "headers",
    "query",
    "body",
    "body_template",
    "auth",
    "command",
    "argv",
    "env",
    "stdin",
    "entrypoint",
    "dependencies",
    "server_url",
    "tool_name",
    "required",
    "enum",
    "tools",
    "mcp_servers",
    "dependencies",
    "permissions",
    "steps",
    "tool",
    "args",
    "after",
    "when",
    "for_each",
    "on_failure",
    "source",
];

/// Words for the arguments of a tool that no dialect uses.
const ARGUMENT_WORDS: [&str; 6] = ["args", "arguments", "arg", "input", "inputs", "argument_schema"];

impl Fields<'_> {
    /// Returns the known field that an unknown one probably stands for.
    fn intended(&self, key: &str) -> Option<&'static str> {
        let arguments = || {
            let is_word = self.path.is_empty() && ARGUMENT_WORDS.contains(&key);
            is_word.then_some("input_schema")
        };
        arguments().or_else(|| nearest(key, self.known.iter().copied()))
    }
}

/// Returns a suggestion in the style of a key: camelCase if it has upper-case letters.
fn spelled_like(suggestion: &str, key: &str) -> String {
    let is_camel = key.contains(|c: char| c.is_ascii_uppercase());
    camel_case(suggestion).filter(|_| is_camel).unwrap_or_else(|| suggestion.to_owned())
}

/// Returns a key of several words in camelCase: `displayName` for `display_name`.
fn camel_case(key: &str) -> Option<String> {
    let mut words = key.split('_').filter(|word| !word.is_empty());
    let mut camel = words.next()?.to_owned();
    for word in words {
        let (first, rest) = word.split_at_checked(1)?;
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    (camel != key).then_some(camel)
}

/// Returns the message for two fields that disagree.
pub fn conflict(other: &str) -> String {
    format!("conflicts with `{other}`; remove one of them")
}

/// Joins a path and a key.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Returns the path of a list item.
pub fn item_path(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// Describes the type of a value without showing it, because it may be a secret.
pub fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// Returns the message for an unknown value, with the most similar known value or the list of known values.
pub fn unknown(what: &str, text: &str, known: &[&str]) -> String {
    let shown = excerpt(text, 40);
    if let Some(similar) = nearest(text, known.iter().copied()) {
        return format!("unknown {what} `{shown}`; did you mean `{similar}`?");
    }
    let list: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    format!("unknown {what} `{shown}`; expected one of {}", list.join(", "))
}

/// Returns a value as an integer.
fn as_integer(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(n) = number.as_u64() {
        return Some(n.into());
    }
    number.as_i64().map(i128::from)
}
