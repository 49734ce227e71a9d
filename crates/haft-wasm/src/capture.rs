//! What a guest writes: stdout whole and bounded, stderr as its last part, each line shown to those who watch.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use haft_core::executor::{CallEvent, EventSink};
use haft_core::output::StreamOutput;
use haft_core::secret::Secret;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError};

/// How much one write may bring; wasmtime allocates as much on behalf of the guest.
const WRITE: usize = 64 * 1024;
/// How much of stderr is kept; up to twice as much is there at times.
const STDERR: usize = 16 * 1024;
/// The longest line that is shown while the call runs.
const LINE: usize = 4 * 1024;

/// What is kept where more is written than fits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// The beginning; the guest is stopped.
    First,
    /// The end.
    Last,
}

/// One output of a guest.
#[derive(Clone)]
pub(crate) struct Capture {
    shared: Arc<Mutex<Buffer>>,
}

struct Buffer {
    bytes: Vec<u8>,
    limit: usize,
    keep: Keep,
    overflowed: bool,
    line: Vec<u8>,
    events: Option<Arc<dyn EventSink>>,
    /// What no line may show.
    secrets: Vec<Secret>,
}

/// A guest wrote more than it may.
#[derive(Debug, thiserror::Error)]
#[error("the output is larger than allowed")]
struct Overflow;

impl Capture {
    /// Captures a value: all of it, up to the limit.
    pub(crate) fn value(limit: usize) -> Self {
        Self::with(limit, Keep::First, None, Vec::new())
    }

    /// Captures messages: the last of them, each line shown at once, without these secrets.
    pub(crate) fn messages(events: Option<Arc<dyn EventSink>>, secrets: Vec<Secret>) -> Self {
        Self::with(STDERR, Keep::Last, events, secrets)
    }

    fn with(limit: usize, keep: Keep, events: Option<Arc<dyn EventSink>>, secrets: Vec<Secret>) -> Self {
        let (bytes, line) = (Vec::new(), Vec::new());
        let buffer = Buffer { bytes, limit, keep, overflowed: false, line, events, secrets };
        Self { shared: Arc::new(Mutex::new(buffer)) }
    }

    /// Tells whether more was written than is kept.
    pub(crate) fn overflowed(&self) -> bool {
        self.lock(|buffer| buffer.overflowed)
    }

    /// Takes what was written.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.lock(|buffer| {
            buffer.show_rest();
            std::mem::take(&mut buffer.bytes)
        })
    }

    fn lock<T>(&self, work: impl FnOnce(&mut Buffer) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Buffer {
    fn write(&mut self, new: &[u8]) -> Result<(), Overflow> {
        self.show(new);
        self.bytes.extend_from_slice(new);
        match self.keep {
            Keep::First if self.bytes.len() > self.limit => {
                self.overflowed = true;
                self.bytes.truncate(self.limit);
                Err(Overflow)
            }
            // Twice the limit before anything moves, so that small writes stay cheap.
            Keep::Last if self.bytes.len() > 2 * self.limit => {
                self.overflowed = true;
                let surplus = self.bytes.len() - self.limit;
                self.bytes.drain(..surplus);
                Ok(())
            }
            Keep::First | Keep::Last => Ok(()),
        }
    }

    fn show(&mut self, new: &[u8]) {
        if self.events.is_none() {
            return;
        }
        for byte in new {
            if *byte == b'\n' {
                self.show_rest();
            } else if self.line.len() < LINE {
                self.line.push(*byte);
            }
        }
    }

    fn show_rest(&mut self) {
        if let Some(events) = &self.events
            && !self.line.is_empty()
        {
            // A line that is full may have been cut within a secret.
            let left_out = u64::from(self.line.len() >= LINE);
            let line = StreamOutput { bytes: &self.line, left_out }.redacted(&self.secrets);
            events.emit(CallEvent::Output(line));
            self.line.clear();
        }
    }
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.lock(|buffer| buffer.write(&bytes)).map_err(|error| StreamError::Trap(error.into()))
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(WRITE)
    }
}

impl AsyncWrite for Capture {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.lock(|buffer| buffer.write(bytes)).map(|()| bytes.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
