//! All environments of an installation, and the calls that wait for them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::executor::{CallContext, CallEvent};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::requirement::Requirement;
use haft_core::spec::ToolSpec;
use haft_sandbox::Level;
use tokio::sync::Semaphore;

use super::build::{BuildPlan, Builder};
use super::dependencies::{Dependencies, Needs};
use super::failure::BuildError;
use super::installer::PACKAGES;
use super::interpreter::{Interpreters, ProbeError};
use super::key::EnvironmentKey;
use super::progress::{self, BuildProgress};
use super::settings::PythonSettings;
use crate::process::{Processes, level, sandbox_error};

/// The folder of environments in a home folder.
const FOLDER: &str = "python-envs";
/// The maximum number of environments that are built at once.
const MAX_BUILDS: usize = 2;
/// How long a failed installation is not tried again.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// How often a call that waits emits the new lines of the installer.
const EMIT_INTERVAL: Duration = Duration::from_millis(200);
/// How long an environment that was seen is not looked for again.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often the use of an environment is noted on disk.
const NOTE_INTERVAL: Duration = Duration::from_hours(1);
/// The file whose time is that of the last use.
pub(super) const USED: &str = "used";

/// The private environments of tools with Python dependencies. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PythonEnvironments {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) builder: Builder,
    interpreters: Interpreters,
    builds: Mutex<HashMap<EnvironmentKey, Arc<BuildProgress>>>,
    seen: Mutex<HashMap<EnvironmentKey, Seen>>,
    permits: Semaphore,
}

/// When a complete environment was last seen, and when its use was last noted.
#[derive(Debug, Clone, Copy)]
struct Seen {
    checked: Instant,
    noted: Instant,
}

/// The packages of a call.
pub(in crate::python) struct CallPackages {
    /// The folder of the packages, if the tool needs any.
    pub(in crate::python) folder: Option<PathBuf>,
    /// The context of the call with a later deadline, if it waited for an installation.
    pub(in crate::python) extended: Option<CallContext>,
}

impl PythonEnvironments {
    /// Keeps the environments in the folder `python-envs` of a home folder, which is created when needed.
    pub fn new(processes: Processes, home: &std::path::Path, settings: PythonSettings) -> Self {
        let secrets = progress::secrets_of(settings.index_url.as_ref());
        let builder = Builder { processes, root: home.join(FOLDER), settings, secrets };
        Self {
            inner: Arc::new(Inner {
                builder,
                interpreters: Interpreters::default(),
                builds: Mutex::default(),
                seen: Mutex::default(),
                permits: Semaphore::new(MAX_BUILDS),
            }),
        }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &PythonSettings {
        &self.inner.builder.settings
    }

    /// Returns the environment that a tool needs now, whether it is built or not; `None` if it needs none, or if its
    /// requirements are invalid. `folder` is the folder of its bundle.
    pub async fn key_of(
        &self,
        spec: &ToolSpec,
        folder: Option<PathBuf>,
    ) -> Result<Option<EnvironmentKey>, CallError> {
        if spec.implementation.dependencies().is_none() {
            return Ok(None);
        }
        let Ok(dependencies) = Dependencies::new(spec, folder) else { return Ok(None) };
        let Ok(needs) = dependencies.current().await else { return Ok(None) };
        if needs.requirements.is_empty() {
            return Ok(None);
        }
        // Its packages are the same at both levels of isolation.
        let plan = self.plan(needs, Level::Isolated, spec.image.as_deref()).await?;
        Ok(Some(plan.key))
    }

    /// Waits for the packages that a call needs; the first one has them installed. Its deadline is moved by that time.
    pub(in crate::python) async fn packages(
        &self,
        call: &CallContext,
        spec: &ToolSpec,
        needs: Arc<Needs>,
    ) -> Result<CallPackages, CallError> {
        let plan = self.plan(needs, level(spec, call.tenant()), spec.image.as_deref()).await?;
        let folder = self.inner.builder.folder(&plan.key).join(PACKAGES);
        if self.inner.is_ready(&plan.key) {
            return Ok(CallPackages { folder: Some(folder), extended: None });
        }
        let started = Instant::now();
        let built = self.wait(call, plan).await;
        let waited = started.elapsed();
        call.report_preparation(waited);
        built?;
        let mut extended = call.clone();
        // Both, so that the timeout stays the same.
        extended.deadline += waited;
        extended.started += waited;
        Ok(CallPackages { folder: Some(folder), extended: Some(extended) })
    }

    /// Returns the folder of the packages of a tool, if they are installed.
    pub(in crate::python) async fn installed(&self, spec: &ToolSpec) -> Option<PathBuf> {
        let key = self.key_of(spec, None).await.ok()??;
        let folder = self.inner.builder.folder(&key).join(PACKAGES);
        self.inner.is_ready(&key).then_some(folder)
    }

    async fn plan(
        &self,
        needs: Arc<Needs>,
        level: Level,
        image: Option<&str>,
    ) -> Result<BuildPlan, CallError> {
        let Inner { builder, interpreters, .. } = &*self.inner;
        let interpreter =
            interpreters.get(&builder.processes, level, image).await.map_err(|error| match error {
                ProbeError::Sandbox(error) => sandbox_error(&error),
                error => CallError::new(ErrorCode::NotReady, error.to_string())
                    .for_model("this tool is unavailable"),
            })?;
        let key = EnvironmentKey::new(&needs, &interpreter, &builder.settings);
        Ok(BuildPlan { key, needs, interpreter })
    }

    /// Waits for an environment until the deadline of the call; the installation goes on afterwards.
    async fn wait(&self, call: &CallContext, plan: BuildPlan) -> Result<(), CallError> {
        let names: Vec<&str> = plan.needs.requirements.iter().map(Requirement::name).collect();
        call.progress(0.0, format!("installing Python dependencies: {}", shortened(&names)));
        let build = self.inner.start(plan);
        let mut shown = 0;
        let mut emit = || {
            if call.events.is_some() {
                let lines = build.lines_from(shown);
                shown += lines.len();
                for line in lines {
                    call.emit(CallEvent::Output(line));
                }
            }
        };
        let deadline = tokio::time::sleep_until(call.deadline.into());
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                result = build.ended() => {
                    emit();
                    return result.map_err(|error| error.to_call_error());
                }
                () = tokio::time::sleep(EMIT_INTERVAL) => emit(),
                () = &mut deadline => {
                    emit();
                    return Err(still_installing(build.started.elapsed()));
                }
            }
        }
    }
}

impl Inner {
    /// Returns whether an environment is complete, and notes its use.
    fn is_ready(&self, key: &EnvironmentKey) -> bool {
        let now = Instant::now();
        let known = self.seen().get(key).copied();
        if known.is_some_and(|seen| seen.checked.elapsed() < CHECK_INTERVAL) {
            return true;
        }
        if !self.builder.is_complete(key) {
            self.seen().remove(key);
            return false;
        }
        let is_noted = known.is_some_and(|seen| seen.noted.elapsed() < NOTE_INTERVAL);
        if !is_noted {
            self.note_use(key);
        }
        let noted = known.filter(|_| is_noted).map_or(now, |seen| seen.noted);
        self.seen().insert(key.clone(), Seen { checked: now, noted });
        true
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<EnvironmentKey, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the time of the last use, which decides when an environment is removed.
    fn note_use(&self, key: &EnvironmentKey) {
        let path = self.builder.folder(key).join(USED);
        // The time is that of the file, so its content does not matter.
        if let Err(error) = std::fs::write(path, "\n") {
            tracing::warn!(%error, environment = %key, "failed to note the use of a Python environment");
        }
    }

    /// Forgets an environment that was removed.
    pub(super) fn forget(&self, key: &EnvironmentKey) {
        self.seen().remove(key);
    }

    /// Returns the installation of an environment; starts it in the background unless it is running or has just failed.
    fn start(self: &Arc<Self>, plan: BuildPlan) -> Arc<BuildProgress> {
        let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |build: &BuildProgress| match build.finished() {
            None => true,
            Some((ended, result)) => result.is_err() && ended.elapsed() < RETRY_AFTER,
        };
        builds.retain(|_, build| is_current(build));
        if let Some(build) = builds.get(&plan.key) {
            return Arc::clone(build);
        }
        let build = BuildProgress::new();
        builds.insert(plan.key.clone(), Arc::clone(&build));
        drop(builds);
        let (inner, progress) = (Arc::clone(self), Arc::clone(&build));
        tokio::spawn(async move {
            // Ends the waiting calls even if the installation panics.
            let guard = FinishGuard(&progress);
            // The semaphore is never closed.
            let _permit = inner.permits.acquire().await;
            let result = inner.builder.build(&plan, &progress).await;
            match &result {
                Ok(()) => {
                    tracing::info!(environment = %plan.key, seconds = progress.started.elapsed().as_secs(), "installed Python packages");
                }
                Err(error) => {
                    tracing::warn!(environment = %plan.key, %error, "failed to install Python packages");
                }
            }
            progress.finish(result.map_err(Arc::new));
            drop(guard);
        });
        build
    }
}

/// Finishes an installation that ended without a result.
struct FinishGuard<'a>(&'a BuildProgress);

impl Drop for FinishGuard<'_> {
    fn drop(&mut self) {
        if self.0.finished().is_none() {
            self.0.finish(Err(Arc::new(BuildError::Interrupted)));
        }
    }
}

/// Returns the error of a call whose dependencies are still being installed.
fn still_installing(time: Duration) -> CallError {
    let message = format!("installing dependencies ({} s so far); call the tool again later", time.as_secs());
    let error = CallError::new(ErrorCode::NotReady, message).retryable(true);
    CallError { retry_after: Some(Duration::from_secs(5)), ..error }
}

/// Returns the first names, and how many more there are.
fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let first = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
