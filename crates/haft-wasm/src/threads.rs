//! Where guests compute.
//!
//! A call begins on the thread that brought it: most functions are over in microseconds, and a way to another
//! thread and back would cost more than they do. What has not ended by the first tick, or waits, goes on on
//! threads that belong to guests, so that no guest keeps a thread of the server for longer than a tick.

use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::Instant;

use futures_util::poll;
use haft_core::outcome::{CallError, ErrorCode};
use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

/// Where a call begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// On the thread that brought it.
    Here,
    /// On a thread of guests: it may wait for a disk or a network, and takes no thread of others for that.
    Apart,
}

/// The threads of guests; started when they are first needed.
#[derive(Default)]
pub(crate) struct Threads {
    runtime: OnceLock<Result<Owned, String>>,
}

impl Threads {
    /// Runs a guest to its end or to its deadline; dropping the future stops it.
    pub(crate) async fn run<F>(
        &self,
        guest: F,
        begin: Begin,
        deadline: Instant,
    ) -> Result<F::Output, CallError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let mut guest: Pin<Box<F>> = Box::pin(guest);
        if begin == Begin::Here
            && let Poll::Ready(ended) = poll!(guest.as_mut())
        {
            return Ok(ended);
        }
        let runtime = self.runtime()?;
        let moved = AbortOnDropHandle::new(runtime.spawn(guest));
        match tokio::time::timeout_at(deadline.into(), moved).await {
            Ok(Ok(ended)) => Ok(ended),
            Ok(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Ok(Err(_)) => Err(CallError::new(ErrorCode::Cancelled, "the program is stopping")),
            Err(_) => Err(CallError::new(ErrorCode::Timeout, "the guest took longer than the call may")),
        }
    }

    fn runtime(&self) -> Result<&Runtime, CallError> {
        let made = self.runtime.get_or_init(|| {
            Builder::new_multi_thread()
                .thread_name("haft-wasm")
                .enable_all()
                .build()
                .map(|runtime| Owned(Some(runtime)))
                .map_err(|error| error.to_string())
        });
        match made {
            Ok(Owned(Some(runtime))) => Ok(runtime),
            Ok(Owned(None)) => Err(CallError::internal("the threads of guests have ended")),
            Err(error) => Err(CallError::internal(format!("start the threads of guests: {error}"))),
        }
    }
}

/// A runtime that may be dropped anywhere, also where waiting is not allowed.
struct Owned(Option<Runtime>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
