//! A running process, and how its whole tree is killed.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::io::AsyncReadExt as _;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;

use crate::cgroup::Group;
use crate::ending::{ExitReason, Limit};
use crate::engine::{ContainerKill, Folder};
use crate::error::SandboxError;
use crate::settings::EngineName;

/// How long to wait for a killed process. One that is blocked on a disk cannot be killed, and its caller must not wait
/// with it.
const KILL_TIMEOUT: Duration = Duration::from_secs(15);

/// The caller's end of standard input.
#[derive(Debug)]
pub enum StdinHandle {
    /// The write end of a pipe.
    Pipe(ChildStdin),
    /// The other end of a socket.
    Socket(UnixStream),
}

/// A running process. Dropping it kills the process and its descendants.
#[derive(Debug)]
pub struct Running {
    /// Standard input, if the command uses a pipe or a socket.
    pub stdin: Option<StdinHandle>,
    /// Standard output.
    pub stdout: Option<ChildStdout>,
    /// Standard error.
    pub stderr: Option<ChildStderr>,
    pub(crate) started: Instant,
    pub(crate) engine: EngineName,
    /// Taken after the process has ended and was waited for.
    pub(crate) tree: Option<RunningTree>,
}

/// A process tree, and what has to be cleaned up after it.
#[derive(Debug)]
pub(crate) struct RunningTree {
    pub(crate) child: Child,
    pub(crate) handle: TreeHandle,
    /// Whether it was killed.
    pub(crate) killed: bool,
    /// Removed after the process has ended, in this order.
    pub(crate) group: Option<Group>,
    #[expect(dead_code, reason = "removed from disk when dropped")]
    pub(crate) folder: Option<Folder>,
}

impl RunningTree {
    /// Waits until the program and its descendants have ended.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        // bubblewrap exits with the program and leaves its descendants to the kernel, which kills them together
        // with the first process of the namespace.
        if matches!(self.handle, TreeHandle::Namespace { .. }) {
            self.handle.kill();
        }
        if let TreeHandle::Namespace { init, .. } = &self.handle {
            drop(init.readable().await?);
            // Reaps it if this server is its new parent, as in a container without an init; otherwise this fails.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            drop(waitid(WaitId::PidFd(init.get_ref().as_fd()), ended).map_err(io::Error::from));
        }
        Ok(status)
    }
}

/// How a process tree is killed.
#[derive(Debug)]
pub(crate) enum TreeHandle {
    /// The first process of the PID namespace: the kernel kills the others with it. The pipe reports whether the
    /// program was started.
    Namespace { init: AsyncFd<OwnedFd>, pid: Pid, status: pipe::Receiver },
    /// A supervisor kills the tree when this pipe is closed.
    Supervisor { lifeline: Option<OwnedFd> },
    /// A container is killed by its name.
    Container(ContainerKill),
}

impl TreeHandle {
    fn kill(&mut self) {
        match self {
            // An error means that it has ended already.
            TreeHandle::Namespace { init, .. } => drop(pidfd_send_signal(init.get_ref(), Signal::KILL)),
            TreeHandle::Supervisor { lifeline } => drop(lifeline.take()),
            TreeHandle::Container(removal) => removal.start(),
        }
    }
}

/// A child of the first process of a namespace.
#[derive(Debug)]
pub struct ChildHandle(OwnedFd);

impl ChildHandle {
    /// Kills the process; does nothing if it has ended.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

/// The result of waiting for a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) ending: ExitReason,
    pub(crate) processes_met: bool,
}

impl Running {
    /// Kills the process and its descendants; [`Running::wait`] returns when they have ended.
    pub fn kill(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.handle.kill();
            tree.killed = true;
        }
    }

    /// Returns the children of the first process of a PID namespace; an error if the process has no namespace of its own.
    pub fn children(&self) -> io::Result<Vec<ChildHandle>> {
        let Some(TreeHandle::Namespace { pid, .. }) = self.tree.as_ref().map(|tree| &tree.handle) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let pid = pid.as_raw_nonzero();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let pids = children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        pids.map(|pid| Ok(ChildHandle(pidfd_open(pid, PidfdFlags::empty())?))).collect()
    }

    /// Waits until the process and its descendants have ended.
    pub async fn wait(&mut self) -> Result<ExitReason, SandboxError> {
        self.end().await.map(|end| end.ending)
    }

    /// Waits until the process has ended, without cleaning up. Can be called again.
    pub(crate) async fn ended(&mut self) -> Result<(), SandboxError> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        tree.wait().await.map_err(SandboxError::system("wait for a process"))?;
        Ok(())
    }

    /// Waits until the process has ended and cleans up.
    pub(crate) async fn end(&mut self) -> Result<End, SandboxError> {
        let engine = self.engine;
        let gone =
            || SandboxError::Engine { engine, message: "the process was already waited for".to_owned() };
        let tree = self.tree.as_mut().ok_or_else(gone)?;
        let waited = if tree.killed {
            tokio::time::timeout(KILL_TIMEOUT, tree.wait()).await
        } else {
            Ok(tree.wait().await)
        };
        let Ok(status) = waited else {
            // Cleaned up when this is dropped, or by the next server.
            tracing::warn!(%engine, "a killed process does not end; leaving it to the kernel");
            return Ok(End { ending: ExitReason::Signalled(libc::SIGKILL), processes_met: false });
        };
        let status = status.map_err(SandboxError::system("wait for a process"))?;
        let ran = tree.handle.exit_code(status).await;
        let mut tree = self.tree.take().ok_or_else(gone)?;
        if let TreeHandle::Container(removal) = &mut tree.handle {
            removal.set_ended();
        }
        let group = tree.group.as_ref();
        let (memory_met, processes_met) =
            (group.is_some_and(Group::memory_met), group.is_some_and(Group::processes_met));
        clean_up(tree).await;
        let code = ran.map_err(|()| SandboxError::Engine { engine, message: String::new() })?;
        let mut ending = ExitReason::from_code(code);
        // Only a child may have been killed for memory; then the exit code of the program counts.
        if memory_met && matches!(ending, ExitReason::Signalled(libc::SIGKILL)) {
            ending = ExitReason::Stopped(Limit::Memory);
        }
        Ok(End { ending, processes_met })
    }
}

/// Removes the files of a process on a blocking thread: there may be a million of them.
async fn clean_up(tree: RunningTree) {
    let cleaned = tokio::task::spawn_blocking(move || drop(tree)).await;
    // A runtime that shuts down drops the tree itself.
    if cleaned.is_err_and(|error| error.is_panic()) {
        tracing::warn!("failed to clean up after a process; the next start retries");
    }
}

impl TreeHandle {
    /// Returns the exit code of the program, or an error if the engine did not start it.
    async fn exit_code(&mut self, status: ExitStatus) -> Result<i32, ()> {
        use std::os::unix::process::ExitStatusExt as _;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(libc::SIGKILL));
        match self {
            TreeHandle::Namespace { status: pipe, .. } => {
                let mut report = Vec::new();
                // The writer has ended, so this does not block.
                let read = pipe.read_to_end(&mut report).await.unwrap_or_default();
                // The engine reports an exit code if the program ran, unless the engine itself was killed.
                if read > 0 || code == 128 + libc::SIGKILL { Ok(code) } else { Err(()) }
            }
            // Docker and Podman use 125 for their own errors.
            TreeHandle::Container(_) if code == 125 => Err(()),
            TreeHandle::Supervisor { .. } | TreeHandle::Container(_) => Ok(code),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut tree) = self.tree.take() else { return };
        tree.handle.kill();
        // The pipes are closed first, so that a blocked writer does not delay the cleanup.
        drop((self.stdin.take(), self.stdout.take(), self.stderr.take()));
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = tree.wait().await {
                    tracing::warn!(%error, "failed to wait for a killed process");
                }
                clean_up(tree).await;
            });
        }
    }
}
