//! Captures the output of a guest: all of stdout up to a limit, and the end of stderr, whose lines are also events.

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

/// The size limit of one write, which wasmtime allocates for the guest.
const MAX_WRITE_BYTES: usize = 64 * 1024;
/// How many bytes of stderr are kept; up to twice as many are buffered.
const STDERR_BYTES: usize = 16 * 1024;
/// The size limit of a line in an event.
const MAX_LINE_BYTES: usize = 4 * 1024;

/// Which part is kept above the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// The beginning; the guest is stopped.
    First,
    /// The end.
    Last,
}

/// An output stream of a guest.
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
    /// Removed from lines.
    secrets: Vec<Secret>,
}

/// The output limit was exceeded.
#[derive(Debug, thiserror::Error)]
#[error("output limit exceeded")]
struct Overflow;

impl Capture {
    /// Captures a value, up to the limit.
    pub(crate) fn value(limit: usize) -> Self {
        Self::with(limit, Keep::First, None, Vec::new())
    }

    /// Captures messages: keeps the last ones and emits each line, without these secrets.
    pub(crate) fn messages(events: Option<Arc<dyn EventSink>>, secrets: Vec<Secret>) -> Self {
        Self::with(STDERR_BYTES, Keep::Last, events, secrets)
    }

    fn with(limit: usize, keep: Keep, events: Option<Arc<dyn EventSink>>, secrets: Vec<Secret>) -> Self {
        let (bytes, line) = (Vec::new(), Vec::new());
        let buffer = Buffer { bytes, limit, keep, overflowed: false, line, events, secrets };
        Self { shared: Arc::new(Mutex::new(buffer)) }
    }

    /// Returns whether the limit was exceeded.
    pub(crate) fn overflowed(&self) -> bool {
        self.lock(|buffer| buffer.overflowed)
    }

    /// Returns what was written.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.lock(|buffer| {
            buffer.emit_line();
            std::mem::take(&mut buffer.bytes)
        })
    }

    fn lock<T>(&self, work: impl FnOnce(&mut Buffer) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Buffer {
    fn write(&mut self, new: &[u8]) -> Result<(), Overflow> {
        self.emit_lines(new);
        self.bytes.extend_from_slice(new);
        match self.keep {
            Keep::First if self.bytes.len() > self.limit => {
                self.overflowed = true;
                self.bytes.truncate(self.limit);
                Err(Overflow)
            }
            // Cut at twice the limit, so that small writes stay cheap.
            Keep::Last if self.bytes.len() > 2 * self.limit => {
                self.overflowed = true;
                let surplus = self.bytes.len() - self.limit;
                self.bytes.drain(..surplus);
                Ok(())
            }
            Keep::First | Keep::Last => Ok(()),
        }
    }

    fn emit_lines(&mut self, new: &[u8]) {
        if self.events.is_none() {
            return;
        }
        for byte in new {
            if *byte == b'\n' {
                self.emit_line();
            } else if self.line.len() < MAX_LINE_BYTES {
                self.line.push(*byte);
            }
        }
    }

    fn emit_line(&mut self) {
        if let Some(events) = &self.events
            && !self.line.is_empty()
        {
            // A full line may have been cut within a secret.
            let left_out = u64::from(self.line.len() >= MAX_LINE_BYTES);
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
        Ok(MAX_WRITE_BYTES)
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
