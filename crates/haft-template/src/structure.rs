//! Structures whose strings are templates.

use serde_json::{Map, Value};

use super::error::{RenderError, SyntaxError};
use super::escape_context::EscapeContext;
use super::parse::{self, Control};
use super::reference::{Reference, Resolved, Scope, Values};
use super::text::Template;
use haft_core::implementation::Notation;

/// The maximum nesting of a structure.
const MAX_DEPTH: usize = 100;

/// A compiled structure.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueTemplate {
    node: Node,
}

/// A syntax error in a structure, with its path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {error}")]
pub struct FieldError {
    /// The path from the root, such as `.items[0].name`; empty for the root.
    pub path: String,
    /// The error.
    pub error: SyntaxError,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// A value without references.
    Constant(Value),
    /// Exactly one reference: it keeps its JSON type.
    Reference(Reference),
    Text(Template),
    List(Vec<Item>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
enum Item {
    One(Node),
    If { condition: Reference, then: Vec<Item>, otherwise: Vec<Item> },
}

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Pair(String, Node),
    If { condition: Reference, then: Vec<Entry>, otherwise: Vec<Entry> },
}

impl ValueTemplate {
    /// Compiles a structure, and reports all errors.
    pub fn parse(notation: Notation, value: &Value, scope: &Scope) -> Result<Self, Vec<FieldError>> {
        let mut compiler = Compiler { notation, scope, errors: Vec::new(), path: String::new(), depth: 0 };
        let node = compiler.node(value);
        if compiler.errors.is_empty() { Ok(Self { node }) } else { Err(compiler.errors) }
    }

    /// Renders it; `None` if it is exactly one reference to a missing optional value.
    ///
    /// The flag says whether it contains a secret or the value of an earlier step.
    pub fn render(&self, values: &Values<'_>) -> Result<(Option<Value>, bool), RenderError> {
        let mut secret = false;
        let value = self.node.render(values, &mut secret)?;
        Ok((value, secret))
    }

    /// Returns the names of the secrets that it may read.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let mut names = Vec::new();
        self.node.secrets(&mut names);
        names.into_iter()
    }
}

impl Node {
    fn render(&self, values: &Values<'_>, secret: &mut bool) -> Result<Option<Value>, RenderError> {
        Ok(Some(match self {
            Node::Constant(value) => value.clone(),
            Node::Reference(reference) => {
                let found = reference.resolve(values)?;
                *secret |= reference.is_sensitive(&found);
                match found {
                    Resolved::Missing => return Ok(None),
                    Resolved::Value(value) => value.into_owned(),
                    Resolved::Secret(found) => Value::String(found.expose().to_owned()),
                }
            }
            Node::Text(template) => {
                let rendered = template.render(EscapeContext::Text, values)?;
                *secret |= rendered.secret;
                Value::String(rendered.text)
            }
            Node::List(items) => {
                let mut out = Vec::with_capacity(items.len());
                render_items(items, values, secret, &mut out)?;
                Value::Array(out)
            }
            Node::Map(entries) => {
                let mut out = Map::with_capacity(entries.len());
                render_entries(entries, values, secret, &mut out)?;
                Value::Object(out)
            }
        }))
    }

    fn secrets<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Node::Constant(_) => {}
            Node::Reference(reference) => names.extend(reference.secret()),
            Node::Text(template) => names.extend(template.secrets()),
            Node::List(items) => items.iter().for_each(|item| item.secrets(names)),
            Node::Map(entries) => entries.iter().for_each(|entry| entry.secrets(names)),
        }
    }
}

impl Item {
    fn secrets<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Item::One(node) => node.secrets(names),
            Item::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).for_each(|item| item.secrets(names));
            }
        }
    }
}

impl Entry {
    fn secrets<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Entry::Pair(_, node) => node.secrets(names),
            Entry::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).for_each(|entry| entry.secrets(names));
            }
        }
    }
}

fn render_items(
    items: &[Item],
    values: &Values<'_>,
    secret: &mut bool,
    out: &mut Vec<Value>,
) -> Result<(), RenderError> {
    for item in items {
        match item {
            Item::One(node) => out.extend(node.render(values, secret)?),
            Item::If { condition, then, otherwise } => {
                render_items(if condition.truthy(values) { then } else { otherwise }, values, secret, out)?;
            }
        }
    }
    Ok(())
}

fn render_entries(
    entries: &[Entry],
    values: &Values<'_>,
    secret: &mut bool,
    out: &mut Map<String, Value>,
) -> Result<(), RenderError> {
    for entry in entries {
        match entry {
            Entry::Pair(key, node) => {
                if let Some(value) = node.render(values, secret)? {
                    out.insert(key.clone(), value);
                }
            }
            Entry::If { condition, then, otherwise } => {
                render_entries(if condition.truthy(values) { then } else { otherwise }, values, secret, out)?;
            }
        }
    }
    Ok(())
}

/// The meaning of a key of a map.
enum Key {
    Plain,
    If(Reference),
    Else,
}

struct Compiler<'a> {
    notation: Notation,
    scope: &'a Scope,
    errors: Vec<FieldError>,
    path: String,
    depth: usize,
}

impl Compiler<'_> {
    fn node(&mut self, value: &Value) -> Node {
        if self.depth >= MAX_DEPTH {
            self.error(1, format!("nesting limit ({MAX_DEPTH}) exceeded"));
            return Node::Constant(Value::Null);
        }
        self.depth += 1;
        let node = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Node::Constant(value.clone()),
            Value::String(text) => self.text(text),
            Value::Array(items) => constant_list(self.items(items)),
            Value::Object(map) => constant_map(self.entries(map)),
        };
        self.depth -= 1;
        node
    }

    fn text(&mut self, text: &str) -> Node {
        match Template::parse(self.notation, text, self.scope) {
            Ok(template) => {
                if let Some(literal) = template.as_literal() {
                    Node::Constant(Value::String(literal.to_owned()))
                } else if let Some(reference) = template.only_reference() {
                    Node::Reference(reference.clone())
                } else {
                    Node::Text(template)
                }
            }
            Err(error) => {
                self.errors.push(FieldError { path: self.path.clone(), error });
                Node::Constant(Value::Null)
            }
        }
    }

    fn items(&mut self, items: &[Value]) -> Vec<Item> {
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let length = self.enter(&format!("[{index}]"));
            match item {
                Value::Object(map) if self.is_choice(map) => self.choice(map, &mut out),
                other => {
                    let node = self.node(other);
                    out.push(Item::One(node));
                }
            }
            self.path.truncate(length);
        }
        out
    }

    /// Returns whether a list item consists of conditions only, and so may become any number of items.
    fn is_choice(&self, map: &Map<String, Value>) -> bool {
        self.notation == Notation::Braces && !map.is_empty() && map.keys().all(|key| is_control(key))
    }

    fn choice(&mut self, map: &Map<String, Value>, out: &mut Vec<Item>) {
        if self.depth >= MAX_DEPTH {
            self.error(1, format!("nesting limit ({MAX_DEPTH}) exceeded"));
            return;
        }
        self.depth += 1;
        for (key, value) in map {
            let length = self.enter(&format!(".{key}"));
            let branch = |compiler: &mut Self| match value {
                // An empty YAML block.
                Value::Null => Vec::new(),
                Value::Array(items) => compiler.items(items),
                single => compiler.items(std::slice::from_ref(single)),
            };
            match self.key(key) {
                Key::If(condition) => {
                    let then = branch(self);
                    out.push(Item::If { condition, then, otherwise: Vec::new() });
                }
                Key::Else => {
                    let items = branch(self);
                    match out.last_mut() {
                        Some(Item::If { otherwise, .. }) if otherwise.is_empty() => *otherwise = items,
                        _ => self.error(1, "`{{else}}` does not follow an `{{if}}`".to_owned()),
                    }
                }
                Key::Plain => {}
            }
            self.path.truncate(length);
        }
        self.depth -= 1;
    }

    fn entries(&mut self, map: &Map<String, Value>) -> Vec<Entry> {
        let mut out = Vec::with_capacity(map.len());
        for (key, value) in map {
            let length = self.enter(&format!(".{key}"));
            match self.key(key) {
                Key::Plain => {
                    let node = self.node(value);
                    out.push(Entry::Pair(key.clone(), node));
                }
                Key::If(condition) => {
                    let then = self.branch(value);
                    out.push(Entry::If { condition, then, otherwise: Vec::new() });
                }
                Key::Else => {
                    let entries = self.branch(value);
                    match out.last_mut() {
                        Some(Entry::If { otherwise, .. }) if otherwise.is_empty() => *otherwise = entries,
                        _ => self.error(1, "`{{else}}` does not follow an `{{if}}`".to_owned()),
                    }
                }
            }
            self.path.truncate(length);
        }
        out
    }

    /// Compiles the content of a condition inside a map: entries of that map.
    fn branch(&mut self, value: &Value) -> Vec<Entry> {
        match value {
            Value::Null => Vec::new(),
            Value::Object(_) if self.depth >= MAX_DEPTH => {
                self.error(1, format!("nesting limit ({MAX_DEPTH}) exceeded"));
                Vec::new()
            }
            Value::Object(map) => {
                self.depth += 1;
                let entries = self.entries(map);
                self.depth -= 1;
                entries
            }
            _ => {
                self.error(1, "the content of a condition in a map has to be a map".to_owned());
                Vec::new()
            }
        }
    }

    fn key(&mut self, key: &str) -> Key {
        let braces = self.notation == Notation::Braces && key.contains("{{");
        if !braces {
            if key.contains("${") {
                self.error(1, "keys cannot be templates".to_owned());
            }
            return Key::Plain;
        }
        let inner = key.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
        let inner = inner.map(without_number);
        match inner.map(|inner| parse::control(inner, self.scope)) {
            Some(Ok(Control::If(condition))) => Key::If(condition),
            Some(Ok(Control::Else)) => Key::Else,
            Some(Err(message)) => {
                self.error(1, message);
                Key::Plain
            }
            _ => {
                self.error(1, "keys cannot be templates, except `{{if x}}` and `{{else}}`".to_owned());
                Key::Plain
            }
        }
    }

    fn enter(&mut self, step: &str) -> usize {
        let length = self.path.len();
        self.path.push_str(step);
        length
    }

    fn error(&mut self, column: u32, message: String) {
        self.errors
            .push(FieldError { path: self.path.clone(), error: SyntaxError { line: None, column, message } });
    }
}

/// Removes the `#2` that distinguishes equal conditions of one map.
fn without_number(inner: &str) -> &str {
    match inner.rsplit_once('#') {
        Some((before, number)) if number.trim().parse::<u32>().is_ok() => before.trim_end(),
        _ => inner,
    }
}

fn is_control(key: &str) -> bool {
    let inner = key.trim().strip_prefix("{{").map(str::trim_start);
    inner.is_some_and(|inner| inner.starts_with("if ") || inner.starts_with("else"))
}

fn constant_list(items: Vec<Item>) -> Node {
    let constants: Option<Vec<Value>> = items
        .iter()
        .map(|item| match item {
            Item::One(Node::Constant(value)) => Some(value.clone()),
            _ => None,
        })
        .collect();
    constants.map_or(Node::List(items), |values| Node::Constant(Value::Array(values)))
}

fn constant_map(entries: Vec<Entry>) -> Node {
    let constants: Option<Map<String, Value>> = entries
        .iter()
        .map(|entry| match entry {
            Entry::Pair(key, Node::Constant(value)) => Some((key.clone(), value.clone())),
            _ => None,
        })
        .collect();
    constants.map_or(Node::Map(entries), |values| Node::Constant(Value::Object(values)))
}
