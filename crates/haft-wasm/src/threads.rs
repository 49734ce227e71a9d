//! The threads of guests.
//!
//! A call starts on the thread of its caller: most functions end within microseconds, less than a switch to another
//! thread costs. A call that has not ended by the first tick, or waits, moves to the threads of guests, so that no guest
//! blocks a thread of the server for longer than a tick.

use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::Instant;

use futures_util::poll;
use haft_core::outcome::{CallError, ErrorCode};
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// The thread on which a call starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartThread {
    /// The thread of the caller.
    Current,
    /// A thread of guests, for calls that may wait for a disk or a network.
    Guest,
}

/// The threads of guests; started on first use.
#[derive(Default)]
pub(crate) struct Threads {
    runtime: OnceLock<Result<OwnedRuntime, String>>,
}

impl Threads {
    /// Runs a guest to its end or to its deadline; dropping the future stops it.
    pub(crate) async fn run<F>(
        &self,
        guest: F,
        start: StartThread,
        deadline: Instant,
    ) -> Result<F::Output, CallError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let mut guest: Pin<Box<F>> = Box::pin(guest);
        if start == StartThread::Current
            && let Poll::Ready(ended) = poll!(guest.as_mut())
        {
            return Ok(ended);
        }
        let runtime = self.runtime()?;
        let moved = AbortOnDropHandle::new(runtime.spawn(guest));
        match tokio::time::timeout_at(deadline.into(), moved).await {
            Ok(Ok(ended)) => Ok(ended),
            Ok(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Ok(Err(_)) => Err(CallError::new(ErrorCode::Cancelled, "the server is stopping")),
            Err(_) => Err(CallError::new(ErrorCode::Timeout, "the call timed out")),
        }
    }

    fn runtime(&self) -> Result<&Runtime, CallError> {
        let made = self.runtime.get_or_init(|| {
            Builder::new_multi_thread()
                .thread_name("haft-wasm")
                .enable_all()
                .build()
                .map(|runtime| OwnedRuntime(Some(runtime)))
                .map_err(|error| error.to_string())
        });
        match made {
            Ok(OwnedRuntime(Some(runtime))) => Ok(runtime),
            Ok(OwnedRuntime(None)) => Err(CallError::internal("the WebAssembly threads have ended")),
            Err(error) => {
                Err(CallError::internal(format!("failed to start the WebAssembly threads: {error}")))
            }
        }
    }
}

/// A runtime that can be dropped in an async context.
struct OwnedRuntime(Option<Runtime>);

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
