//! What a template may name, and how a name finds its value.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::error::RenderError;
use haft_core::schema::declared_properties;
use haft_core::secret::Secret;

/// What the templates of a tool may name.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    arguments: HashMap<String, Option<Value>>,
    required: HashSet<String>,
    steps: HashSet<String>,
}

impl Scope {
    /// Reads the declared arguments, their defaults, and which are required from an input schema.
    pub fn of(input_schema: &Value) -> Self {
        let required = input_schema.get("required").and_then(Value::as_array);
        Self {
            arguments: declared_properties(input_schema)
                .into_iter()
                .map(|(name, schema)| (name.to_owned(), schema.get("default").cloned()))
                .collect(),
            required: required.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            steps: HashSet::new(),
        }
    }

    /// Lets the templates that are parsed from now on read the value of a step.
    pub fn add_step(&mut self, name: &str) {
        self.steps.insert(name.to_owned());
    }

    /// Tells whether an argument of that name is declared.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.arguments.contains_key(name)
    }

    /// Finds the declared argument that a dotted text names, or walks into.
    pub(super) fn argument(&self, text: &str) -> Option<Reference> {
        let (name, path) = if self.arguments.contains_key(text) {
            (text, "")
        } else {
            let (name, path) = text.split_once('.')?;
            (name, path)
        };
        let default = self.arguments.get(name)?;
        let source = Source::Argument {
            required: self.required.contains(name),
            default: default.clone().filter(|_| path.is_empty()),
        };
        Some(Reference::new(source, name, path))
    }

    /// Finds the earlier step that `steps.NAME.path` reads; `Err` carries a name that is no earlier step.
    pub(super) fn step<'t>(&self, text: &'t str) -> Option<Result<Reference, &'t str>> {
        let rest = text.strip_prefix("steps.")?;
        let (name, path) = rest.split_once('.').unwrap_or((rest, ""));
        if self.steps.contains(name) {
            Some(Ok(Reference::new(Source::Step, name, path)))
        } else {
            Some(Err(name))
        }
    }
}

/// Where the values of one call come from.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// The arguments of the call; only declared ones are ever read.
    pub args: &'a Map<String, Value>,
    /// The values of the earlier steps.
    pub steps: &'a Map<String, Value>,
    /// The secrets that the templates name, as far as they exist.
    pub secrets: &'a BTreeMap<&'a str, Secret>,
    /// The version of the tool.
    pub version: &'a str,
}

/// Which of the sources a reference reads.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    Argument {
        required: bool,
        default: Option<Value>,
    },
    Step,
    Secret,
    /// A secret called `version`, else the version of the tool.
    Version,
}

/// One named value of a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reference {
    pub(super) source: Source,
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) default: Option<Value>,
}

/// A value that was found.
#[derive(Debug, Clone)]
pub(super) enum Found<'a> {
    Value(Cow<'a, Value>),
    Secret(&'a Secret),
    Missing,
}

impl Reference {
    pub(super) fn new(source: Source, name: &str, path: &str) -> Self {
        let path = if path.is_empty() { Vec::new() } else { path.split('.').map(str::to_owned).collect() };
        Self { source, name: name.to_owned(), path, default: None }
    }

    /// Returns the name as an author would write it.
    pub(super) fn written(&self) -> String {
        let steps = if matches!(self.source, Source::Step) { "steps." } else { "" };
        let mut out = format!("{steps}{}", self.name);
        for part in &self.path {
            out.push('.');
            out.push_str(part);
        }
        out
    }

    /// Returns the name of the argument that it stands for as a whole.
    pub(super) fn whole_argument(&self) -> Option<&str> {
        let whole = matches!(self.source, Source::Argument { .. }) && self.path.is_empty();
        whole.then_some(self.name.as_str())
    }

    /// Returns the name of the secret that it may read.
    pub(super) fn secret(&self) -> Option<&str> {
        matches!(self.source, Source::Secret | Source::Version).then_some(self.name.as_str())
    }

    /// Tells whether what was found may have to stay hidden.
    pub(super) fn is_sensitive(&self, found: &Found<'_>) -> bool {
        matches!(found, Found::Secret(_)) || matches!((&self.source, found), (Source::Step, Found::Value(_)))
    }

    /// Finds the value; a missing one that has to be there is an error.
    pub(super) fn find<'a>(&'a self, values: &Values<'a>) -> Result<Found<'a>, RenderError> {
        let found = self.peek(values, self.default.is_none());
        let absent = match &found {
            Found::Value(value) => value.is_null(),
            Found::Missing => true,
            Found::Secret(_) => false,
        };
        if let (true, Some(default)) = (absent, &self.default) {
            return Ok(Found::Value(Cow::Borrowed(default)));
        }
        if !matches!(found, Found::Missing) {
            return Ok(found);
        }
        match &self.source {
            Source::Argument { required: true, .. } if self.path.is_empty() => {
                Err(RenderError::MissingArgument(self.written()))
            }
            Source::Argument { .. } => Ok(Found::Missing),
            Source::Step => Err(RenderError::MissingStep(self.written())),
            Source::Secret | Source::Version => Err(RenderError::MissingSecret(self.written())),
        }
    }

    /// Tells whether a condition on it holds: missing, `null`, `false`, `""`, `0`, `[]` and `{}` do not.
    pub(super) fn truthy(&self, values: &Values<'_>) -> bool {
        match self.peek(values, true) {
            Found::Missing => false,
            Found::Secret(secret) => !secret.expose().is_empty(),
            Found::Value(value) => match value.as_ref() {
                Value::Null => false,
                Value::Bool(flag) => *flag,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(map) => !map.is_empty(),
            },
        }
    }

    /// Looks the value up, with or without the default of the schema.
    fn peek<'a>(&'a self, values: &Values<'a>, defaults: bool) -> Found<'a> {
        let root = match &self.source {
            Source::Argument { default, .. } => {
                values.args.get(&self.name).or(default.as_ref().filter(|_| defaults))
            }
            Source::Step => values.steps.get(&self.name),
            Source::Secret | Source::Version => {
                return match values.secrets.get(self.name.as_str()) {
                    Some(secret) => Found::Secret(secret),
                    None if self.source == Source::Version => {
                        Found::Value(Cow::Owned(Value::String(values.version.to_owned())))
                    }
                    None => Found::Missing,
                };
            }
        };
        let walked = self.path.iter().try_fold(root, |at, part| Some(Some(child(at?, part)?)));
        walked.flatten().map_or(Found::Missing, |value| Found::Value(Cow::Borrowed(value)))
    }
}

fn child<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}
