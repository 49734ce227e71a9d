//! Code artifacts: stored programs with declared inputs, which `artifact` tools run.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::Timestamp;
use crate::id::ArtifactId;
use crate::live::{ArtifactEvent, ObjectEvent, ResourceAction};
use crate::name::{ArtifactSlug, TenantId};
use crate::outcome::{CallError, ErrorCode};
use crate::problem::Problem;
use crate::resource::{Resource, ResourceKind, ResourceRevision, ResourceSpec};

/// The longest source, in bytes.
pub const MAX_SOURCE: usize = 4 << 20;
/// The largest number of inputs.
pub const MAX_INPUTS: usize = 100;
/// The longest display name, in characters.
pub const MAX_NAME: usize = 200;
/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = 4000;
/// The largest number of versions of one artifact.
pub const MAX_VERSIONS: u32 = 10_000;

/// The runtime of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArtifactRuntime {
    /// GNU bash.
    Bash,
    /// Python 3.
    Python,
    /// A WebAssembly component or module; the source is its bytes in base64.
    Wasm,
}

impl ArtifactRuntime {
    /// Every runtime, by the name used in definitions.
    pub const ALL: [(&'static str, Self); 3] =
        [("bash", Self::Bash), ("python", Self::Python), ("wasm", Self::Wasm)];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Python => "python",
            Self::Wasm => "wasm",
        }
    }

    /// Parses the name that [`ArtifactRuntime::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, runtime)| runtime)
    }
}

/// The type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// Any JSON value.
    #[default]
    Any,
    /// A text.
    String,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl InputType {
    /// Every type, by the name used in definitions.
    pub const ALL: [(&'static str, Self); 7] = [
        ("any", Self::Any),
        ("string", Self::String),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("boolean", Self::Boolean),
        ("array", Self::Array),
        ("object", Self::Object),
    ];

    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Returns whether a value has this type.
    pub fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::String => value.is_string(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// A declared input of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ArtifactInput {
    /// The name by which arguments are mapped.
    #[cfg_attr(feature = "openapi", schema(example = "city", max_length = 64))]
    pub name: String,
    /// The type.
    #[serde(default, rename = "type")]
    pub kind: InputType,
    /// Whether a call without it fails.
    #[serde(default)]
    pub required: bool,
    /// The value if a call has none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub default: Option<Value>,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A `null` is a value here, not a missing one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ArtifactInput {
    /// Creates an optional input.
    pub fn new(name: impl Into<String>, kind: InputType) -> Self {
        Self { name: name.into(), kind, required: false, default: None, description: String::new() }
    }
}

/// Checks the declared inputs.
pub fn check_inputs(inputs: &[ArtifactInput]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if inputs.len() > MAX_INPUTS {
        let message = format!("{} inputs; the limit is {MAX_INPUTS}", inputs.len());
        problems.push(Problem::new("inputs", "too_large", message));
        return problems;
    }
    for (index, input) in inputs.iter().enumerate() {
        let field = |name: &str| format!("inputs.{index}.{name}");
        let mut characters = input.name.chars();
        let is_name = characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
            && input.name.len() <= 64;
        if !is_name {
            let message = "use 1 to 64 ASCII letters, digits and `_`, not starting with a digit";
            problems.push(Problem::new(field("name"), "invalid_name", message));
        }
        if inputs.iter().take(index).any(|earlier| earlier.name == input.name) {
            let message = format!("`{}` is declared twice", input.name);
            problems.push(Problem::new(field("name"), "duplicate_name", message));
        }
        if input.default.as_ref().is_some_and(|value| !value.is_null() && !input.kind.accepts(value)) {
            let message = format!("the default is not of type `{}`", input.kind.as_str());
            problems.push(Problem::new(field("default"), "wrong_type", message));
        }
    }
    problems
}

/// Maps the arguments of a call to inputs, by name and literally: nothing is expanded. Arguments that are not declared
/// are left out; without declared inputs all of them are passed on.
pub fn map_inputs(
    inputs: &[ArtifactInput],
    args: &Map<String, Value>,
) -> Result<Map<String, Value>, CallError> {
    if inputs.is_empty() {
        return Ok(args.clone());
    }
    let invalid = |message: String| CallError::new(ErrorCode::InvalidArguments, message);
    let mut mapped = Map::new();
    for input in inputs {
        let name = &input.name;
        match args.get(name).filter(|value| !value.is_null()).or(input.default.as_ref()) {
            Some(value) if value.is_null() && !input.required => {}
            Some(value) if input.kind.accepts(value) => drop(mapped.insert(name.clone(), value.clone())),
            Some(_) => {
                let message =
                    format!("input `{name}` of the artifact must be of type `{}`", input.kind.as_str());
                return Err(invalid(message));
            }
            None if input.required => {
                return Err(invalid(format!("missing required input `{name}` of the artifact")));
            }
            None => {}
        }
    }
    Ok(mapped)
}

/// Returns the default values of inputs that a call omits.
pub fn input_defaults(inputs: &[ArtifactInput]) -> Map<String, Value> {
    let with_value = inputs.iter().filter_map(|input| Some((input.name.clone(), input.default.clone()?)));
    with_value.filter(|(_, value)| !value.is_null()).collect()
}

/// Returns the JSON Schema of the arguments that declared inputs accept.
pub fn input_schema(inputs: &[ArtifactInput]) -> Value {
    let mut properties = Map::new();
    for input in inputs {
        let mut property = Map::new();
        if input.kind != InputType::Any {
            property.insert("type".to_owned(), input.kind.as_str().into());
        }
        if !input.description.is_empty() {
            property.insert("description".to_owned(), input.description.clone().into());
        }
        if let Some(default) = &input.default {
            property.insert("default".to_owned(), default.clone());
        }
        properties.insert(input.name.clone(), Value::Object(property));
    }
    let required = inputs.iter().filter(|input| input.required && input.default.is_none());
    let required: Vec<Value> = required.map(|input| input.name.clone().into()).collect();
    serde_json::json!({"type": "object", "properties": properties, "required": required})
}

/// The definition of an artifact: its slug, and what its versions have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactDefinition {
    /// The name by which tools refer to it.
    pub slug: ArtifactSlug,
    /// The content as the author wrote it.
    #[serde(flatten)]
    pub content: Arc<ArtifactContent>,
}

impl ResourceSpec for ArtifactDefinition {
    type Id = ArtifactId;
    const KIND: ResourceKind = ResourceKind::CodeArtifact;

    fn slug(&self) -> &str {
        self.slug.as_str()
    }

    fn name(&self) -> &str {
        &self.content.name
    }

    fn description(&self) -> &str {
        &self.content.description
    }

    fn set_slug(&mut self, other: &Self) {
        self.slug.clone_from(&other.slug);
    }

    fn event(artifact: &CodeArtifact, change: ResourceAction) -> ObjectEvent {
        ObjectEvent::Artifact(ArtifactEvent {
            change,
            id: artifact.id,
            artifact: artifact.definition.slug.to_string(),
            version: artifact.revision,
        })
    }
}

/// A stored artifact. Its revisions are its versions.
pub type CodeArtifact = Resource<ArtifactDefinition>;

/// One version of an artifact. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArtifactVersion {
    /// Its number, from 1.
    pub version: u32,
    /// The content as the author wrote it.
    #[serde(flatten)]
    pub content: Arc<ArtifactContent>,
    /// The hash of the content.
    pub hash: String,
    /// Who stored it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required))]
    pub created_by: Option<Arc<str>>,
    /// When it was stored.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
}

impl From<ResourceRevision<ArtifactDefinition>> for ArtifactVersion {
    fn from(revision: ResourceRevision<ArtifactDefinition>) -> Self {
        Self {
            version: revision.number,
            content: Arc::clone(&revision.definition.content),
            hash: revision.hash,
            created_by: revision.created_by,
            created_at: revision.created_at,
        }
    }
}

/// The content of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArtifactContent {
    /// The name that people see.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required, example = "Word count", max_length = 200))]
    pub name: String,
    /// What it does.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required, max_length = 4000))]
    pub description: String,
    /// Its runtime.
    pub runtime: ArtifactRuntime,
    /// The source.
    #[cfg_attr(feature = "openapi", schema(example = "echo \"$text\" | wc -w"))]
    pub source: String,
    /// The inputs.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub inputs: Vec<ArtifactInput>,
}

impl ArtifactContent {
    /// Returns every problem.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = check_inputs(&self.inputs);
        let mut limit = |field: &str, length: usize, limit: usize, unit: &str| {
            if length > limit {
                let message = format!("has {length} {unit}; the limit is {limit}");
                problems.push(Problem::new(field, "too_large", message));
            }
        };
        limit("name", self.name.chars().count(), MAX_NAME, "characters");
        limit("description", self.description.chars().count(), MAX_DESCRIPTION, "characters");
        limit("source", self.source.len(), MAX_SOURCE, "bytes");
        if self.source.trim().is_empty() {
            problems.push(Problem::new("source", "missing_field", "the source is empty"));
        }
        // Neither engine of the store nor a shell can carry it.
        if self.source.contains('\0') {
            problems.push(Problem::new("source", "invalid_value", "the source contains a NUL character"));
        }
        problems
    }
}

/// Selects a version of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VersionSelector {
    /// The newest one at the time of the call; in production mode, the published one.
    Newest,
    /// The published one at the time of the call.
    Published,
    /// This one.
    Pinned(u32),
}

impl VersionSelector {
    /// Parses the `artifact_version` of a definition: missing, empty, `latest` or `newest` is the newest; `3` or `v3`
    /// is pinned.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text.map(str::trim) {
            None | Some("" | "latest" | "newest") => Some(Self::Newest),
            Some(text) => {
                let number = text.strip_prefix('v').unwrap_or(text).parse().ok()?;
                (number > 0).then_some(Self::Pinned(number))
            }
        }
    }
}

impl fmt::Display for VersionSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newest => f.write_str("newest"),
            Self::Published => f.write_str("published"),
            Self::Pinned(number) => number.fmt(f),
        }
    }
}

/// The stored artifacts, for executors.
pub trait CodeArtifacts: Send + Sync {
    /// Returns a version of a tenant's artifact, by id or slug; `None` if it does not exist.
    fn version<'a>(
        &'a self,
        tenant: &'a TenantId,
        reference: &'a str,
        version: VersionSelector,
    ) -> BoxFuture<'a, Result<Option<(ArtifactId, ArtifactVersion)>, CallError>>;

    /// Returns whether a tenant has an artifact, as far as this process knows. It is asked often and must not block.
    fn exists(&self, tenant: &TenantId, reference: &str, version: VersionSelector) -> bool;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inputs() -> Vec<ArtifactInput> {
        serde_json::from_value(json!([
            {"name": "city", "type": "string", "required": true},
            {"name": "days", "type": "integer", "default": 3},
            {"name": "unit"},
        ]))
        .unwrap()
    }

    #[test]
    fn arguments_map_by_name_and_literally() {
        let check = |args: Value, expected: Result<Value, &str>| {
            let mapped = map_inputs(&inputs(), args.as_object().unwrap());
            let mapped = mapped.map(Value::Object).map_err(|error| error.message);
            assert_eq!(mapped, expected.map_err(str::to_owned), "{args}");
        };
        check(json!({"city": "{{x}} ${HOME}"}), Ok(json!({"city": "{{x}} ${HOME}", "days": 3})));
        check(
            json!({"city": "a", "days": 2.0, "unit": [1]}),
            Ok(json!({"city": "a", "days": 2.0, "unit": [1]})),
        );
        check(json!({"city": "a", "other": 1}), Ok(json!({"city": "a", "days": 3})));
        check(json!({}), Err("missing required input `city` of the artifact"));
        check(json!({"city": null}), Err("missing required input `city` of the artifact"));
        check(json!({"city": 1}), Err("input `city` of the artifact must be of type `string`"));
        check(
            json!({"city": "a", "days": 1.5}),
            Err("input `days` of the artifact must be of type `integer`"),
        );
    }

    #[test]
    fn bad_inputs_are_reported() {
        let check = |inputs: Value, expected: &str| {
            let inputs: Vec<ArtifactInput> = serde_json::from_value(inputs).unwrap();
            assert!(crate::problem::join(&check_inputs(&inputs)).contains(expected), "{inputs:?}");
        };
        check(json!([{"name": "a-b"}]), "`inputs.0.name`: use 1 to 64");
        check(json!([{"name": "a"}, {"name": "a"}]), "`a` is declared twice");
        check(json!([{"name": "a", "type": "number", "default": "x"}]), "not of type `number`");
        assert!(check_inputs(&inputs()).is_empty());
    }

    #[test]
    fn versions_are_pinned_or_follow() {
        for (text, expected) in [
            (None, Some(VersionSelector::Newest)),
            (Some("latest"), Some(VersionSelector::Newest)),
            (Some("2"), Some(VersionSelector::Pinned(2))),
            (Some("v2"), Some(VersionSelector::Pinned(2))),
            (Some("0"), None),
            (Some("1.0"), None),
        ] {
            assert_eq!(VersionSelector::parse(text), expected, "{text:?}");
        }
    }
}
