//! A tool in the making: its arguments and secrets.

use std::collections::{BTreeMap, HashMap, HashSet};

use haft_core::problem::{Problem, excerpt};
use haft_core::redact::is_sensitive;
use serde_json::{Map, Value, json};

use super::Variable;
use crate::api::names::{argument_name, secret_name};
use crate::api::templates::literal;
use crate::api::text::clean;

/// The maximum number of arguments; further values stay constant.
const MAX_ARGUMENTS: usize = 300;
/// The maximum length of the name of a variable.
const MAX_NAME: usize = 100;
/// How often a variable in the value of a variable is replaced.
const MAX_EXPANSIONS: usize = 5;
/// The maximum size of a text after its variables are replaced.
const MAX_EXPANDED: usize = 64 * 1024;
/// The maximum size of a default and of a description.
const MAX_DEFAULT: usize = 16 * 1024;
const MAX_DESCRIPTION: usize = 1000;

/// How the variables in a text are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextUse {
    /// Credentials become secrets, all others arguments.
    Plain,
    /// As `Plain`, with the text between them encoded for a URL.
    Url,
    /// All of them are secrets.
    Credential,
}

/// A tool in the making.
pub(super) struct Draft<'c> {
    variables: &'c BTreeMap<String, Variable>,
    /// The prefix of secret names.
    prefix: &'c str,
    properties: Map<String, Value>,
    required: Vec<Value>,
    names: HashSet<String>,
    /// The templates of the variables that were replaced.
    replaced: HashMap<String, String>,
    pub(super) secrets: Vec<String>,
    pub(super) warnings: Vec<Problem>,
}

impl<'c> Draft<'c> {
    pub(super) fn new(variables: &'c BTreeMap<String, Variable>, prefix: &'c str) -> Self {
        Self {
            variables,
            prefix,
            properties: Map::new(),
            required: Vec::new(),
            names: HashSet::new(),
            replaced: HashMap::new(),
            secrets: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn warn(&mut self, code: &str, message: impl Into<String>) {
        self.warnings.push(Problem::new("", code, message.into()));
    }

    /// Adds an argument and returns its template; `None` if there are too many.
    pub(super) fn argument(&mut self, name: &str, schema: Value, is_required: bool) -> Option<String> {
        if self.properties.len() >= MAX_ARGUMENTS {
            return None;
        }
        let plain = argument_name(name);
        let mut unique = plain.clone();
        let mut number = 2;
        while !self.names.insert(unique.clone()) {
            unique = format!("{plain}_{number}");
            number += 1;
        }
        if is_required {
            self.required.push(json!(unique));
        }
        self.properties.insert(unique.clone(), schema);
        Some(format!("${{{unique}}}"))
    }

    /// Adds an argument whose default is the saved value.
    pub(super) fn saved_argument(&mut self, name: &str, saved: &Value, description: &str) -> Option<String> {
        let mut schema = schema_of(saved);
        let is_empty = saved.is_null() || *saved == json!("");
        if let Value::Object(map) = &mut schema {
            if !is_empty && saved.to_string().len() <= MAX_DEFAULT {
                map.insert("default".to_owned(), saved.clone());
            }
            let description = clean(description, MAX_DESCRIPTION);
            if !description.is_empty() {
                map.insert("description".to_owned(), json!(description));
            }
        }
        self.argument(name, schema, false)
    }

    /// Returns the template of a secret.
    pub(super) fn secret(&mut self, name: &str) -> String {
        let secret = secret_name(&[self.prefix, name]);
        // A template would prefer an argument of that name.
        self.names.insert(secret.clone());
        let template = format!("${{{secret}}}");
        if !self.secrets.contains(&secret) {
            self.secrets.push(secret);
        }
        template
    }

    /// Replaces a credential in the file by a secret.
    pub(super) fn replace_credential(&mut self, name: &str) -> String {
        let template = self.secret(name);
        let message = format!("the credential in the file is replaced by the secret `{template}`");
        self.warn("replaced_credential", message);
        template
    }

    /// Returns a text as a template, with its variables replaced.
    pub(super) fn template(&mut self, text: &str, text_use: TextUse) -> String {
        let plain = |text: &str| match text_use {
            TextUse::Url => crate::openapi::escape_template(text),
            TextUse::Plain | TextUse::Credential => literal(text),
        };
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, name, after)) = next_variable(rest) {
            out.push_str(&plain(before));
            out.push_str(&self.variable(name, text_use));
            rest = after;
        }
        out.push_str(&plain(rest));
        out
    }

    fn variable(&mut self, name: &str, text_use: TextUse) -> String {
        if let Some(template) = self.replaced.get(name) {
            return template.clone();
        }
        let variable = self.variables.get(name);
        let is_secret = text_use == TextUse::Credential
            || variable.is_some_and(|variable| variable.is_secret)
            || is_sensitive(name);
        let template = if is_secret {
            self.secret(name)
        } else {
            let value =
                variable.and_then(|variable| variable.value.as_deref()).filter(|value| !value.is_empty());
            let value = value.map(|value| self.expand(value)).filter(|value| !has_variable(value));
            let shown = name.trim_start_matches('$');
            if let Some(value) = value {
                self.saved_argument(shown, &json!(value), "")
            } else {
                let description = format!("The variable `{}`", excerpt(name, MAX_NAME));
                self.argument(shown, json!({"description": description}), true)
            }
            .unwrap_or_default()
        };
        self.replaced.insert(name.to_owned(), template.clone());
        template
    }

    /// Replaces the variables whose values are known.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..MAX_EXPANSIONS {
            let mut out = String::with_capacity(text.len());
            let mut rest = text.as_str();
            while let Some((before, name, after)) = next_variable(rest) {
                out.push_str(before);
                let known = self.variables.get(name).filter(|variable| !variable.is_secret);
                let value =
                    known.and_then(|variable| variable.value.as_deref()).filter(|value| !value.is_empty());
                if let Some(value) = value {
                    out.push_str(value);
                } else {
                    out.push_str("{{");
                    out.push_str(name);
                    out.push_str("}}");
                }
                rest = after;
            }
            out.push_str(rest);
            if out == text || out.len() > MAX_EXPANDED {
                break;
            }
            text = out;
        }
        text
    }

    /// Returns the input schema.
    pub(super) fn input_schema(&mut self) -> Value {
        let properties = std::mem::take(&mut self.properties);
        let required = std::mem::take(&mut self.required);
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if let Value::Object(map) = &mut schema
            && !required.is_empty()
        {
            map.insert("required".to_owned(), Value::Array(required));
        }
        schema
    }
}

/// Returns the text before the next `{{name}}`, the name, and the text after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find("{{")?;
        let inner = text.get(start + 2..)?;
        let end = inner.find("}}")?;
        let name = inner.get(..end)?.trim();
        let is_name = !name.is_empty() && name.len() <= MAX_NAME && !name.contains(['{', '}', '"', '\n']);
        if is_name {
            return Some((text.get(..start)?, name, inner.get(end + 2..)?));
        }
        from = start + 1;
    }
}

/// Returns whether a text has a variable.
pub(super) fn has_variable(text: &str) -> bool {
    next_variable(text).is_some()
}

/// Returns the value of a saved text whose type is evident.
pub(super) fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => number.into(),
            _ => text.into(),
        },
    }
}

fn schema_of(value: &Value) -> Value {
    let kind = match value {
        Value::Null => return json!({}),
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Object(_) => "object",
        Value::Array(_) => "array",
    };
    json!({"type": kind})
}
