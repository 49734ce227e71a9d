//! The response types of the API: counterparts of the domain types.

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::call::CallRecord;
use haft_core::catalog::UnreadableFile;
use haft_core::implementation::Implementation;
use haft_core::outcome::CallError;
use haft_core::redact;
use haft_core::schema::RawSchema;
use haft_core::spec::{Execution, Origin, Policy, Renderer};
use haft_core::tool::{Revision, Usage};
use haft_runtime::registry::Entry;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A tool, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the API")]
pub(crate) struct ToolView {
    /// The id; `null` for an unreadable file.
    #[schema(value_type = Option<String>)]
    id: Option<String>,
    tenant: String,
    bundle: String,
    bundle_id: Option<String>,
    name: String,
    version: String,
    display_name: String,
    description: String,
    category: String,
    tags: Vec<String>,
    /// `built_in`, `mcp`, `artifact` or `custom`.
    tool_type: &'static str,
    implementation_type: Option<&'static str>,
    /// The language of a body: `bash`, `python`, `wasm`.
    runtime: Option<&'static str>,
    #[schema(value_type = Object)]
    implementation: Option<Implementation>,
    #[schema(value_type = Object)]
    input_schema: Option<RawSchema>,
    #[schema(value_type = Object)]
    output_schema: Option<RawSchema>,
    #[schema(value_type = Object)]
    execution: Option<Execution>,
    #[schema(value_type = String)]
    policy: Policy,
    requires_confirmation: bool,
    sandbox: bool,
    network: bool,
    /// The container image of its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[schema(value_type = Vec<Object>)]
    renderers: Vec<Renderer>,
    /// The operation that the tool was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    origin: Option<Origin>,
    status: &'static str,
    enabled: bool,
    built_in: bool,
    /// Whether the newest revision is ready to run.
    ready: bool,
    /// Why it is not ready.
    error: Option<String>,
    source: &'static str,
    /// The file, relative to the home folder.
    path: Option<String>,
    /// The number of the newest revision.
    revision: u32,
    published_revision: Option<u32>,
    #[schema(value_type = Object)]
    usage: Usage,
    created_at: Option<String>,
    modified_at: String,
    published_at: Option<String>,
    /// The body of a script, repeated from `implementation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The input schema of a script, repeated from `input_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    parameters: Option<RawSchema>,
    /// The timeout of a script, repeated from `execution`.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_secs: Option<u64>,
    /// Why the tool may not do what its author expects, although it is ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub(crate) warnings: Vec<haft_core::problem::Problem>,
}

impl From<&Entry> for ToolView {
    fn from(entry: &Entry) -> Self {
        let tool = &entry.tool;
        let spec = redact::masked(&tool.spec);
        let (body, parameters) = match &spec.implementation {
            Implementation::Script(script) => (Some(script.body.clone()), Some(spec.input_schema.clone())),
            _ => (None, None),
        };
        let timeout_secs = body.as_ref().and(spec.execution.timeout_ms).map(|millis| millis.div_ceil(1000));
        Self {
            id: Some(tool.id.to_string()),
            tenant: tool.tenant.to_string(),
            bundle: tool.bundle.to_string(),
            bundle_id: Some(tool.bundle_id.to_string()),
            name: spec.name.to_string(),
            version: spec.version.to_string(),
            display_name: spec.title().to_owned(),
            description: spec.description,
            category: spec.category,
            tags: spec.tags,
            tool_type: tool.tool_type().as_str(),
            implementation_type: Some(tool.kind().as_str()),
            runtime: spec.implementation.runtime().or(tool.built_in.then_some("built-in")),
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
            status: tool.status.as_str(),
            enabled: tool.enabled,
            built_in: tool.built_in,
            ready: entry.ready(),
            error: entry.fault(),
            source: tool.source.as_str(),
            path: tool.path.clone(),
            revision: tool.revision,
            published_revision: tool.published.as_ref().map(|(number, _)| *number),
            usage: entry.usage(),
            created_at: Some(tool.created_at.to_string()),
            modified_at: tool.modified_at.to_string(),
            published_at: tool.published_at.map(|at| at.to_string()),
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
            tenant: file.tenant.to_string(),
            bundle: file.bundle.to_string(),
            bundle_id: None,
            name: file.name.clone(),
            version: String::new(),
            display_name: file.name.clone(),
            description: String::new(),
            category: String::new(),
            tags: Vec::new(),
            tool_type: "custom",
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
            status: "draft",
            enabled: true,
            built_in: false,
            ready: false,
            error: Some(file.error.clone()),
            source: "user",
            path: Some(file.path.clone()),
            revision: 0,
            published_revision: None,
            usage: Usage::default(),
            created_at: None,
            modified_at: file.modified_at.to_string(),
            published_at: None,
            body: None,
            parameters: None,
            timeout_secs: None,
            warnings: Vec::new(),
        }
    }
}

/// A bundle, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BundleView {
    id: String,
    tenant: String,
    slug: String,
    display_name: String,
    description: String,
    enabled: bool,
    /// Where its tools come from: `user`, `built_in`, `toolset` or `mcp`.
    kind: &'static str,
    /// Whether `kind` is `built_in`.
    built_in: bool,
    /// The number of tools.
    tool_count: usize,
    created_at: String,
    modified_at: String,
    soft_deleted_at: Option<String>,
    schema_version: u32,
}

impl BundleView {
    /// Creates the view of a bundle.
    pub(crate) fn new(bundle: &Bundle, tool_count: usize) -> Self {
        Self {
            id: bundle.id.to_string(),
            tenant: bundle.tenant.to_string(),
            slug: bundle.slug.to_string(),
            display_name: bundle.display_name.clone(),
            description: bundle.description.clone(),
            enabled: bundle.enabled,
            kind: bundle.kind.as_str(),
            built_in: bundle.kind == BundleKind::BuiltIn,
            tool_count,
            created_at: bundle.created_at.to_string(),
            modified_at: bundle.modified_at.to_string(),
            soft_deleted_at: bundle.soft_deleted_at.map(|at| at.to_string()),
            schema_version: 1,
        }
    }
}

/// One revision, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisionView {
    number: u32,
    hash: String,
    created_at: String,
    /// Whether production mode runs this revision.
    published: bool,
    #[schema(value_type = Object)]
    definition: haft_core::spec::ToolSpec,
}

impl RevisionView {
    /// Creates the view of a revision.
    pub(crate) fn new(revision: &Revision, published: Option<u32>) -> Self {
        Self {
            number: revision.number,
            hash: revision.hash.clone(),
            created_at: revision.created_at.to_string(),
            published: published == Some(revision.number),
            definition: redact::masked(&revision.spec),
        }
    }
}

/// The outcome of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OutcomeView<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallErrorView<'a>>,
    /// Additional content such as images, as MCP content blocks.
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    content: &'a [Value],
    call_id: String,
    duration_ms: f64,
    /// Set if the tool is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

/// The error of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallErrorView<'a> {
    code: &'static str,
    message: &'a str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    /// The message for the model.
    model_text: String,
}

impl<'a> From<&'a CallError> for CallErrorView<'a> {
    fn from(error: &'a CallError) -> Self {
        Self {
            code: error.code.as_str(),
            message: &error.message,
            retryable: error.retryable,
            details: error.details.as_deref(),
            model_text: error.model_text(),
        }
    }
}

impl<'a> OutcomeView<'a> {
    /// Creates the view of a finished call.
    pub(crate) fn new(record: &'a CallRecord, deprecated: bool) -> Self {
        let value = record.error.is_none().then_some(record.value.as_ref().unwrap_or(&Value::Null));
        Self {
            ok: value.is_some(),
            value,
            error: record.error.as_ref().map(CallErrorView::from),
            content: &record.content,
            call_id: record.id.to_string(),
            duration_ms: record.duration_ms.unwrap_or_default(),
            warning: deprecated.then_some("this tool is deprecated"),
        }
    }
}
