//! The traits of executors, which run tools: one executor per kind of implementation.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::account::{self, AccountUser, Accounts};
use crate::call::ProcessRecord;
use crate::id::{CallId, ToolId};
use crate::implementation::Kind;
use crate::invocation::{Invoker, Lineage, NestedCall};
use crate::name::TenantId;
use crate::outcome::{CallError, ErrorCode, Outcome};
use crate::principal::Principal;
use crate::problem::Problem;
use crate::runnable::Mode;
use crate::secret::{
    CredentialSelector, ExternalSecretError, RefreshTokens, Secret, SecretError, SecretSource, scrub_text,
};
use crate::spec::ToolSpec;
use crate::workspace::{WorkspaceFolder, WorkspaceName};

/// Runs tools of one kind.
pub trait Executor: Send + Sync {
    /// Returns the kind.
    fn kind(&self) -> Kind;
    /// Checks cheaply whether what the definition refers to exists; [`Executor::prepare`] checks everything.
    fn available(&self, _spec: &ToolSpec) -> Result<(), Problem> {
        Ok(())
    }
    /// Returns the problem if the definition refers to something that its tenant does not have now, such as a pipeline.
    /// Unlike [`Executor::available`] it is asked whenever the tool is shown or called, so it must be cheap.
    fn missing_reference(&self, _tenant: &TenantId, _spec: &ToolSpec) -> Option<Problem> {
        None
    }
    /// Runs slow checks, such as the syntax of a script, when a definition is written or validated, never when it is
    /// called. Problems with the codes [`crate::problem::NOT_CHECKED`] and [`crate::problem::MISSING_IMPORT`] are warnings.
    fn examine<'a>(&'a self, _spec: &'a ToolSpec) -> BoxFuture<'a, Vec<Problem>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Compiles everything that does not depend on a call, or returns every problem of the definition. `folder` is the
    /// folder of its bundle, relative to the home folder, for executors that use files of the bundle.
    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>>;
}

/// A tool, ready to run.
pub trait Prepared: Send + Sync {
    /// Runs it once. Dropping the future cancels the call.
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome>;

    /// Selects what a call runs if that is stored outside the definition and may change, such as the published version of a
    /// code artifact. `None` if the definition is self-contained.
    fn bind<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _mode: Mode,
    ) -> Option<BoxFuture<'a, Result<BoundTool, CallError>>> {
        None
    }

    /// Returns a problem that was found after compilation, if any.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Returns the names of the required secrets.
    fn secrets(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the error of a call whose person has to connect an account first. Asked before the call runs, if
    /// [`Prepared::needs_account`].
    fn missing_account<'a>(&'a self, call: &'a CallContext) -> BoxFuture<'a, Option<CallError>> {
        Box::pin(async move {
            for name in self.secrets() {
                if account::provider_of(name).is_some()
                    && let Err(error) = call.secret(name).await
                    && error.code == ErrorCode::CredentialRequired
                {
                    return Some(error);
                }
            }
            None
        })
    }

    /// Returns whether a call may need an account of its person.
    fn needs_account(&self) -> bool {
        self.secrets().into_iter().any(|name| account::provider_of(name).is_some())
    }

    /// Returns what a call with these arguments will run, for the person who approves it: a command, a request, an action
    /// on a file. Secrets are masked; `None` if it cannot be shown.
    fn preview(&self, _args: &Map<String, Value>) -> Option<String> {
        None
    }

    /// Returns a digest of the dependencies of a call, such as the version of a code artifact; approvals cover them, too.
    /// `None` if the definition is self-contained.
    fn dependencies<'a>(
        &'a self,
        _scope: &'a DependencyScope<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, CallError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns whether it reads or writes files in the workspace, so that its calls have to take turns there.
    fn works_with_files(&self) -> bool {
        false
    }

    /// Returns how long after its deadline it may take to stop and return an outcome. By default it is dropped at the
    /// deadline.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns a copy with the settings of a definition, if the function has settings.
    fn with_config(&self, _config: &Map<String, Value>) -> Result<Arc<dyn Prepared>, Problem> {
        let message = "this function has no settings; remove `config`";
        Err(Problem::new("implementation.config", "unknown_key", message))
    }
}

/// A prepared tool with its dependencies resolved for one call.
pub struct BoundTool {
    /// Runs it.
    pub prepared: Arc<dyn Prepared>,
    /// The values of arguments that are missing or `null`.
    pub defaults: Map<String, Value>,
}

/// The call whose [`Prepared::dependencies`] are computed.
pub struct DependencyScope<'a> {
    /// The tenant of the call.
    pub tenant: &'a TenantId,
    /// The mode of the call.
    pub mode: Mode,
    seen: Mutex<HashSet<ToolId>>,
    depth: AtomicU32,
}

impl<'a> DependencyScope<'a> {
    /// Creates the scope of a call.
    pub fn new(tenant: &'a TenantId, mode: Mode) -> Self {
        Self { tenant, mode, seen: Mutex::default(), depth: AtomicU32::new(0) }
    }

    /// Enters a nested tool; returns its depth.
    pub fn enter(&self) -> u32 {
        self.depth.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Leaves the tool that was entered last.
    pub fn leave(&self) {
        self.depth.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records a tool; returns whether it is new. The dependencies of each tool are computed once, even if tools run it
    /// repeatedly or in a cycle.
    pub fn is_first(&self, tool: ToolId) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(tool)
    }
}

/// An event of a running call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// A line of standard error, or another message besides the value.
    Output(String),
    /// A line of standard output that does not become the value.
    Printed(String),
    /// A line of the output that becomes the value.
    Value(String),
    /// The progress from 0 to 1, and a short text.
    Progress(f64, String),
}

/// A receiver of the events of a call.
pub trait EventSink: Send + Sync {
    /// Receives an event; must not block.
    fn emit(&self, event: CallEvent);
}

/// The context of a call for its executor. Clones belong to the same call.
pub struct CallContext {
    /// The call.
    pub id: CallId,
    principal: Arc<Principal>,
    /// Private, so that every secret is read through a call, which redacts it from the outcome.
    secrets: Arc<dyn SecretSource>,
    /// In which mode.
    pub mode: Mode,
    /// When the call started.
    pub started: Instant,
    /// When the call must have finished.
    pub deadline: Instant,
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// The receiver of events, if any.
    pub events: Option<Arc<dyn EventSink>>,
    /// The workspace of the call, if it has one.
    pub workspace: Option<Arc<WorkspaceFolder>>,
    /// The name of the workspace that the call works in, and the calls that the tool makes with it. Only tools that work
    /// with files have its folder.
    pub workspace_name: Option<WorkspaceName>,
    /// The surface that the call came through; empty if unknown.
    pub surface: Cow<'static, str>,
    /// The calls above this one.
    pub lineage: Lineage,
    /// The idempotency key, for tools that pass it on.
    pub idempotency_key: Option<Arc<str>>,
    /// The session that the call belongs to, and the calls that the tool makes with it.
    pub session: Option<Arc<str>>,
    /// Runs the calls that the tool makes.
    pub invoker: Option<Arc<dyn Invoker>>,
    /// Created on first use, because most calls need none.
    shared: OnceLock<Arc<Shared>>,
}

impl Clone for CallContext {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            principal: Arc::clone(&self.principal),
            secrets: Arc::clone(&self.secrets),
            mode: self.mode,
            started: self.started,
            deadline: self.deadline,
            attempt: self.attempt,
            events: self.events.clone(),
            workspace: self.workspace.clone(),
            workspace_name: self.workspace_name.clone(),
            surface: self.surface.clone(),
            lineage: self.lineage.clone(),
            idempotency_key: self.idempotency_key.clone(),
            session: self.session.clone(),
            invoker: self.invoker.clone(),
            shared: Arc::clone(self.shared()).into(),
        }
    }
}

/// The state that all clones of a context share.
#[derive(Default)]
struct Shared {
    artifacts: Mutex<CallArtifacts>,
    finished: AtomicBool,
}

/// What a call produced besides its value.
#[derive(Debug, Clone, Default)]
pub struct CallArtifacts {
    /// The secrets that it read, in all their encoded forms.
    pub exposed: Vec<Secret>,
    /// The exit status and output of its process, for the record of the call.
    pub process: Option<ProcessRecord>,
    /// Additional content such as images, as MCP content blocks.
    pub content: Vec<Value>,
    /// How long it waited for the installation of what the tool needs.
    pub preparation: Duration,
}

impl CallContext {
    /// Creates the context of a call for an anonymous caller that starts now.
    pub fn new(id: CallId, tenant: TenantId, deadline: Instant, secrets: Arc<dyn SecretSource>) -> Self {
        let principal = Arc::new(Principal::anonymous(tenant));
        Self::for_principal(id, principal, secrets, Instant::now()..deadline)
    }

    /// Creates the context of a call for a principal, from its start to its deadline. `${NAME}` is resolved from the
    /// secrets.
    #[inline]
    pub fn for_principal(
        id: CallId,
        principal: Arc<Principal>,
        secrets: Arc<dyn SecretSource>,
        time: Range<Instant>,
    ) -> Self {
        Self {
            id,
            principal,
            secrets,
            mode: Mode::Production,
            started: time.start,
            deadline: time.end,
            attempt: 0,
            events: None,
            workspace: None,
            workspace_name: None,
            surface: Cow::Borrowed(""),
            lineage: Lineage::default(),
            idempotency_key: None,
            session: None,
            invoker: None,
            shared: OnceLock::new(),
        }
    }

    /// Returns who calls.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }

    /// Returns the tenant whose tools, files and secrets are used.
    pub fn tenant(&self) -> &TenantId {
        &self.principal.tenant
    }

    /// Returns the surfaces above what this call does, each once, that of the root first and its own included.
    pub fn surfaces_below(&self) -> Vec<Cow<'static, str>> {
        let mut surfaces = self.lineage.surfaces.clone();
        if !self.surface.is_empty() && !surfaces.contains(&self.surface) {
            surfaces.push(self.surface.clone());
        }
        surfaces
    }

    /// Runs another tool as part of this call: with the same rights, within the same deadline.
    pub async fn invoke(&self, call: NestedCall) -> Outcome {
        match &self.invoker {
            Some(invoker) => Arc::clone(invoker).invoke(self, call).await,
            None => Err(CallError::internal("this call cannot run other tools")),
        }
    }

    /// Reads a secret, which is then redacted from the outcome.
    pub async fn secret(&self, name: &str) -> Result<Option<Secret>, CallError> {
        let found = self.stored(name).await?;
        if let Some(secret) = &found {
            self.hide(secret.clone());
        }
        Ok(found)
    }

    /// Reads a stored value that is not secret, such as a host name, and is not redacted from the outcome.
    pub async fn setting(&self, name: &str) -> Result<Option<String>, CallError> {
        Ok(self.stored(name).await?.map(|value| value.expose().to_owned()))
    }

    /// Reads a credential as it was stored: its value, or its fields as a JSON object. Whoever uses a part of it passes
    /// that part to [`CallContext::hide`].
    pub async fn credential(&self, selector: CredentialSelector<'_>) -> Result<Option<Secret>, CallError> {
        self.secrets.credential(self.tenant(), selector).await.map_err(|error| CallError::from(&error))
    }

    async fn stored(&self, name: &str) -> Result<Option<Secret>, CallError> {
        if let Some(provider) = account::provider_of(name) {
            return self.account(provider).await.map(Some);
        }
        self.secrets.secret(self.tenant(), name).await.map_err(|error| CallError::from(&error))
    }

    /// Returns the value of the account that the person behind the call has at a provider. It is read at every use, so
    /// that nothing is used that was revoked.
    async fn account(&self, provider: &str) -> Result<Secret, CallError> {
        let accounts = self.secrets.accounts().ok_or_else(|| {
            let message = format!("this program has no accounts of people, such as `account:{provider}`");
            CallError::new(ErrorCode::SecretMissing, message)
        })?;
        accounts.value(&self.account_user(), provider).await
    }

    /// Returns on whose behalf the call uses accounts.
    pub fn account_user(&self) -> AccountUser {
        AccountUser::from(&*self.principal)
    }

    /// Returns the accounts of people, if the program has any.
    pub fn accounts(&self) -> Option<Arc<dyn Accounts>> {
        self.secrets.accounts()
    }

    /// Returns the store of refresh tokens.
    pub fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        self.secrets.refresh_tokens()
    }

    fn shared(&self) -> &Arc<Shared> {
        self.shared.get_or_init(Arc::default)
    }

    /// Resets the context for another attempt of the same call.
    pub fn reset(&mut self) {
        self.shared = OnceLock::new();
    }

    /// Redacts a text, plain or encoded, from the outcome, as if it was read by [`CallContext::secret`].
    pub fn hide(&self, secret: Secret) {
        let exposed = &mut self.shared().artifacts().exposed;
        if exposed.contains(&secret) {
            return;
        }
        exposed.extend(secret.lines());
        exposed.push(secret);
    }

    /// Returns every secret that the call has read.
    pub fn exposed(&self) -> Vec<Secret> {
        self.shared.get().map(|shared| shared.artifacts().exposed.clone()).unwrap_or_default()
    }

    /// Sets the exit status and output of the process, for the record of the call.
    pub fn report_process(&self, process: ProcessRecord) {
        self.shared().artifacts().process = Some(process);
    }

    /// Sets additional content such as images, as MCP content blocks; replaces earlier content.
    pub fn report_content(&self, content: Vec<Value>) {
        self.shared().artifacts().content = content;
    }

    /// Adds time that the call waited for the installation of what the tool needs. It is reported as a step of its own.
    pub fn report_preparation(&self, time: Duration) {
        let preparation = &mut self.shared().artifacts().preparation;
        *preparation = preparation.saturating_add(time);
    }

    /// Takes what the call produced besides its value. The secrets stay, because work for the call may still run.
    pub fn take_artifacts(&self) -> Option<CallArtifacts> {
        let mut artifacts = self.shared.get()?.artifacts();
        let (process, content) = (artifacts.process.take(), std::mem::take(&mut artifacts.content));
        let preparation = std::mem::take(&mut artifacts.preparation);
        Some(CallArtifacts { exposed: artifacts.exposed.clone(), process, content, preparation })
    }

    /// Sends an event.
    pub fn emit(&self, event: CallEvent) {
        if let Some(events) = &self.events {
            events.emit(event);
        }
    }

    /// Reports progress from 0 to 1 with a short text, from which secrets are redacted.
    pub fn progress(&self, fraction: f64, text: impl Into<String>) {
        if self.events.is_some() {
            let mut text = text.into();
            scrub_text(&mut text, &self.exposed());
            self.emit(CallEvent::Progress(fraction, text));
        }
    }

    /// Returns whether the call was cancelled or timed out. Async functions are dropped then; blocking functions should
    /// check this between steps.
    pub fn is_cancelled(&self) -> bool {
        self.shared.get().is_some_and(|shared| shared.finished.load(Ordering::Acquire))
    }

    /// Returns a guard that marks the call as finished when it is dropped, for functions that still run for it.
    pub fn end_guard(&self) -> CallEndGuard<'_> {
        CallEndGuard(self)
    }
}

/// Marks a call as finished when it is dropped.
#[must_use = "the call counts as finished as soon as this is dropped"]
pub struct CallEndGuard<'a>(&'a CallContext);

impl Drop for CallEndGuard<'_> {
    fn drop(&mut self) {
        // Without shared state there are no clones.
        if let Some(shared) = self.0.shared.get() {
            shared.finished.store(true, Ordering::Release);
        }
    }
}

impl Shared {
    fn artifacts(&self) -> MutexGuard<'_, CallArtifacts> {
        self.artifacts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<&SecretError> for CallError {
    /// Converts the error of a secret. Neither its path nor its source is for the model.
    fn from(error: &SecretError) -> Self {
        let message = format!("{error}: {}", error.source);
        match error.source.downcast_ref::<ExternalSecretError>() {
            None => CallError::internal(message),
            Some(external) if external.is_unavailable() => CallError::new(ErrorCode::SecretMissing, message)
                .retryable(true)
                .for_model("a credential of this tool is currently unavailable"),
            Some(_) => CallError::new(ErrorCode::SecretMissing, message)
                .for_model("a credential of this tool is not configured"),
        }
    }
}
