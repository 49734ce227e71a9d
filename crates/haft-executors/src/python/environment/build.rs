//! Builds an environment: in a folder of another name, which is renamed when it is complete.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::secret::Secret;
use haft_sandbox::{ExitReason, Level, Limit, Limits, ProcessResult, Stream};
use serde_json::json;

use super::dependencies::Needs;
use super::failure::{BuildError, FailureReason, last_lines};
use super::installer::{Installer, PACKAGES, TEMPORARY};
use super::interpreter::Interpreter;
use super::key::EnvironmentKey;
use super::lock::EnvironmentLock;
use super::progress::{BuildProgress, masked};
use super::settings::PythonSettings;
use super::wheels;
use crate::process::Processes;

/// The file that describes an environment.
pub(super) const ABOUT: &str = "environment.json";
/// The start of the name of a folder that is being built.
pub(super) const BUILDING: &str = ".building-";
/// How often a lock that another process holds is tried.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);
/// How often the size of the folder is measured.
const SIZE_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of files of an environment.
const MAX_FILES: u64 = 300_000;
/// The minimum memory limit of an installer, which solves for versions.
const MIN_MEMORY: u64 = 1 << 30;
/// How much output of an installer is kept.
const MAX_OUTPUT: usize = 256 * 1024;

/// One environment to build.
#[derive(Debug, Clone)]
pub(super) struct BuildPlan {
    pub(super) key: EnvironmentKey,
    pub(super) needs: Arc<Needs>,
    pub(super) interpreter: Arc<Interpreter>,
}

/// What all builds of an installation share.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) processes: Processes,
    /// The folder of all environments.
    pub(super) root: PathBuf,
    pub(super) settings: PythonSettings,
    /// The credentials of the index.
    pub(super) secrets: Vec<Secret>,
}

impl Builder {
    /// Returns the folder of an environment.
    pub(super) fn folder(&self, key: &EnvironmentKey) -> PathBuf {
        self.root.join(key.as_str())
    }

    /// Returns whether an environment is complete.
    pub(super) fn is_complete(&self, key: &EnvironmentKey) -> bool {
        self.folder(key).join(ABOUT).is_file()
    }

    /// Builds an environment, unless another process does it at the same time: then it waits for that one.
    pub(super) async fn build(&self, plan: &BuildPlan, progress: &BuildProgress) -> Result<(), BuildError> {
        create_private(&self.root).map_err(BuildError::io("create the folder of Python environments"))?;
        let limit = self.settings.build_timeout;
        let _lock = tokio::time::timeout(limit, self.lock(&plan.key)).await.map_err(|_| {
            BuildError::Timeout { installer: "another process", limit, output: "still installing".to_owned() }
        })??;
        if self.is_complete(&plan.key) {
            return Ok(());
        }
        let temporary = self.root.join(format!("{BUILDING}{}", plan.key));
        // With the lock held, this can only be left by a process that was killed.
        remove(temporary.clone()).await.map_err(BuildError::io("remove an incomplete environment"))?;
        let built = self.build_in(&temporary, plan, progress).await;
        if built.is_err()
            && let Err(error) = remove(temporary).await
        {
            tracing::warn!(%error, "failed to remove an incomplete Python environment");
        }
        built
    }

    async fn lock(&self, key: &EnvironmentKey) -> Result<EnvironmentLock, BuildError> {
        loop {
            match EnvironmentLock::try_acquire(&self.root, key) {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) => tokio::time::sleep(LOCK_INTERVAL).await,
                Err(error) => return Err(BuildError::io("lock a Python environment")(error)),
            }
        }
    }

    async fn build_in(
        &self,
        folder: &Path,
        plan: &BuildPlan,
        progress: &BuildProgress,
    ) -> Result<(), BuildError> {
        let installer = Installer::select(&plan.interpreter).ok_or(BuildError::NoInstaller)?;
        let (path, needs) = (folder.to_owned(), Arc::clone(&plan.needs));
        let is_container = plan.interpreter.image.is_some();
        blocking(move || create(&path, &needs, is_container))
            .await
            .map_err(BuildError::io("create a Python environment"))?;
        let started = Instant::now();
        let finished = self.install(&installer, folder, plan, progress).await?;
        self.check(&installer, &finished, plan)?;
        let size = folder_size(folder.join(PACKAGES)).await?;
        if size.bytes > self.settings.max_bytes || size.files > MAX_FILES {
            return Err(BuildError::TooLarge(self.settings.max_bytes));
        }
        let about = json!({
            "requirements": plan.needs.requirements.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "wheels": plan.needs.wheels.iter().map(|wheel| wheel.name.as_str()).collect::<Vec<_>>(),
            "python": plan.interpreter.identity().trim_end(), "installer": installer.name(),
            "seconds": started.elapsed().as_secs_f64(), "bytes": size.bytes, "files": size.files,
        });
        let (from, to) = (folder.to_owned(), self.folder(&plan.key));
        blocking(move || complete(&from, &to, &format!("{about:#}\n")))
            .await
            .map_err(BuildError::io("complete a Python environment"))
    }

    /// Runs the installer within its limits.
    async fn install(
        &self,
        installer: &Installer,
        folder: &Path,
        plan: &BuildPlan,
        progress: &BuildProgress,
    ) -> Result<ProcessResult, BuildError> {
        let sandbox = self.processes.sandbox();
        let image = plan.interpreter.image.clone();
        let place = sandbox.place(Level::Isolated, image.as_ref().map(|_| sandbox.container_engine()))?;
        let mut command = installer.command(place, folder, &plan.needs, &self.settings);
        command = command.env("PATH", &self.processes.settings().path);
        command.image = image;
        let limits = self.processes.settings().limits.clone();
        command.limits = Limits {
            wall: self.settings.build_timeout,
            // All processors together.
            cpu: self.settings.build_timeout.saturating_mul(16),
            memory: limits.memory.max(MIN_MEMORY),
            file_size: self.settings.max_bytes,
            output: MAX_OUTPUT,
            ..limits
        };
        let mut lines = LineSplitter::default();
        let mut watch = |_: Stream, chunk: &[u8]| {
            lines.take(chunk, |line| progress.add(line, &self.secrets));
        };
        tokio::select! {
            finished = sandbox.run(command, &mut watch) => Ok(finished?),
            () = exceeds(folder, self.settings.max_bytes) => Err(BuildError::TooLarge(self.settings.max_bytes)),
        }
    }

    /// Returns the error of an installer that failed.
    fn check(
        &self,
        installer: &Installer,
        finished: &ProcessResult,
        plan: &BuildPlan,
    ) -> Result<(), BuildError> {
        if finished.ending == ExitReason::Exited(0) {
            return Ok(());
        }
        let output = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
        let output = masked(&output, &self.secrets);
        let (name, limit) = (installer.name(), self.settings.build_timeout);
        if finished.ending == ExitReason::Stopped(Limit::Wall) {
            return Err(BuildError::Timeout { installer: name, limit, output: last_lines(&output) });
        }
        // A file above the limit; the rest is measured.
        let is_too_large = output.contains("[Errno 27]") || output.contains("os error 27");
        if is_too_large || finished.ending == ExitReason::Stopped(Limit::FileSize) {
            return Err(BuildError::TooLarge(self.settings.max_bytes));
        }
        let (builds, vendored) = (self.settings.allow_builds, !plan.needs.wheels.is_empty());
        let reason = FailureReason::classify(&output, finished.ending, builds, vendored);
        Err(BuildError::Installer { installer: name, reason, output: last_lines(&output) })
    }
}

/// Creates a folder that only the server's user can open.
fn create_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates the folders of an environment, with the vendored wheels.
fn create(folder: &Path, needs: &Needs, is_container: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    for name in [PACKAGES, TEMPORARY, wheels::FOLDER] {
        let inner = folder.join(name);
        std::fs::create_dir_all(&inner)?;
        if is_container {
            // The user of a container may be another one. The folder around all environments is private.
            std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o777))?;
        }
    }
    match &needs.folder {
        Some(from) => wheels::copy_all(&needs.wheels, from, &folder.join(wheels::FOLDER)),
        None => Ok(()),
    }
}

/// Removes what was only needed to build an environment, and renames it. Everything is on disk before it has its name.
fn complete(from: &Path, to: &Path, about: &str) -> io::Result<()> {
    for name in [TEMPORARY, wheels::FOLDER] {
        std::fs::remove_dir_all(from.join(name))?;
    }
    std::fs::write(from.join(ABOUT), about)?;
    rustix::fs::syncfs(std::fs::File::open(from)?)?;
    std::fs::rename(from, to)
}

/// Removes a folder, if it exists.
async fn remove(folder: PathBuf) -> io::Result<()> {
    blocking(move || match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// The size of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FolderSize {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Measures a folder; files that vanish meanwhile are not counted.
pub(super) fn measure(folder: &Path) -> FolderSize {
    let (mut size, mut pending) = (FolderSize::default(), vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            size.files += 1;
            size.bytes = size.bytes.saturating_add(about.len());
            if about.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    size
}

async fn folder_size(folder: PathBuf) -> Result<FolderSize, BuildError> {
    blocking(move || Ok(measure(&folder))).await.map_err(BuildError::io("measure a Python environment"))
}

/// Returns when a folder has become too large.
async fn exceeds(folder: &Path, max_bytes: u64) {
    loop {
        tokio::time::sleep(SIZE_INTERVAL).await;
        let size = folder_size(folder.to_owned()).await;
        // Downloads and unpacked packages are there at the same time.
        if size.is_ok_and(|size| size.bytes > max_bytes.saturating_mul(2) || size.files > MAX_FILES * 2) {
            return;
        }
    }
}

/// Splits output into lines.
#[derive(Default)]
struct LineSplitter {
    pending: Vec<u8>,
}

impl LineSplitter {
    fn take(&mut self, chunk: &[u8], mut line: impl FnMut(&str)) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            // A line without an end is shown with its beginning only.
            if self.pending.len() < 8 * 1024 {
                self.pending.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                let text = String::from_utf8_lossy(&self.pending);
                if !text.trim().is_empty() {
                    line(&text);
                }
                self.pending.clear();
            }
        }
    }
}
