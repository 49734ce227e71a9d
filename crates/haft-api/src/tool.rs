//! Tools: in full, as rows of lists, as search results, and their source texts.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::catalog::{FileForm, UnreadableFile};
use haft_core::implementation::{Implementation, Kind};
use haft_core::lifecycle::{Deprecation, LegacyFields};
use haft_core::name::TenantId;
use haft_core::problem::Problem;
use haft_core::schema::RawSchema;
use haft_core::spec::{Execution, Origin, Policy, Renderer};
use haft_core::tool::{Source, Status, Tool, ToolType, Usage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::usage::ToolUsage;

/// A tool, as the API shows it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the API")]
pub struct ToolView {
    /// The id; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub id: Option<Uuid>,
    /// The tenant that owns it; `null` for a global tool, which every tenant has.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "default")]
    pub tenant: Option<String>,
    #[schema(example = "user-created")]
    pub bundle: String,
    /// The id of the bundle; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub bundle_id: Option<Uuid>,
    #[schema(example = "greet")]
    pub name: String,
    #[schema(example = "1.0.0")]
    pub version: String,
    #[schema(example = "Greet")]
    pub display_name: String,
    #[schema(example = "Greets somebody by name")]
    pub description: String,
    pub category: String,
    #[schema(example = json!(["demo"]))]
    pub tags: Vec<String>,
    pub tool_type: ToolType,
    /// The kind of implementation; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub implementation_type: Option<Kind>,
    /// The language of a body, or `built-in`.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub runtime: Option<ToolRuntime>,
    /// The implementation; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub implementation: Option<Implementation>,
    /// JSON Schema of the arguments; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable_schema")]
    #[schema(required, value_type = Option<Object>)]
    pub input_schema: Option<RawSchema>,
    /// JSON Schema of the value; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable_schema")]
    #[schema(required, value_type = Option<Object>)]
    pub output_schema: Option<RawSchema>,
    /// The execution settings; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub execution: Option<Execution>,
    pub policy: Policy,
    pub requires_confirmation: bool,
    pub sandbox: bool,
    pub network: bool,
    /// The container image of its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    pub renderers: Vec<Renderer>,
    /// The operation that the tool was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    pub status: Status,
    pub enabled: bool,
    pub built_in: bool,
    /// Whether the newest revision is ready to run.
    pub ready: bool,
    /// Why it is not ready.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<String>,
    pub source: Source,
    /// The file, relative to the home folder.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "tools/user-created/greet.yaml")]
    pub path: Option<String>,
    /// The number of the newest revision.
    #[schema(example = 1)]
    pub revision: u32,
    /// The number of the revision that production mode runs.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_revision: Option<u32>,
    pub usage: Usage,
    /// When it was created; `null` for an unreadable file.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub created_at: Option<Timestamp>,
    pub modified_at: Timestamp,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub published_at: Option<Timestamp>,
    /// Who created it: the name of a token, or `file`.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "local")]
    pub created_by: Option<String>,
    /// Who stored the newest revision.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "local")]
    pub modified_by: Option<String>,
    /// Who published the revision that production mode runs.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "local")]
    pub published_by: Option<String>,
    /// Whether the token of the request may call the tool now, as far as that does not depend on the arguments.
    pub callable: bool,
    /// Why it is deprecated, what replaces it, and until when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Deprecation>, required = false)]
    pub deprecation: Option<Arc<Deprecation>>,
    /// The registry row that the tool was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LegacyFields>, required = false)]
    pub legacy: Option<Arc<LegacyFields>>,
    /// The body of a script, repeated from `implementation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The input schema of a script, repeated from `input_schema`.
    #[serde(
        default,
        deserialize_with = "crate::read::nullable_schema",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<RawSchema>,
    /// The timeout of a script, repeated from `execution`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// Warnings about a tool that is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Problem>,
}

impl ToolView {
    /// Returns `bundle:name@version`, or `bundle:name` of an unreadable file, which has no version.
    pub fn qualified(&self) -> String {
        let Self { bundle, name, version, .. } = self;
        if version.is_empty() { format!("{bundle}:{name}") } else { format!("{bundle}:{name}@{version}") }
    }
}

/// A tool without the fields that depend on the registry and the caller: readiness, usage and whether it may be called.
impl From<&Tool> for ToolView {
    fn from(tool: &Tool) -> Self {
        let spec = haft_core::redact::masked(&tool.spec);
        let (body, parameters) = match &spec.implementation {
            Implementation::Script(script) => (Some(script.body.clone()), Some(spec.input_schema.clone())),
            _ => (None, None),
        };
        let timeout_secs = body.as_ref().map(|_| spec.deadline().as_millis().div_ceil(1000));
        let timeout_secs = timeout_secs.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            id: Some(tool.id.0),
            tenant: owner(&tool.tenant),
            bundle: tool.bundle.to_string(),
            bundle_id: Some(tool.bundle_id.0),
            name: spec.name.to_string(),
            version: spec.version.to_string(),
            display_name: spec.title().to_owned(),
            description: spec.description,
            category: spec.category,
            tags: spec.tags,
            tool_type: tool.tool_type(),
            implementation_type: Some(tool.kind()),
            runtime: ToolRuntime::of(tool),
            implementation: Some(spec.implementation),
            input_schema: Some(spec.input_schema),
            output_schema: Some(spec.output_schema),
            execution: Some(spec.execution),
            policy: spec.policy,
            requires_confirmation: spec.requires_confirmation,
            sandbox: spec.sandbox,
            network: spec.network,
            image: spec.image,
            renderers: spec.renderers,
            origin: spec.origin,
            status: tool.status,
            enabled: tool.enabled,
            built_in: tool.built_in,
            ready: false,
            error: None,
            source: tool.source,
            path: tool.path.clone(),
            revision: tool.revision,
            published_revision: tool.published.as_ref().map(|(number, _)| *number),
            usage: Usage::default(),
            created_at: Some(tool.created_at),
            modified_at: tool.modified_at,
            published_at: tool.published_at,
            created_by: owned(tool.lifecycle.created_by.as_ref()),
            modified_by: owned(tool.lifecycle.modified_by.as_ref()),
            published_by: owned(tool.lifecycle.published_by.as_ref()),
            callable: false,
            deprecation: tool.deprecation().cloned(),
            legacy: tool.lifecycle.legacy.clone(),
            body,
            parameters,
            timeout_secs,
            warnings: Vec::new(),
        }
    }
}

impl From<&UnreadableFile> for ToolView {
    fn from(file: &UnreadableFile) -> Self {
        Self {
            id: None,
            tenant: owner(&file.tenant),
            bundle: file.bundle.to_string(),
            bundle_id: None,
            name: file.name.clone(),
            version: String::new(),
            display_name: file.name.clone(),
            description: String::new(),
            category: String::new(),
            tags: Vec::new(),
            tool_type: ToolType::Custom,
            implementation_type: None,
            runtime: None,
            implementation: None,
            input_schema: None,
            output_schema: None,
            execution: None,
            policy: Policy::Allow,
            requires_confirmation: false,
            sandbox: false,
            network: false,
            image: None,
            renderers: Vec::new(),
            origin: None,
            status: Status::Draft,
            enabled: true,
            built_in: false,
            ready: false,
            error: Some(file.error.clone()),
            source: Source::User,
            path: Some(file.path.clone()),
            revision: 0,
            published_revision: None,
            usage: Usage::default(),
            created_at: None,
            modified_at: file.modified_at,
            published_at: None,
            created_by: None,
            modified_by: None,
            published_by: None,
            callable: false,
            deprecation: None,
            legacy: None,
            body: None,
            parameters: None,
            timeout_secs: None,
            warnings: Vec::new(),
        }
    }
}

/// Returns the name of the tenant that owns something, if any.
fn owner(tenant: &TenantId) -> Option<String> {
    (!tenant.is_global()).then(|| tenant.to_string())
}

fn owned(name: Option<&Arc<str>>) -> Option<String> {
    name.map(ToString::to_string)
}

/// The language of a tool's body, or that it is built in.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolRuntime {
    /// GNU bash.
    Bash,
    /// Python 3.
    Python,
    /// WebAssembly.
    Wasm,
    /// Compiled into haft.
    BuiltIn,
}

impl ToolRuntime {
    /// Returns the runtime of a tool, if it has one.
    pub fn of(tool: &Tool) -> Option<Self> {
        let language = tool.spec.implementation.runtime().and_then(Self::parse);
        language.or(tool.built_in.then_some(Self::BuiltIn))
    }

    /// Parses the name of a language.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "bash" => Some(Self::Bash),
            "python" => Some(Self::Python),
            "wasm" => Some(Self::Wasm),
            _ => None,
        }
    }
}

/// A page of tools.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolList {
    pub tools: Vec<ToolView>,
    /// The number of tools that match the filter.
    pub total: usize,
    /// How many of them are ready to run.
    pub ready: usize,
    /// How many of them are not ready.
    pub failed: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A deleted tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeletedTool {
    #[schema(example = "Tool 'greet' deleted")]
    pub message: String,
    /// The backup of the definition, relative to the home folder.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub backup_path: Option<String>,
    /// Who depended on the tool.
    pub usage: ToolUsage,
}

/// The source text of a definition.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SourceView {
    #[schema(example = "name: greet\n")]
    pub text: String,
    pub form: SourceForm,
    /// The file, relative to the home folder.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub path: Option<String>,
}

/// The form of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceForm {
    Skill,
    Yaml,
    Json,
}

impl From<FileForm> for SourceForm {
    fn from(form: FileForm) -> Self {
        match form {
            FileForm::Skill => Self::Skill,
            FileForm::Yaml => Self::Yaml,
            FileForm::Json => Self::Json,
        }
    }
}
