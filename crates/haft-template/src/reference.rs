//! The names that a template may use, and their values.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::error::RenderError;
use haft_core::schema::declared_properties;
use haft_core::secret::{ExternalReference, Secret};

/// The arguments and steps that the templates of a tool may use.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    arguments: HashMap<String, Option<Value>>,
    required: HashSet<String>,
    steps: HashSet<String>,
    /// Whether names that are not declared are arguments, too.
    is_open: bool,
}

impl Scope {
    /// Reads the declared arguments, their defaults, and which are required from an input schema.
    pub fn from_schema(input_schema: &Value) -> Self {
        let required = input_schema.get("required").and_then(Value::as_array);
        Self {
            arguments: declared_properties(input_schema)
                .into_iter()
                .map(|(name, schema)| (name.to_owned(), schema.get("default").cloned()))
                .collect(),
            required: required.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            steps: HashSet::new(),
            is_open: false,
        }
    }

    /// Reads names that are not declared as optional arguments, to find out which names a template uses.
    #[must_use]
    pub fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Lets templates that are parsed later use the value of a step.
    pub fn add_step(&mut self, name: &str) {
        self.steps.insert(name.to_owned());
    }

    /// Returns whether an argument of that name is declared.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.arguments.contains_key(name)
    }

    /// Finds the declared argument of a name or of a dotted path.
    pub(super) fn argument(&self, text: &str) -> Option<Reference> {
        let (name, path) = match text.split_once('.') {
            Some(parts) if !self.arguments.contains_key(text) => parts,
            _ => (text, ""),
        };
        let default = match self.arguments.get(name) {
            Some(default) => default.clone(),
            None if self.is_open && ExternalReference::parse(text).is_none() => None,
            None => return None,
        };
        let source = Source::Argument {
            required: self.required.contains(name),
            default: default.filter(|_| path.is_empty()),
        };
        Some(Reference::new(source, name, path))
    }

    /// Finds the earlier step of `steps.NAME.path`; `Err` has the name of an unknown step.
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

/// The values of one call.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// The arguments of the call; only declared ones are read.
    pub args: &'a Map<String, Value>,
    /// The values of the earlier steps.
    pub steps: &'a Map<String, Value>,
    /// The existing secrets of the templates.
    pub secrets: &'a BTreeMap<&'a str, Secret>,
    /// The version of the tool.
    pub version: &'a str,
}

/// The source of a reference.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    Argument {
        required: bool,
        default: Option<Value>,
    },
    Step,
    Secret,
    /// A secret named `version`, else the version of the tool.
    Version,
}

/// A reference to a value in a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reference {
    pub(super) source: Source,
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) default: Option<Value>,
}

/// The result of resolving a reference.
#[derive(Debug, Clone)]
pub(super) enum Resolved<'a> {
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
    pub(super) fn display_name(&self) -> String {
        let steps = if matches!(self.source, Source::Step) { "steps." } else { "" };
        let mut out = format!("{steps}{}", self.name);
        for part in &self.path {
            out.push('.');
            out.push_str(part);
        }
        out
    }

    /// Returns the name of the argument, if the reference has no path.
    pub(super) fn whole_argument(&self) -> Option<&str> {
        let whole = matches!(self.source, Source::Argument { .. }) && self.path.is_empty();
        whole.then_some(self.name.as_str())
    }

    /// Returns the name of the secret that it may read.
    pub(super) fn secret(&self) -> Option<&str> {
        matches!(self.source, Source::Secret | Source::Version).then_some(self.name.as_str())
    }

    /// Returns whether the value may be a secret.
    pub(super) fn is_sensitive(&self, resolved: &Resolved<'_>) -> bool {
        matches!(resolved, Resolved::Secret(_))
            || matches!((&self.source, resolved), (Source::Step, Resolved::Value(_)))
    }

    /// Resolves the value; a missing required one is an error.
    pub(super) fn resolve<'a>(&'a self, values: &Values<'a>) -> Result<Resolved<'a>, RenderError> {
        let found = self.lookup(values, self.default.is_none());
        let absent = match &found {
            Resolved::Value(value) => value.is_null(),
            Resolved::Missing => true,
            Resolved::Secret(_) => false,
        };
        if let (true, Some(default)) = (absent, &self.default) {
            return Ok(Resolved::Value(Cow::Borrowed(default)));
        }
        if !matches!(found, Resolved::Missing) {
            return Ok(found);
        }
        match &self.source {
            Source::Argument { required: true, .. } if self.path.is_empty() => {
                Err(RenderError::MissingArgument(self.display_name()))
            }
            Source::Argument { .. } => Ok(Resolved::Missing),
            Source::Step => Err(RenderError::MissingStep(self.display_name())),
            Source::Secret | Source::Version => Err(RenderError::MissingSecret(self.display_name())),
        }
    }

    /// Returns whether a condition on it is true: missing, `null`, `false`, `""`, `0`, `[]` and `{}` are false.
    pub(super) fn truthy(&self, values: &Values<'_>) -> bool {
        match self.lookup(values, true) {
            Resolved::Missing => false,
            Resolved::Secret(secret) => !secret.expose().is_empty(),
            Resolved::Value(value) => match value.as_ref() {
                Value::Null => false,
                Value::Bool(flag) => *flag,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(map) => !map.is_empty(),
            },
        }
    }

    /// Looks up the value, with or without the default of the schema.
    fn lookup<'a>(&'a self, values: &Values<'a>, defaults: bool) -> Resolved<'a> {
        let root = match &self.source {
            Source::Argument { default, .. } => {
                values.args.get(&self.name).or(default.as_ref().filter(|_| defaults))
            }
            Source::Step => values.steps.get(&self.name),
            Source::Secret | Source::Version => {
                return match values.secrets.get(self.name.as_str()) {
                    Some(secret) => Resolved::Secret(secret),
                    None if self.source == Source::Version => {
                        Resolved::Value(Cow::Owned(Value::String(values.version.to_owned())))
                    }
                    None => Resolved::Missing,
                };
            }
        };
        let walked = self.path.iter().try_fold(root, |at, part| Some(Some(child(at?, part)?)));
        walked.flatten().map_or(Resolved::Missing, |value| Resolved::Value(Cow::Borrowed(value)))
    }
}

fn child<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}
