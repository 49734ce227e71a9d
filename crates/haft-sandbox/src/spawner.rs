//! The thread that starts processes.
//!
//! The kernel kills a child together with the *thread* that started it, so that thread must live as long as the sandbox,
//! unlike the workers of an async runtime. A single thread also ensures that no other child inherits a descriptor.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::fds;

/// Starts processes, one after another.
#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    requests: mpsc::Sender<SpawnRequest>,
}

struct SpawnRequest {
    command: Command,
    inherited: Vec<OwnedFd>,
    on_drop: OnDrop,
    /// The runtime that watches the child.
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// What happens to a child whose handle is dropped.
enum OnDrop {
    Kill,
    /// A supervisor notices without a signal; if it were killed, it could not kill its tree.
    Leave,
}

impl Spawner {
    /// Starts the thread. A child is watched by the runtime of its caller.
    pub(crate) fn start() -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel::<SpawnRequest>();
        thread::Builder::new().name("haft-spawner".to_owned()).spawn(move || {
            for request in inbox {
                let _inside = request.runtime.enter();
                // No process for a caller that is gone.
                if !request.reply.is_closed() {
                    let child = spawn(request.command, request.inherited, &request.on_drop);
                    drop(request.reply.send(child));
                }
            }
        })?;
        Ok(Self { requests })
    }

    /// Starts a process that inherits these descriptors besides its standard ones.
    pub(crate) async fn spawn(&self, command: Command, inherited: Vec<OwnedFd>) -> io::Result<Child> {
        self.request(command, inherited, OnDrop::Kill).await
    }

    /// Starts a supervisor, which notices when its caller is gone.
    pub(crate) async fn spawn_supervised(&self, command: Command) -> io::Result<Child> {
        self.request(command, Vec::new(), OnDrop::Leave).await
    }

    async fn request(&self, command: Command, inherited: Vec<OwnedFd>, on_drop: OnDrop) -> io::Result<Child> {
        let (reply, child) = oneshot::channel();
        let gone = || io::Error::other("the spawner thread has ended");
        let runtime = Handle::current();
        self.requests
            .send(SpawnRequest { command, inherited, on_drop, runtime, reply })
            .map_err(|_| gone())?;
        child.await.map_err(|_| gone())?
    }
}

/// Locked while a child is started: with several sandboxes in one process, one could reset the descriptor flags of
/// another, or let its own child inherit them.
static SPAWN_LOCK: Mutex<()> = Mutex::new(());

fn spawn(command: Command, inherited: Vec<OwnedFd>, on_drop: &OnDrop) -> io::Result<Child> {
    let _guard = SPAWN_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    fds::close_others_on_exec();
    for fd in &inherited {
        fds::inherit(fd)?;
    }
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(matches!(on_drop, OnDrop::Kill));
    let child = command.spawn();
    drop(inherited);
    child
}
