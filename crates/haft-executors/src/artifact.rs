//! The `artifact` executor: runs a stored code artifact, or inline source, with literal inputs.
//!
//! The source runs like that of a `script` or `wasm` tool with the settings of the artifact's tool. What is prepared of a
//! version is kept, because a version never changes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::BoxFuture;
use haft_core::artifact::{
    ArtifactContent, ArtifactInput, ArtifactRuntime, ArtifactVersion, CodeArtifacts, VersionSelector,
    input_defaults, input_schema, map_inputs,
};
use haft_core::executor::{BoundTool, CallContext, DependencyScope, Executor, Prepared};
use haft_core::id::ArtifactId;
use haft_core::implementation::{Artifact, Implementation, Kind, Script, ScriptRuntime, Wasm};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{Problem, excerpt, join};
use haft_core::runnable::Mode;
use haft_core::spec::ToolSpec;
use haft_runtime::executors::Executors;
use serde_json::{Map, Value};

use crate::process::STOP_GRACE;

/// How many versions of its artifact a tool keeps prepared.
const MAX_PREPARED: usize = 4;

/// Runs code artifacts.
pub struct ArtifactExecutor {
    parts: Parts,
}

#[derive(Clone)]
struct Parts {
    /// The executors of scripts and WebAssembly.
    runtimes: Executors,
    /// The stored artifacts; a program without a store runs inline source only.
    artifacts: Option<Arc<dyn CodeArtifacts>>,
}

impl ArtifactExecutor {
    /// Creates the executor over those that run the sources.
    pub fn new(runtimes: Executors, artifacts: Option<Arc<dyn CodeArtifacts>>) -> Self {
        Self { parts: Parts { runtimes, artifacts } }
    }
}

/// Returns the definition that runs a source with the settings of a tool.
pub fn runtime_spec(
    spec: &ToolSpec,
    runtime: ArtifactRuntime,
    source: &str,
    inputs: &[ArtifactInput],
) -> ToolSpec {
    let script = |runtime, body: String| Implementation::Script(Script::new(runtime, body));
    let implementation = match runtime {
        ArtifactRuntime::Bash => script(ScriptRuntime::Bash, source.to_owned()),
        ArtifactRuntime::Python => script(ScriptRuntime::Python, literal_python(source)),
        ArtifactRuntime::Wasm => {
            Implementation::Wasm(Wasm { base64: Some(source.to_owned()), ..Wasm::default() })
        }
    };
    let mut inner = ToolSpec { implementation, ..spec.clone() };
    if !inputs.is_empty() {
        inner.input_schema = input_schema(inputs).into();
    }
    inner
}

/// A python script expands `${name}` in its string literals; an artifact expands nothing. Its source is then passed as
/// data, and tracebacks still show its lines.
fn literal_python(source: &str) -> String {
    if !source.contains("${") {
        return source.to_owned();
    }
    let encoded = STANDARD.encode(source);
    format!(
        "import base64\nexec(compile(base64.b64decode(\"{encoded}\").decode(), \"<artifact>\", \"exec\"), globals())\n"
    )
}

/// Returns the inline source of an implementation.
fn inline(artifact: &Artifact) -> Option<(ArtifactRuntime, &str)> {
    Some((artifact.runtime?, artifact.source.as_deref()?))
}

impl Executor for ArtifactExecutor {
    fn kind(&self) -> Kind {
        Kind::Artifact
    }

    fn missing_reference(&self, tenant: &TenantId, spec: &ToolSpec) -> Option<Problem> {
        let Implementation::Artifact(artifact) = &spec.implementation else { return None };
        let (Some(reference), Some(artifacts)) = (&artifact.artifact_id, &self.parts.artifacts) else {
            return None;
        };
        // An invalid version is found when the definition is compiled.
        let version = VersionSelector::parse(artifact.artifact_version.as_deref())?;
        // A global tool uses the artifact that each tenant has under this name.
        if tenant.is_global() || artifacts.exists(tenant, reference, version) {
            return None;
        }
        Some(Problem::new("implementation.artifact_id", "not_found", missing(reference, version)))
    }

    fn examine<'a>(&'a self, spec: &'a ToolSpec) -> BoxFuture<'a, Vec<Problem>> {
        Box::pin(async move {
            let Implementation::Artifact(artifact) = &spec.implementation else { return Vec::new() };
            let Some((runtime, source)) = inline(artifact) else { return Vec::new() };
            let inner = runtime_spec(spec, runtime, source, &artifact.inputs);
            renamed(self.parts.runtimes.examine(&inner).await)
        })
    }

    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let problem = |field: &str, code, message: &str| {
            vec![Problem::new(format!("implementation.{field}"), code, message)]
        };
        let Implementation::Artifact(artifact) = &spec.implementation else {
            return Err(problem("type", "wrong_type", "expected `artifact`"));
        };
        if let Some((runtime, source)) = inline(artifact) {
            let inner = runtime_spec(spec, runtime, source, &artifact.inputs);
            let prepared = self.parts.runtimes.prepare(&Arc::new(inner), folder).map_err(renamed)?;
            return Ok(Arc::new(ArtifactRun { prepared, inputs: artifact.inputs.clone() }));
        }
        let Some(reference) = &artifact.artifact_id else {
            let message = "set `artifact_id` to a stored artifact, or `runtime` and `source` to inline code";
            return Err(problem("artifact_id", "missing_field", message));
        };
        if self.parts.artifacts.is_none() {
            let message = "this program has no stored artifacts; use inline `source`";
            return Err(problem("artifact_id", "not_configured", message));
        }
        let Some(version) = VersionSelector::parse(artifact.artifact_version.as_deref()) else {
            let message = "expected the number of a version such as `3`, or `newest`";
            return Err(problem("artifact_version", "invalid_value", message));
        };
        Ok(Arc::new(StoredArtifact(Arc::new(StoredParts {
            parts: self.parts.clone(),
            reference: reference.clone(),
            version,
            spec: Arc::clone(spec),
            folder: folder.map(str::to_owned),
            prepared: Mutex::default(),
        }))))
    }
}

/// Names the field of an artifact instead of that of a script.
fn renamed(mut problems: Vec<Problem>) -> Vec<Problem> {
    for problem in &mut problems {
        if ["implementation.body", "implementation.base64"].contains(&problem.field.as_str()) {
            "implementation.source".clone_into(&mut problem.field);
        }
    }
    problems
}

fn missing(reference: &str, version: VersionSelector) -> String {
    let reference = excerpt(reference, 100);
    match version {
        VersionSelector::Newest | VersionSelector::Published => format!("artifact `{reference}` not found"),
        VersionSelector::Pinned(number) => {
            format!("artifact `{reference}` has no version {number}, or does not exist")
        }
    }
}

/// A version of an artifact, ready to run.
struct ArtifactRun {
    prepared: Arc<dyn Prepared>,
    inputs: Vec<ArtifactInput>,
}

impl Prepared for ArtifactRun {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let inputs = map_inputs(&self.inputs, args)?;
            self.prepared.run(call, &inputs).await
        })
    }

    fn fault(&self) -> Option<String> {
        self.prepared.fault()
    }

    fn secrets(&self) -> Vec<&str> {
        self.prepared.secrets()
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        self.prepared.preview(&map_inputs(&self.inputs, args).ok()?)
    }

    fn works_with_files(&self) -> bool {
        self.prepared.works_with_files()
    }

    fn grace(&self) -> Duration {
        self.prepared.grace()
    }
}

type PreparedVersion = ((ArtifactId, u32), Arc<ArtifactRun>);

/// A tool that runs a stored artifact: a pinned version, or the one that is newest when it is called.
struct StoredArtifact(Arc<StoredParts>);

struct StoredParts {
    parts: Parts,
    reference: String,
    version: VersionSelector,
    spec: Arc<ToolSpec>,
    folder: Option<String>,
    /// The versions that were run last, the last one at the end.
    prepared: Mutex<VecDeque<PreparedVersion>>,
}

impl StoredParts {
    /// Returns a version, ready to run.
    async fn ready(&self, id: ArtifactId, version: &ArtifactVersion) -> Result<Arc<ArtifactRun>, CallError> {
        let key = (id, version.version);
        if let Some(run) = self.cached(key) {
            return Ok(run);
        }
        let run = Arc::new(self.prepare(Arc::clone(&version.content)).await?);
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        prepared.push_back((key, Arc::clone(&run)));
        if prepared.len() > MAX_PREPARED {
            prepared.pop_front();
        }
        Ok(run)
    }

    /// Returns the version that a call would run.
    async fn current_version(
        &self,
        tenant: &TenantId,
        mode: Mode,
    ) -> Result<(ArtifactId, ArtifactVersion), CallError> {
        let not_ready = |message: String| {
            CallError::new(ErrorCode::NotReady, message)
                .for_model("this tool is unavailable: its code is missing")
        };
        let artifacts = self.parts.artifacts.as_ref();
        let artifacts = artifacts.ok_or_else(|| not_ready(missing(&self.reference, self.version)))?;
        let version = match (self.version, mode) {
            (VersionSelector::Newest, Mode::Production) => VersionSelector::Published,
            (version, _) => version,
        };
        let found = artifacts.version(tenant, &self.reference, version).await?;
        found.ok_or_else(|| not_ready(missing(&self.reference, self.version)))
    }

    fn cached(&self, key: (ArtifactId, u32)) -> Option<Arc<ArtifactRun>> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        let place = prepared.iter().position(|(known, _)| *known == key)?;
        let found = prepared.remove(place)?;
        let run = Arc::clone(&found.1);
        prepared.push_back(found);
        Some(run)
    }

    /// Prepares a version on a thread that may block: a module takes a while.
    async fn prepare(&self, content: Arc<ArtifactContent>) -> Result<ArtifactRun, CallError> {
        let (parts, spec, folder) = (self.parts.clone(), Arc::clone(&self.spec), self.folder.clone());
        let work = move || {
            let inner = runtime_spec(&spec, content.runtime, &content.source, &content.inputs);
            let prepared = parts.runtimes.prepare(&Arc::new(inner), folder.as_deref());
            prepared.map(|prepared| ArtifactRun { prepared, inputs: content.inputs.clone() })
        };
        let prepared = tokio::task::spawn_blocking(work).await;
        let prepared =
            prepared.map_err(|error| CallError::internal(format!("cannot prepare the artifact: {error}")))?;
        prepared.map_err(|problems| {
            CallError::new(ErrorCode::NotReady, join(&renamed(problems)))
                .for_model("this tool is unavailable: its code is invalid")
        })
    }
}

impl Prepared for StoredArtifact {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let (id, version) = self.0.current_version(call.tenant(), call.mode).await?;
            self.0.ready(id, &version).await?.run(call, args).await
        })
    }

    fn bind<'a>(
        &'a self,
        tenant: &'a TenantId,
        mode: Mode,
    ) -> Option<BoxFuture<'a, Result<BoundTool, CallError>>> {
        Some(Box::pin(async move {
            let (id, version) = self.0.current_version(tenant, mode).await?;
            let defaults = input_defaults(&version.content.inputs);
            let tool = Arc::clone(&self.0);
            Ok(BoundTool { prepared: Arc::new(BoundArtifact { tool, id, version }), defaults })
        }))
    }

    fn dependencies<'a>(
        &'a self,
        scope: &'a DependencyScope<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        Box::pin(async move {
            let (id, version) = self.0.current_version(scope.tenant, scope.mode).await?;
            Ok(Some(format!("{id} {}", version.hash)))
        })
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        let StoredParts { reference, version, prepared, .. } = &*self.0;
        let last = prepared.lock().unwrap_or_else(PoisonError::into_inner).back().cloned();
        let args = Value::Object(args.clone());
        let call = format!("artifact `{}` ({version}) with {args}", excerpt(reference, 100));
        // Another version may run than the one that ran last, and a slug may belong to another artifact now.
        let is_id = reference.parse::<ArtifactId>().is_ok();
        match (version, last) {
            (VersionSelector::Pinned(_), Some((_, run))) if is_id => run.preview(args.as_object()?),
            _ => Some(call),
        }
    }

    fn works_with_files(&self) -> bool {
        // Which runtime the next version has is not known.
        true
    }

    fn grace(&self) -> Duration {
        STOP_GRACE
    }
}

/// A version of a stored artifact that one call runs.
struct BoundArtifact {
    tool: Arc<StoredParts>,
    id: ArtifactId,
    version: ArtifactVersion,
}

impl Prepared for BoundArtifact {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { self.tool.ready(self.id, &self.version).await?.run(call, args).await })
    }
}

#[cfg(test)]
#[path = "artifact_tests.rs"]
mod tests;
