//! The one thread that starts processes.
//!
//! A child is told to die with the *thread* that started it, so that thread must live as long as the sandbox:
//! workers of an async runtime come and go. Having one thread also means that descriptors which a child shall
//! inherit are inheritable in no other child.

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
    orders: mpsc::Sender<Order>,
}

struct Order {
    command: Command,
    inherited: Vec<OwnedFd>,
    on_drop: OnDrop,
    /// What watches the child.
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

/// What happens to a child whose handle is dropped.
enum OnDrop {
    Kill,
    /// It is a supervisor, and has its own way to learn that it shall end: killed, it could not end its tree.
    Leave,
}

impl Spawner {
    /// Starts the thread. A child is watched by the runtime of whoever asks for it.
    pub(crate) fn start() -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel::<Order>();
        thread::Builder::new().name("haft-spawner".to_owned()).spawn(move || {
            for order in inbox {
                let _inside = order.runtime.enter();
                // A caller that went away meanwhile gets no process.
                if !order.answer.is_closed() {
                    let child = spawn(order.command, order.inherited, &order.on_drop);
                    drop(order.answer.send(child));
                }
            }
        })?;
        Ok(Self { orders })
    }

    /// Starts a process that inherits these descriptors besides its standard ones.
    pub(crate) async fn spawn(&self, command: Command, inherited: Vec<OwnedFd>) -> io::Result<Child> {
        self.order(command, inherited, OnDrop::Kill).await
    }

    /// Starts a process that ends by itself when its caller goes away.
    pub(crate) async fn spawn_supervised(&self, command: Command) -> io::Result<Child> {
        self.order(command, Vec::new(), OnDrop::Leave).await
    }

    async fn order(&self, command: Command, inherited: Vec<OwnedFd>, on_drop: OnDrop) -> io::Result<Child> {
        let (answer, child) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts processes has ended");
        let runtime = Handle::current();
        self.orders.send(Order { command, inherited, on_drop, runtime, answer }).map_err(|_| gone())?;
        child.await.map_err(|_| gone())?
    }
}

/// Held while a child is started, for there may be several sandboxes in a process: what one marks for its child,
/// the other would take the mark from, or let its own child inherit.
static STARTING: Mutex<()> = Mutex::new(());

fn spawn(command: Command, inherited: Vec<OwnedFd>, on_drop: &OnDrop) -> io::Result<Child> {
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
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
