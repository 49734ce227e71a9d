//! The response types of the API: counterparts of the domain types.

use std::sync::Arc;

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::call::{CallDecision, CallRecord, CallStatus, ProcessRecord, StepTimes};
use haft_core::catalog::UnreadableFile;
use haft_core::implementation::{Implementation, Kind};
use haft_core::lifecycle::{Deprecation, LegacyFields};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::render::RenderPlan;
use haft_core::runnable::Mode;
use haft_core::schema::RawSchema;
use haft_core::spec::{Execution, Origin, Policy, Renderer};
use haft_core::token::Role;
use haft_core::tool::{Revision, Source, Status, Tool, ToolType, Usage};
use haft_core::workspace::WorkspaceUse;
use haft_core::{Timestamp, redact};
use haft_runtime::registry::{Entry, Snapshot};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use haft_platform::rendering;
use haft_platform::viewer::Viewer;

/// A tool, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the API")]
pub(crate) struct ToolView {
    /// The id; `null` for an unreadable file.
    #[schema(required)]
    id: Option<Uuid>,
    /// The tenant that owns it; `null` for a global tool, which every tenant has.
    #[schema(required, example = "default")]
    tenant: Option<String>,
    #[schema(example = "user-created")]
    bundle: String,
    /// The id of the bundle; `null` for an unreadable file.
    #[schema(required)]
    bundle_id: Option<Uuid>,
    #[schema(example = "greet")]
    name: String,
    #[schema(example = "1.0.0")]
    version: String,
    #[schema(example = "Greet")]
    display_name: String,
    #[schema(example = "Greets somebody by name")]
    description: String,
    category: String,
    #[schema(example = json!(["demo"]))]
    tags: Vec<String>,
    tool_type: ToolType,
    /// The kind of implementation; `null` for an unreadable file.
    #[schema(required)]
    implementation_type: Option<Kind>,
    /// The language of a body, or `built-in`.
    #[schema(required)]
    runtime: Option<ToolRuntime>,
    /// The implementation; `null` for an unreadable file.
    #[schema(required)]
    implementation: Option<Implementation>,
    /// JSON Schema of the arguments; `null` for an unreadable file.
    #[schema(required, value_type = Option<Object>)]
    input_schema: Option<RawSchema>,
    /// JSON Schema of the value; `null` for an unreadable file.
    #[schema(required, value_type = Option<Object>)]
    output_schema: Option<RawSchema>,
    /// The execution settings; `null` for an unreadable file.
    #[schema(required)]
    execution: Option<Execution>,
    policy: Policy,
    requires_confirmation: bool,
    sandbox: bool,
    network: bool,
    /// The container image of its processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    renderers: Vec<Renderer>,
    /// The operation that the tool was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    status: Status,
    enabled: bool,
    built_in: bool,
    /// Whether the newest revision is ready to run.
    ready: bool,
    /// Why it is not ready.
    #[schema(required)]
    error: Option<String>,
    source: Source,
    /// The file, relative to the home folder.
    #[schema(required, example = "tools/user-created/greet.yaml")]
    path: Option<String>,
    /// The number of the newest revision.
    #[schema(example = 1)]
    revision: u32,
    /// The number of the revision that production mode runs.
    #[schema(required)]
    published_revision: Option<u32>,
    usage: Usage,
    /// When it was created; `null` for an unreadable file.
    #[schema(required)]
    created_at: Option<Timestamp>,
    modified_at: Timestamp,
    #[schema(required)]
    published_at: Option<Timestamp>,
    /// Who created it: the name of a token, or `file`.
    #[schema(required, example = "local")]
    created_by: Option<String>,
    /// Who stored the newest revision.
    #[schema(required, example = "local")]
    modified_by: Option<String>,
    /// Who published the revision that production mode runs.
    #[schema(required, example = "local")]
    published_by: Option<String>,
    /// Whether the token of the request may call the tool now, as far as that does not depend on the arguments.
    callable: bool,
    /// Why it is deprecated, what replaces it, and until when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Deprecation>, required = false)]
    deprecation: Option<Arc<Deprecation>>,
    /// The registry row that the tool was imported from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LegacyFields>, required = false)]
    legacy: Option<Arc<LegacyFields>>,
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
    pub(crate) warnings: Vec<haft_core::problem::Problem>,
}

/// The language of a tool's body, or that it is built in.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolRuntime {
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
    pub(crate) fn of(tool: &Tool) -> Option<Self> {
        let language = tool.spec.implementation.runtime().and_then(Self::parse);
        language.or(tool.built_in.then_some(Self::BuiltIn))
    }

    /// Parses the name of a language.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "bash" => Some(Self::Bash),
            "python" => Some(Self::Python),
            "wasm" => Some(Self::Wasm),
            _ => None,
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

impl ToolView {
    /// Creates the view of a tool for a viewer.
    pub(crate) fn new(entry: &Entry, viewer: &Viewer, snapshot: &Snapshot) -> Self {
        let mut view = Self::from(entry);
        let principal = viewer.principal();
        // The usage of a global tool counts the calls of all tenants.
        if entry.tool.tenant.is_global() && !(principal.platform && principal.role == Role::Admin) {
            view.usage = Usage::default();
        }
        view.callable = viewer.may_call(snapshot, entry);
        view
    }
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
            ready: entry.ready(),
            error: entry.fault(),
            source: tool.source,
            path: tool.path.clone(),
            revision: tool.revision,
            published_revision: tool.published.as_ref().map(|(number, _)| *number),
            usage: entry.usage(),
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

/// A bundle, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BundleView {
    id: Uuid,
    /// The tenant that owns it; `null` for a global bundle, which every tenant has.
    #[schema(required, example = "default")]
    tenant: Option<String>,
    #[schema(example = "demo")]
    slug: String,
    #[schema(example = "Demo")]
    display_name: String,
    #[schema(example = "Tools of the demo")]
    description: String,
    enabled: bool,
    kind: BundleKind,
    /// Whether `kind` is `built_in`.
    built_in: bool,
    /// The number of tools.
    tool_count: usize,
    created_at: Timestamp,
    modified_at: Timestamp,
    /// When it was deleted; it can be restored for 48 hours.
    #[schema(required)]
    soft_deleted_at: Option<Timestamp>,
    #[schema(example = 1)]
    schema_version: u32,
}

impl BundleView {
    /// Creates the view of a bundle.
    pub(crate) fn new(bundle: &Bundle, tool_count: usize) -> Self {
        Self {
            id: bundle.id.0,
            tenant: owner(&bundle.tenant),
            slug: bundle.slug.to_string(),
            display_name: bundle.display_name.clone(),
            description: bundle.description.clone(),
            enabled: bundle.enabled,
            kind: bundle.kind,
            built_in: bundle.kind == BundleKind::BuiltIn,
            tool_count,
            created_at: bundle.created_at,
            modified_at: bundle.modified_at,
            soft_deleted_at: bundle.soft_deleted_at,
            schema_version: 1,
        }
    }
}

/// One revision, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisionView {
    #[schema(example = 1)]
    number: u32,
    /// The SHA-256 of the definition.
    hash: String,
    created_at: Timestamp,
    /// Who stored it.
    #[schema(required, example = "local")]
    created_by: Option<String>,
    /// Whether production mode runs this revision.
    published: bool,
    /// When it was last published.
    #[schema(required)]
    published_at: Option<Timestamp>,
    /// Who published it.
    #[schema(required)]
    published_by: Option<String>,
    definition: haft_core::spec::ToolSpec,
}

impl RevisionView {
    /// Creates the view of a revision.
    pub(crate) fn new(revision: &Revision, published: Option<u32>) -> Self {
        Self {
            number: revision.number,
            hash: revision.hash.clone(),
            created_at: revision.created_at,
            created_by: revision.created_by.clone(),
            published: published == Some(revision.number),
            published_at: revision.published_at,
            published_by: revision.published_by.clone(),
            definition: redact::masked(&revision.spec),
        }
    }
}

/// The outcome of a call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outcome)]
pub(crate) struct OutcomeView<'a> {
    /// Whether the tool succeeded: then there is a `value`, otherwise an `error`.
    #[schema(example = true)]
    ok: bool,
    /// The value of the tool. One that is too large is described by a `LargeResult`, unless `result=inline` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false, example = json!({"greeting": "Hello, Ada!"}))]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallErrorView<'a>>,
    /// Additional content such as images, as MCP content blocks.
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    content: &'a [Value],
    /// What the call did in its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<WorkspaceUse>)]
    workspace_use: Option<&'a WorkspaceUse>,
    /// How the result is shown, if the tool has a renderer.
    #[serde(skip_serializing_if = "Option::is_none")]
    render_plan: Option<RenderPlan>,
    call_id: Uuid,
    #[schema(example = 12.3)]
    duration_ms: f64,
    /// What the caller should know, such as that the tool is deprecated and what replaces it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<String>,
}

/// The error of a call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CallError)]
pub(crate) struct CallErrorView<'a> {
    code: ErrorCode,
    /// What failed and how to fix it, for the operator.
    #[schema(example = "the call exceeded its timeout of 30 s")]
    message: &'a str,
    /// Whether a retry may succeed.
    retryable: bool,
    /// Machine-readable details.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<&'a Value>,
    /// The message for the model.
    #[schema(example = "Tool call failed: the call exceeded its timeout of 30 s")]
    model_text: String,
}

impl<'a> From<&'a CallError> for CallErrorView<'a> {
    fn from(error: &'a CallError) -> Self {
        Self {
            code: error.code,
            message: &error.message,
            retryable: error.retryable,
            details: error.details.as_deref(),
            model_text: error.model_text(),
        }
    }
}

impl<'a> OutcomeView<'a> {
    /// Creates the view of a finished call; `whole` is its result if that is stored apart.
    pub(crate) fn new(record: &'a CallRecord, whole: Option<&'a Value>, warnings: Vec<String>) -> Self {
        let value = record.error.is_none().then_some(record.value.as_ref().unwrap_or(&Value::Null));
        Self {
            ok: value.is_some(),
            value,
            error: record.error.as_ref().map(CallErrorView::from),
            content: &record.content,
            workspace_use: record.workspace_use.as_deref(),
            render_plan: rendering::plan(record, whole),
            call_id: record.id().0,
            duration_ms: record.duration_ms.unwrap_or_default(),
            warnings,
        }
    }
}

impl<'a> OutcomeView<'a> {
    /// Shows another value, if there is one.
    pub(crate) fn replace_value(&mut self, value: Option<&'a Value>) {
        if self.ok && value.is_some() {
            self.value = value;
        }
    }
}

/// A recorded call.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Call)]
pub(crate) struct CallView<'a> {
    id: Uuid,
    #[schema(example = "default")]
    tenant: &'a str,
    tool_id: Uuid,
    /// `bundle:name@version` at the time of the call.
    #[schema(example = "user-created:greet@1.0.0")]
    tool: &'a str,
    /// The revision that ran.
    #[schema(example = 1)]
    revision: u32,
    mode: Mode,
    status: CallStatus,
    /// The arguments; `null` in a list if they are long.
    #[schema(required, value_type = Option<Object>, example = json!({"name": "Ada"}))]
    args: &'a Value,
    /// The value, if the call succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    value: Option<&'a Value>,
    /// The size of the result if it is stored apart: then `value` describes it, and `/calls/{id}/result` returns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallErrorView<'a>>,
    /// Additional content such as images, as MCP content blocks.
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    content: &'a [Value],
    /// The process of the tool, if it ran one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProcessRecord>)]
    process: Option<&'a ProcessRecord>,
    /// The workspace that the call works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "report")]
    workspace: Option<String>,
    /// What the call did in its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<WorkspaceUse>)]
    workspace_use: Option<&'a WorkspaceUse>,
    /// How the result is shown, if the tool has a renderer; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) render_plan: Option<RenderPlan>,
    /// The name of the token that called.
    #[schema(example = "local")]
    caller: &'a str,
    /// The id of that token, if it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    token_id: Option<Uuid>,
    /// The interface that the call came through: `rest`, `cli`, `mcp`, …
    #[schema(example = "rest")]
    surface: &'a str,
    /// The call that made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<Uuid>,
    /// The first call of the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    root_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    /// The hash of the arguments, if there is an idempotency key or the call had to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    args_digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    /// How long each step took.
    steps: StepTimes,
    /// The policy rule or the approval that decided about the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CallDecision>)]
    decision: Option<&'a CallDecision>,
    /// Set in a list if long values are omitted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shortened: bool,
    /// Set if the ledger reached its size limit and removed what the call received and returned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    body_removed: bool,
}

impl<'a> From<&'a CallRecord> for CallView<'a> {
    fn from(record: &'a CallRecord) -> Self {
        let invocation = &record.invocation;
        Self {
            id: invocation.id.0,
            tenant: record.tenant().as_str(),
            tool_id: invocation.tool_id.0,
            tool: &invocation.tool,
            revision: invocation.revision,
            mode: invocation.mode,
            status: record.status,
            args: &invocation.args,
            value: record.value.as_ref(),
            stored_bytes: record.stored_bytes,
            error: record.error.as_ref().map(CallErrorView::from),
            content: &record.content,
            process: record.process.as_ref(),
            workspace: invocation.workspace.as_ref().map(ToString::to_string),
            workspace_use: record.workspace_use.as_deref(),
            render_plan: None,
            caller: &invocation.principal.name,
            token_id: invocation.principal.token.map(|id| id.0),
            surface: &invocation.surface,
            parent_id: invocation.lineage.parent.map(|id| id.0),
            root_id: invocation.lineage.root.map(|id| id.0),
            idempotency_key: invocation.idempotency_key.as_deref(),
            args_digest: invocation.args_digest.as_deref(),
            request_id: invocation.request_id.as_deref(),
            chat_id: invocation.chat_id.as_deref(),
            message_id: invocation.message_id.as_deref(),
            started_at: record.started_at,
            finished_at: record.finished_at,
            duration_ms: record.duration_ms,
            steps: record.steps,
            decision: record.decision.as_deref(),
            shortened: false,
            body_removed: record.body_removed,
        }
    }
}

/// The webhook of a call.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedWebhook {
    pub(crate) id: Uuid,
    /// The signing secret, if the request had none; no later response contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_…")]
    pub(crate) secret: Option<String>,
}
