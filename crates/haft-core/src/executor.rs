//! What runs tools: one executor per kind of implementation.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::call::ProcessRecord;
use crate::id::CallId;
use crate::implementation::Kind;
use crate::name::TenantId;
use crate::outcome::{CallError, Outcome};
use crate::problem::Problem;
use crate::runnable::Mode;
use crate::secret::{RefreshTokens, Secret, SecretSource, scrub_text};
use crate::spec::ToolSpec;
use crate::token::Caller;

/// Runs tools of one kind.
pub trait Executor: Send + Sync {
    /// Returns which kind.
    fn kind(&self) -> Kind;
    /// Tells, cheaply, whether what the definition names is there; [`Executor::prepare`] looks at everything.
    fn available(&self, _spec: &ToolSpec) -> Result<(), Problem> {
        Ok(())
    }
    /// Looks at what takes more than a moment, such as the syntax of a script; asked when a definition is written
    /// or checked, never when it is called. What could not be looked at is a problem with the code
    /// [`crate::problem::NOT_CHECKED`].
    fn examine<'a>(&'a self, _spec: &'a ToolSpec) -> BoxFuture<'a, Vec<Problem>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Compiles everything that does not depend on a call; says all that is wrong with the definition. `folder` is
    /// the one of its bundle, relative to the home folder, for executors that use files of the bundle.
    fn prepare(&self, spec: &Arc<ToolSpec>, folder: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>>;
}

/// A tool, ready to run.
pub trait Prepared: Send + Sync {
    /// Runs it once. Dropping the future cancels the call.
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome>;

    /// Returns what a look at it has found wrong after it was compiled.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Returns the names of the secrets without which it cannot run.
    fn secrets(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns how long it may take, after its deadline, to stop by itself and to tell what it came to. Without any it
    /// is dropped at the deadline.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }

    /// Makes one that has the settings of a definition, for those that take any.
    fn with_config(&self, _config: &Map<String, Value>) -> Result<Arc<dyn Prepared>, Problem> {
        let message = "this function takes no settings besides its arguments; leave them out";
        Err(Problem::new("implementation.config", "unknown_key", message))
    }
}

/// What a running call tells those who watch it.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// A line of output.
    Output(String),
    /// How far it is, from 0 to 1, and a word about it.
    Progress(f64, String),
}

/// Who watches a call.
pub trait EventSink: Send + Sync {
    /// Takes an event; never blocks.
    fn emit(&self, event: CallEvent);
}

/// For whom calls run: one for all of them, where they are many.
pub struct Principal {
    /// Whose tools, files and secrets they have.
    pub tenant: TenantId,
    /// Who calls.
    pub caller: Caller,
    /// Asked by way of a call only, which keeps what it has seen out of its outcome.
    secrets: Arc<dyn SecretSource>,
}

impl Principal {
    /// Makes one whose `${NAME}` finds its value in these secrets.
    pub fn new(tenant: TenantId, caller: Caller, secrets: Arc<dyn SecretSource>) -> Self {
        Self { tenant, caller, secrets }
    }
}

/// What an executor may know of a call. Clones are of the same call.
pub struct CallContext {
    /// The call.
    pub id: CallId,
    principal: Arc<Principal>,
    /// In which mode.
    pub mode: Mode,
    /// When its time began to run.
    pub started: Instant,
    /// When it must be over.
    pub deadline: Instant,
    /// Which attempt this is, counted from 0.
    pub attempt: u32,
    /// Who watches.
    pub events: Option<Arc<dyn EventSink>>,
    /// The folder that the call may work in, where there is one.
    pub workspace: Option<Arc<Path>>,
    /// Made when it is first needed, as most calls leave nothing there.
    shared: OnceLock<Arc<Shared>>,
}

impl Clone for CallContext {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            principal: Arc::clone(&self.principal),
            mode: self.mode,
            started: self.started,
            deadline: self.deadline,
            attempt: self.attempt,
            events: self.events.clone(),
            workspace: self.workspace.clone(),
            shared: Arc::clone(self.shared()).into(),
        }
    }
}

/// What all clones of a context share.
#[derive(Default)]
struct Shared {
    left: Mutex<CallArtifacts>,
    over: AtomicBool,
}

/// What a call has left besides its value.
#[derive(Debug, Clone, Default)]
pub struct CallArtifacts {
    /// The secrets that it has seen, in all their forms.
    pub exposed: Vec<Secret>,
    /// What its process left, for the record of the call.
    pub process: Option<ProcessRecord>,
    /// What came beside the value or the error, such as images, as content blocks of MCP.
    pub content: Vec<Value>,
}

impl CallContext {
    /// Makes the context of a call.
    pub fn new(id: CallId, tenant: TenantId, deadline: Instant, secrets: Arc<dyn SecretSource>) -> Self {
        let principal = Principal::new(tenant, Caller::nobody(), secrets);
        Self::of(id, Arc::new(principal), Instant::now()..deadline)
    }

    /// Makes the context of a call for someone, from its start to its deadline.
    #[inline]
    pub fn of(id: CallId, principal: Arc<Principal>, time: Range<Instant>) -> Self {
        Self {
            id,
            principal,
            mode: Mode::Production,
            started: time.start,
            deadline: time.end,
            attempt: 0,
            events: None,
            workspace: None,
            shared: OnceLock::new(),
        }
    }

    /// Returns for whom it runs, for calls that are a part of it.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }

    /// Returns whose tools, files and secrets it has.
    pub fn tenant(&self) -> &TenantId {
        &self.principal.tenant
    }

    /// Returns who calls; for tools that call or change others.
    pub fn caller(&self) -> &Caller {
        &self.principal.caller
    }

    /// Returns a secret, and remembers to keep it out of the outcome.
    pub async fn secret(&self, name: &str) -> Result<Option<Secret>, CallError> {
        let found = self.stored(name).await?;
        if let Some(secret) = &found {
            self.hide(secret.clone());
        }
        Ok(found)
    }

    /// Looks a stored value up that is no secret, such as the name of a server: the outcome may say it.
    pub async fn setting(&self, name: &str) -> Result<Option<String>, CallError> {
        Ok(self.stored(name).await?.map(|value| value.expose().to_owned()))
    }

    async fn stored(&self, name: &str) -> Result<Option<Secret>, CallError> {
        self.principal.secrets.secret(self.tenant(), name).await.map_err(|error| {
            let why = error.source.to_string();
            CallError::internal(format!("{error}: {why}"))
        })
    }

    /// Returns where refresh tokens are kept.
    pub fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        self.principal.secrets.refresh_tokens()
    }

    fn shared(&self) -> &Arc<Shared> {
        self.shared.get_or_init(Arc::default)
    }

    /// Starts anew, for another run of the same call: nothing is hidden, left or over.
    pub fn renew(&mut self) {
        self.shared = OnceLock::new();
    }

    /// Keeps a text and its escaped forms out of the outcome, as if it had come from [`CallContext::secret`].
    pub fn hide(&self, secret: Secret) {
        let exposed = &mut self.shared().left().exposed;
        if exposed.contains(&secret) {
            return;
        }
        exposed.extend(secret.escaped_forms());
        exposed.push(secret);
    }

    /// Returns every secret that the call has seen.
    pub fn exposed(&self) -> Vec<Secret> {
        self.shared.get().map(|shared| shared.left().exposed.clone()).unwrap_or_default()
    }

    /// Keeps what a process left besides its value, for the record of the call.
    pub fn report_process(&self, process: ProcessRecord) {
        self.shared().left().process = Some(process);
    }

    /// Keeps what came beside the value or the error, such as images, as content blocks of MCP; in place of what was
    /// kept before.
    pub fn report_content(&self, content: Vec<Value>) {
        self.shared().left().content = content;
    }

    /// Takes what the call has left, if anything. The secrets stay known: something may still be at work for it.
    pub fn take_left(&self) -> Option<CallArtifacts> {
        let mut left = self.shared.get()?.left();
        let (process, content) = (left.process.take(), std::mem::take(&mut left.content));
        Some(CallArtifacts { exposed: left.exposed.clone(), process, content })
    }

    /// Tells those who watch.
    pub fn emit(&self, event: CallEvent) {
        if let Some(events) = &self.events {
            events.emit(event);
        }
    }

    /// Tells those who watch how far the call is, from 0 to 1, and a word about it. No secret that the call has seen
    /// stands in it.
    pub fn progress(&self, done: f64, word: impl Into<String>) {
        if self.events.is_some() {
            let mut word = word.into();
            scrub_text(&mut word, &self.exposed());
            self.emit(CallEvent::Progress(done, word));
        }
    }

    /// Tells whether nobody waits for the outcome any more: the call was cancelled, or its time is over. An async
    /// function is dropped then; one that blocks looks here between its steps.
    pub fn is_cancelled(&self) -> bool {
        self.shared.get().is_some_and(|shared| shared.over.load(Ordering::Acquire))
    }

    /// Returns what says, when it is dropped, that the call is over, to functions that are still at work for it.
    pub fn ending(&self) -> CallEndGuard<'_> {
        CallEndGuard(self)
    }
}

/// Says that a call is over when it is dropped.
#[must_use = "the call is over as soon as this is dropped"]
pub struct CallEndGuard<'a>(&'a CallContext);

impl Drop for CallEndGuard<'_> {
    fn drop(&mut self) {
        // Where nothing is shared, nobody else has the context.
        if let Some(shared) = self.0.shared.get() {
            shared.over.store(true, Ordering::Release);
        }
    }
}

impl Shared {
    fn left(&self) -> MutexGuard<'_, CallArtifacts> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
