//! The fields that all dialects have in common.

use serde_json::{Map, Value};

use super::execution;
use super::fields::{Fields, conflict, describe};
use super::implementation::Block;
use super::params;
use super::reading::Defaults;
use haft_core::implementation::Implementation;
use haft_core::name::{NameError, ToolName, Version};
use haft_core::schema::RawSchema;
use haft_core::spec::{Execution, Origin, Policy, Retry, ToolSpec};
use haft_core::tool::Status;

/// Fields of the canonical form that are derived or belong to the store. They are ignored, so that a response of the API
/// can be sent back.
const DERIVED_FIELDS: [&str; 35] = [
    "id",
    "tool_id",
    "toolID",
    "schema_version",
    "is_built_in",
    "soft_deleted_at",
    "builtin_template_id",
    "is_builtin_template",
    "is_system",
    "implementation_type",
    "tenant",
    "tenant_id",
    "tool_type",
    "ready",
    "error",
    "source",
    "path",
    "usage",
    "created_at",
    "modified_at",
    "updated_at",
    "published_at",
    "created_by",
    "modified_by",
    "published_by",
    "callable",
    "deprecation",
    "legacy",
    "built_in",
    "revision",
    "hash",
    "qualified",
    "published_revision",
    "warnings",
    "hint",
];

/// The result of reading the fields that are specific to a dialect.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) name: Option<ToolName>,
    pub(super) display_name: String,
    pub(super) implementation: Option<Implementation>,
    pub(super) input_schema: Option<Value>,
    pub(super) output_schema: Option<Value>,
    /// A timeout outside the `execution` block.
    pub(super) timeout_ms: Option<u64>,
    /// Retry settings outside the `execution` block.
    pub(super) retry: Option<Retry>,
    /// The execution settings, if the dialect has its own block for them.
    pub(super) execution: Option<Execution>,
}

/// A complete definition, and the fields that are not part of it.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) spec: ToolSpec,
    pub(super) enabled: Option<bool>,
    pub(super) bundle: Option<String>,
    pub(super) status: Option<Status>,
    pub(super) scope: Option<String>,
    pub(super) from_api: bool,
}

impl Draft {
    pub(super) fn take(&mut self, block: Block) {
        self.implementation = block.implementation;
        self.timeout_ms = block.timeout_ms;
        self.retry = block.retry;
    }

    /// Reads the common fields and completes the definition; `None` if an error was reported.
    pub(super) fn finish(mut self, mut fields: Fields<'_>, defaults: &Defaults) -> Option<Finished> {
        let from_api = fields.has("tool_type");
        if from_api {
            // It is also part of `execution`.
            fields.ignore(&["timeout_secs"]);
        }
        let version = version(&mut fields, defaults);
        let description = fields.text("description").unwrap_or_default();
        let category = fields.text("category").unwrap_or_default();
        let tags = fields.texts("tags").unwrap_or_default();
        self.display_name(&mut fields);
        let policies = [("allow", Policy::Allow), ("deny", Policy::Deny), ("elevated", Policy::Elevated)];
        let policy = fields.choice("policy", &policies).unwrap_or_default();
        let requires_confirmation = fields.flag("requires_confirmation").unwrap_or_default();
        let sandbox = fields.flag("sandbox").unwrap_or_default();
        let network = fields.flag("network").unwrap_or_default();
        let image = fields.text("image");
        let renderers = execution::renderers(&mut fields);
        let origin = origin(&mut fields);
        let execution = self.execution(&mut fields);
        let enabled = fields.alias(&["enabled", "is_enabled", "is_active"]).and_then(|key| fields.flag(key));
        // The API returns both the slug and the id; they name the same bundle.
        let [slug, toolset, id, camel] =
            ["bundle", "toolset", "bundle_id", "bundleID"].map(|key| fields.text(key));
        let bundle = slug.or(toolset).or(id).or(camel);
        let status = status(&mut fields);
        let scope = fields.text("scope");
        fields.ignore(&DERIVED_FIELDS);
        let name = self.name?;
        // The API returns the name as display name if there is none.
        if self.display_name == name.as_str() {
            self.display_name.clear();
        }
        if matches!(self.implementation, Some(Implementation::RagRetrieval(_))) {
            self.input_schema = Some(haft_core::retrieval::with_query(self.input_schema));
        }
        let declares_nothing =
            self.input_schema.as_ref().is_none_or(|schema| schema.as_object().is_some_and(Map::is_empty));
        if declares_nothing && matches!(self.implementation, Some(Implementation::AgentCall(_))) {
            self.input_schema = Some(haft_core::agent::call_input_schema());
        }
        Some(Finished {
            spec: ToolSpec {
                name,
                version: version?,
                display_name: self.display_name,
                description,
                category,
                tags,
                implementation: self.implementation?,
                input_schema: self.input_schema.map(RawSchema::from).unwrap_or_default(),
                output_schema: self.output_schema.map(RawSchema::from).unwrap_or_default(),
                execution,
                policy,
                requires_confirmation,
                sandbox,
                network,
                image,
                renderers,
                origin,
            },
            enabled,
            bundle,
            status,
            scope,
            from_api,
        })
    }

    /// Reads the display name; in definitions with a `slug`, the `name` may be it.
    fn display_name(&mut self, fields: &mut Fields<'_>) {
        let Some(text) = fields.text("display_name") else { return };
        let is_name = self.name.as_ref().is_some_and(|name| name.as_str() == text);
        if !self.display_name.is_empty() && self.display_name != text && !is_name {
            fields.error("display_name", "conflicting_fields", conflict("name"));
        }
        self.display_name = text;
    }

    /// Merges the `execution` block with settings outside of it.
    fn execution(&mut self, fields: &mut Fields<'_>) -> Execution {
        let block = fields.alias(&["execution", "execution_config"]).and_then(|key| fields.nested(key));
        let mut execution = match (self.execution.take(), block) {
            (Some(own), None) => own,
            (None, Some(mut nested)) => execution::read(&mut nested),
            (None, None) => Execution::default(),
            (Some(own), Some(mut nested)) => {
                if execution::read(&mut nested) != own {
                    fields.error("execution", "conflicting_fields", "is set twice; remove one");
                }
                own
            }
        };
        let outer = [self.timeout_ms, execution::timeout(fields)];
        for timeout in outer.into_iter().flatten() {
            if execution.timeout_ms.is_some_and(|own| own != timeout) {
                let message = "is set twice with different values; remove one";
                fields.error("timeout", "conflicting_fields", message);
            }
            execution.timeout_ms = Some(timeout);
        }
        if let Some(retry) = self.retry.take() {
            if execution.retry.as_ref().is_some_and(|own| *own != retry) {
                fields.error(
                    "execution.retry",
                    "conflicting_fields",
                    "is also set outside `execution`; remove one",
                );
            }
            execution.retry = Some(retry);
        }
        if let Some(limit) = execution::calls_per_minute(fields) {
            if execution.rate_limit.as_ref().is_some_and(|own| *own != limit) {
                let message = conflict("execution.rate_limit");
                fields.error("max_calls_per_minute", "conflicting_fields", message);
            }
            execution.rate_limit = Some(limit);
        }
        execution
    }
}

/// Reads the names: with a `slug`, that is the tool name and `name` the display name; otherwise `name` is the tool name.
/// `required` is the key that is reported if both are missing.
pub(super) fn names(fields: &mut Fields<'_>, draft: &mut Draft, required: &'static str, defaults: &Defaults) {
    if fields.has("slug") {
        draft.name = name(fields, "slug", defaults);
        draft.display_name = fields.text("name").unwrap_or_default();
        if draft.name.as_ref().is_some_and(|name| name.as_str() == draft.display_name) {
            draft.display_name.clear();
        }
        return;
    }
    let key = if fields.has("name") { "name" } else { required };
    draft.name = name(fields, key, defaults);
    fields.ignore(&["slug", "name"]);
}

/// Reads the tool name, or uses the one derived from the file name.
fn name(fields: &mut Fields<'_>, key: &'static str, defaults: &Defaults) -> Option<ToolName> {
    let text = match (fields.has(key), &defaults.name) {
        (false, Some(name)) => {
            fields.ignore(&[key]);
            name.clone()
        }
        _ => fields.required_text(key, "the name of the tool")?,
    };
    let invalid = |error: NameError| {
        // A name for people has to move to another key.
        let hint = if text.contains(' ') { "; keep it as the `display_name`, or add a `slug`" } else { "" };
        fields.error(key, "invalid_name", format!("{error}{hint}"));
    };
    ToolName::new(&text).map_err(invalid).ok()
}

fn version(fields: &mut Fields<'_>, defaults: &Defaults) -> Option<Version> {
    let text = match fields.value("version") {
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) if number.is_u64() => number.to_string(),
        Some(other) => {
            let found = describe(&other);
            fields.error("version", "wrong_type", format!("expected a string, found {found}; quote it"));
            return None;
        }
        None => match &defaults.version {
            Some(version) => version.clone(),
            None => return Some(Version::initial()),
        },
    };
    Version::new(&text).map_err(|error| fields.error("version", "invalid_version", error.to_string())).ok()
}

fn status(fields: &mut Fields<'_>) -> Option<Status> {
    fields.choice("status", &Status::ALL.map(|status| (status.as_str(), status)))
}

/// Reads the origin of an imported tool.
fn origin(fields: &mut Fields<'_>) -> Option<Origin> {
    let mut origin = fields.nested("origin")?;
    let document = origin.required_text("document", "the title of the document");
    let operation = origin.required_text("operation", "the operation, such as `GET /pets`");
    let operation_id = origin.text("operation_id");
    let digests = origin.text_map("said").unwrap_or_default();
    Some(Origin { document: document?, operation: operation?, operation_id, digests })
}

/// Reads a JSON Schema.
pub(super) fn schema(fields: &mut Fields<'_>, key: &'static str) -> Option<Value> {
    match fields.value(key)? {
        schema @ (Value::Object(_) | Value::Bool(_)) => Some(schema),
        other => {
            let message = format!("expected a JSON Schema (a map), found {}", describe(&other));
            fields.error(key, "wrong_type", message);
            None
        }
    }
}

/// The spellings of the input schema in all dialects.
const INPUT_SCHEMA: [&str; 5] = ["input_schema", "parameters", "argSchema", "args_schema", "params"];

/// Reads the input schema under any of its spellings: a JSON Schema, or a list of parameters.
pub(super) fn input_schema(fields: &mut Fields<'_>) -> Option<Value> {
    fields.suggest(&INPUT_SCHEMA);
    let mut found: Option<(&str, Value)> = None;
    for key in INPUT_SCHEMA {
        let Some(schema) = schema_or_list(fields, key) else { continue };
        match &found {
            None => found = Some((key, schema)),
            Some((_, first)) if *first == schema => {}
            Some((first, _)) => fields.error(key, "conflicting_fields", conflict(&fields.path(first))),
        }
    }
    found.map(|(_, schema)| schema)
}

fn schema_or_list(fields: &mut Fields<'_>, key: &'static str) -> Option<Value> {
    match fields.peek(key)? {
        Value::Array(_) => fields.nested_list(key).map(params::to_schema),
        Value::Object(map) if is_map_of_arguments(map, key) => {
            let message = if key == "params" {
                "expected a list, found a map; write each parameter as a list item such as `- name: city`"
            } else {
                "expected a JSON Schema, found a map of arguments; move them to `properties` and add `\"type\": \"object\"`"
            };
            fields.error(key, "wrong_type", message);
            fields.raw(key);
            None
        }
        Value::Object(_) | Value::Bool(_) | Value::Null => schema(fields, key),
        other => {
            let expected =
                if key == "params" { "a list" } else { "a JSON Schema (a map) or a list of parameters" };
            let message = format!("expected {expected}, found {}", describe(other));
            fields.error(key, "wrong_type", message);
            fields.raw(key);
            None
        }
    }
}

/// Returns whether a map has the names of arguments as keys, and no keyword of JSON Schema. As a schema it would declare
/// nothing.
fn is_map_of_arguments(map: &Map<String, Value>, key: &str) -> bool {
    let is_keyword = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "title" | "description" => !value.is_object(),
        key => SCHEMA_KEYWORDS.contains(&key) || key.starts_with('$') || key.starts_with("x-"),
    };
    let is_argument = |value: &Value| value.get("type").is_some_and(Value::is_string);
    // A schema may have unknown keywords, but nobody writes one as `params`.
    let are_arguments = key == "params" || map.values().all(is_argument);
    !map.is_empty() && are_arguments && !map.iter().any(is_keyword)
}

/// The keywords that the schema of an object may have, besides its type and texts.
const SCHEMA_KEYWORDS: [&str; 24] = [
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "definitions",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "default",
    "examples",
    "const",
    "enum",
    "items",
];

/// Reads the output schema.
pub(super) fn output_schema(fields: &mut Fields<'_>) -> Option<Value> {
    schema(fields, "output_schema")
}
