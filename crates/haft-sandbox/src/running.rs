//! A process that runs confined, and the power to end it.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::io::AsyncReadExt as _;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;

use crate::cgroup::Group;
use crate::ending::{ExitReason, Limit};
use crate::engine::{Folder, Removal};
use crate::error::SandboxError;
use crate::settings::EngineName;

/// How long a process that was killed may take to end: one that waits for a disk that is gone cannot be killed, and
/// its caller shall not wait with it.
const PATIENCE: Duration = Duration::from_secs(15);

/// What the caller holds of a process's standard input.
#[derive(Debug)]
pub enum StdinHandle {
    /// The end of a pipe that is written.
    Pipe(ChildStdin),
    /// The other end of a socket.
    Socket(UnixStream),
}

/// A process that runs confined. Dropping it ends the process and all that it started.
#[derive(Debug)]
pub struct Running {
    /// Its standard input, where the command asked for a pipe or a socket.
    pub stdin: Option<StdinHandle>,
    /// Its standard output.
    pub stdout: Option<ChildStdout>,
    /// Its standard error.
    pub stderr: Option<ChildStderr>,
    pub(crate) started: Instant,
    pub(crate) engine: EngineName,
    /// Taken when the process has ended and was waited for.
    pub(crate) rest: Option<Rest>,
}

/// What is cleaned up after a process.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) child: Child,
    pub(crate) hold: Hold,
    /// Whether it was told to end.
    pub(crate) killed: bool,
    /// Dropped after the process has ended, in this order.
    pub(crate) group: Option<Group>,
    #[expect(dead_code, reason = "removed from disk when dropped")]
    pub(crate) folder: Option<Folder>,
}

impl Rest {
    /// Waits until the program, and all that it started, has ended.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        // Bubblewrap passes the program's code on and leaves the rest to the kernel, which takes a moment: the
        // first process of the namespace ends when all others are gone.
        if matches!(self.hold, Hold::Namespace { .. }) {
            self.hold.kill();
        }
        if let Hold::Namespace { init, .. } = &self.hold {
            drop(init.readable().await?);
            // By now it has another parent. Where that is this server, as in a container without an init, no one
            // else waits for it; elsewhere this is refused.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            drop(waitid(WaitId::PidFd(init.get_ref().as_fd()), ended).map_err(io::Error::from));
        }
        Ok(status)
    }
}

/// How a whole tree of processes is ended, and its end is told.
#[derive(Debug)]
pub(crate) enum Hold {
    /// The first process of the tree's own namespace: the kernel ends the others with it. The pipe tells whether
    /// the program was started at all.
    Namespace { init: AsyncFd<OwnedFd>, status: pipe::Receiver },
    /// A supervisor beside the tree ends it when this pipe is closed.
    Supervisor { lifeline: Option<OwnedFd> },
    /// A container is removed by its name.
    Container(Removal),
}

impl Hold {
    fn kill(&mut self) {
        match self {
            // It has ended already where this fails.
            Hold::Namespace { init, .. } => drop(pidfd_send_signal(init.get_ref(), Signal::KILL)),
            Hold::Supervisor { lifeline } => drop(lifeline.take()),
            Hold::Container(removal) => removal.start(),
        }
    }
}

/// The end of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) ending: ExitReason,
    pub(crate) processes_met: bool,
}

impl Running {
    /// Ends the process and all that it started; [`Running::wait`] then tells when they are gone.
    pub fn kill(&mut self) {
        if let Some(rest) = &mut self.rest {
            rest.hold.kill();
            rest.killed = true;
        }
    }

    /// Waits until the process has ended. By then everything that it started is gone, too.
    pub async fn wait(&mut self) -> Result<ExitReason, SandboxError> {
        self.end().await.map(|end| end.ending)
    }

    /// Waits until the process has ended, and cleans nothing up. Who stops waiting may wait again.
    pub(crate) async fn ended(&mut self) -> Result<(), SandboxError> {
        let Some(rest) = &mut self.rest else { return Ok(()) };
        rest.wait().await.map_err(SandboxError::system("wait for a process"))?;
        Ok(())
    }

    /// Waits until the process has ended, and cleans up after it.
    pub(crate) async fn end(&mut self) -> Result<End, SandboxError> {
        let engine = self.engine;
        let gone =
            || SandboxError::Engine { engine, message: "the process was waited for before".to_owned() };
        let rest = self.rest.as_mut().ok_or_else(gone)?;
        let waited = if rest.killed {
            tokio::time::timeout(PATIENCE, rest.wait()).await
        } else {
            Ok(rest.wait().await)
        };
        let Ok(status) = waited else {
            // What is left is cleaned up by whoever drops this, or by the next start.
            tracing::warn!(%engine, "a process that was killed does not end; it is left to the kernel");
            return Ok(End { ending: ExitReason::Signalled(libc::SIGKILL), processes_met: false });
        };
        let status = status.map_err(SandboxError::system("wait for a process"))?;
        let ran = rest.hold.ran(status).await;
        let mut rest = self.rest.take().ok_or_else(gone)?;
        if let Hold::Container(removal) = &mut rest.hold {
            removal.forget();
        }
        let group = rest.group.as_ref();
        let (memory_met, processes_met) =
            (group.is_some_and(Group::memory_met), group.is_some_and(Group::processes_met));
        clean_up(rest).await;
        let code = ran.map_err(|()| SandboxError::Engine { engine, message: String::new() })?;
        let mut ending = ExitReason::from_code(code);
        // A process that was killed for memory and ended by itself afterwards has told its own story.
        if memory_met && matches!(ending, ExitReason::Signalled(libc::SIGKILL)) {
            ending = ExitReason::Stopped(Limit::Memory);
        }
        Ok(End { ending, processes_met })
    }
}

/// Removes what a process has left. A thread that may wait does it: there may be a million files.
async fn clean_up(rest: Rest) {
    let cleaned = tokio::task::spawn_blocking(move || drop(rest)).await;
    // Where the runtime is ending and starts nothing any more, it has dropped the rest itself.
    if cleaned.is_err_and(|error| error.is_panic()) {
        tracing::warn!("failed to clean up after a process; the next start will");
    }
}

impl Hold {
    /// Returns the code of the program, or an error where the engine never came to start it.
    async fn ran(&mut self, status: ExitStatus) -> Result<i32, ()> {
        use std::os::unix::process::ExitStatusExt as _;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(libc::SIGKILL));
        match self {
            Hold::Namespace { status: pipe, .. } => {
                let mut told = Vec::new();
                // The writer has ended, so this meets the end of the pipe.
                let read = pipe.read_to_end(&mut told).await.unwrap_or_default();
                // Killed from outside, the engine tells nothing; else it tells a code if the program ran.
                if read > 0 || code == 128 + libc::SIGKILL { Ok(code) } else { Err(()) }
            }
            // Docker and Podman have 125 for themselves.
            Hold::Container(_) if code == 125 => Err(()),
            Hold::Supervisor { .. } | Hold::Container(_) => Ok(code),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut rest) = self.rest.take() else { return };
        rest.hold.kill();
        // The pipes are closed first: a process that writes must not keep the cleaning up waiting.
        drop((self.stdin.take(), self.stdout.take(), self.stderr.take()));
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = rest.wait().await {
                    tracing::warn!(%error, "failed to wait for a process that was ended");
                }
                clean_up(rest).await;
            });
        }
    }
}
