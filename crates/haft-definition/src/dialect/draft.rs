//! The fields that all dialects have in common.

use serde_json::Value;

use super::execution;
use super::fields::{Fields, describe};
use super::implementation::Block;
use super::reading::Defaults;
use haft_core::implementation::Implementation;
use haft_core::name::{ToolName, Version};
use haft_core::schema::RawSchema;
use haft_core::spec::{Execution, Origin, Policy, Retry, ToolSpec};
use haft_core::tool::Status;

/// Fields of the canonical form that are derived or belong to the store. They are ignored, so that a response of the API
/// can be sent back.
const DERIVED_FIELDS: [&str; 20] = [
    "id",
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
    pub(super) enabled: Option<bool>,
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
        let version = version(&mut fields, defaults);
        let description = fields.text("description").unwrap_or_default();
        let category = fields.text("category").unwrap_or_default();
        let tags = fields.texts("tags").unwrap_or_default();
        if self.display_name.is_empty() {
            self.display_name = fields.text("display_name").unwrap_or_default();
        }
        let policies = [("allow", Policy::Allow), ("deny", Policy::Deny), ("elevated", Policy::Elevated)];
        let policy = fields.choice("policy", &policies).unwrap_or_default();
        let requires_confirmation = fields.flag("requires_confirmation").unwrap_or_default();
        let sandbox = fields.flag("sandbox").unwrap_or_default();
        let network = fields.flag("network").unwrap_or_default();
        let image = fields.text("image");
        let renderers = execution::renderers(&mut fields);
        let origin = origin(&mut fields);
        let execution = self.execution(&mut fields);
        let enabled = fields.flag("enabled").or(self.enabled);
        // The API returns both the slug and the id; they name the same bundle.
        let [slug, toolset, id, camel] =
            ["bundle", "toolset", "bundle_id", "bundleID"].map(|key| fields.text(key));
        let bundle = slug.or(toolset).or(id).or(camel);
        let status = status(&mut fields);
        let scope = fields.text("scope");
        let from_api = fields.has("tool_type");
        fields.ignore(&DERIVED_FIELDS);
        if from_api {
            // It is also part of `execution`.
            fields.ignore(&["timeout_secs"]);
        }
        let name = self.name?;
        // The API returns the name as display name if there is none.
        if self.display_name == name.as_str() {
            self.display_name.clear();
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

    /// Merges the `execution` block with settings outside of it.
    fn execution(&mut self, fields: &mut Fields<'_>) -> Execution {
        let mut execution = match (self.execution.take(), fields.nested("execution")) {
            (Some(own), None) => own,
            (None, Some(mut nested)) => execution::read(&mut nested),
            (None, None) => Execution::default(),
            (Some(own), Some(_)) => {
                fields.error("execution", "conflicting_fields", "is set twice; remove one");
                own
            }
        };
        if let Some(timeout) = self.timeout_ms {
            if execution.timeout_ms.is_some() {
                fields.error(
                    "execution.timeout",
                    "conflicting_fields",
                    "is also set outside `execution`; remove one",
                );
            }
            execution.timeout_ms = Some(timeout);
        }
        if let Some(retry) = self.retry.take() {
            if execution.retry.is_some() {
                fields.error(
                    "execution.retry",
                    "conflicting_fields",
                    "is also set outside `execution`; remove one",
                );
            }
            execution.retry = Some(retry);
        }
        execution
    }
}

/// Reads the tool name, or uses the one derived from the file name.
pub(super) fn name(fields: &mut Fields<'_>, key: &'static str, defaults: &Defaults) -> Option<ToolName> {
    let text = match (fields.has(key), &defaults.name) {
        (false, Some(name)) => {
            fields.ignore(&[key]);
            name.clone()
        }
        _ => fields.required_text(key, "the name of the tool")?,
    };
    checked_name(fields, key, &text)
}

/// Validates a tool name.
pub(super) fn checked_name(fields: &Fields<'_>, key: &str, text: &str) -> Option<ToolName> {
    ToolName::new(text).map_err(|error| fields.error(key, "invalid_name", error.to_string())).ok()
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
