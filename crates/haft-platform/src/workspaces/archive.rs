//! The files of a state as a ZIP archive, which is written while it is sent.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use haft_core::id::ManifestId;
use haft_core::name::TenantId;
use haft_core::outcome::CallError;
use haft_core::workspace::WorkspaceName;
use haft_package::zip::ArchiveWriter;
use haft_workspace::{FileEntry, Listing, Manifest, Packs, WalkStep, WorkspaceError};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::host::{WorkspaceHost, parse_root};

/// How long a client may read nothing; then its archive ends.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);
/// The size of the parts that are sent, and how many of them wait for the client.
const CHUNK: usize = 64 << 10;
const QUEUE: usize = 8;

/// The parts of an archive. One that could not be written completely ends with an error.
pub struct ArchiveStream {
    parts: Receiver<Bytes>,
    is_complete: Arc<AtomicBool>,
}

impl ArchiveStream {
    /// Converts it to a stream for the body of a response.
    pub fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        let parts = futures_util::stream::unfold(Some(self), |state| async move {
            let mut state = state?;
            match state.parts.recv().await {
                Some(part) => Some((Ok(part), Some(state))),
                None if state.is_complete.load(Ordering::Acquire) => None,
                None => Some((Err(io::Error::other("the archive is incomplete")), None)),
            }
        });
        // The server asks again after the end.
        parts.fuse()
    }
}

impl WorkspaceHost {
    /// Starts to write the archive of a state: a given one, or the active one.
    pub async fn archive(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        state: Option<ManifestId>,
    ) -> Result<ArchiveStream, CallError> {
        let stored = self.state(tenant, name, state).await?;
        let manifest = stored.map(|stored| parse_root(&stored.root)).transpose()?;
        let permit = self.archives.acquire()?;
        let packs = Arc::clone(&self.packs);
        let (sender, parts) = mpsc::channel(QUEUE);
        let is_complete = Arc::new(AtomicBool::new(false));
        let (done, shown) = (Arc::clone(&is_complete), name.to_string());
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let sink = PartSink::new(runtime, sender, STALL_TIMEOUT);
            if let Err(error) = write(&*packs, manifest.as_ref(), sink, &done) {
                tracing::info!(workspace = shown, %error, "an archive was not sent completely");
            }
            drop(permit);
        });
        Ok(ArchiveStream { parts, is_complete })
    }
}

/// Writes all files of a state, and notes that the archive is complete.
fn write(
    packs: &dyn Packs,
    manifest: Option<&Manifest>,
    sink: PartSink,
    is_complete: &AtomicBool,
) -> Result<(), WorkspaceError> {
    let mut archive = ArchiveWriter::new(sink);
    if let Some(manifest) = manifest {
        haft_workspace::walk(packs, manifest, |step| {
            let written = match step {
                WalkStep::Entry(FileEntry { path, listing }) => match listing {
                    Listing::File { executable, content } => {
                        archive.file(path, *executable, content.extent.length)
                    }
                    Listing::Folder => archive.folder(path),
                    Listing::Link { target } => archive.link(path, target),
                },
                WalkStep::Bytes(bytes) => archive.bytes(bytes),
            };
            written.map_err(failed)
        })?;
    }
    let mut sink = archive.finish().map_err(failed)?;
    sink.send().map_err(failed)?;
    // Before the sink is dropped, which ends the stream.
    is_complete.store(true, Ordering::Release);
    Ok(())
}

fn failed(source: io::Error) -> WorkspaceError {
    WorkspaceError::Io { operation: "send", path: "the archive".into(), source }
}

/// Forwards written data in parts; fails if the receiver is closed.
struct PartSink {
    runtime: Handle,
    sender: Sender<Bytes>,
    buffer: Vec<u8>,
    /// How long a part waits for the client.
    stall_timeout: Duration,
    /// Whether the client is gone. The archive is dropped then, which would write its end.
    is_closed: bool,
}

impl PartSink {
    fn new(runtime: Handle, sender: Sender<Bytes>, stall_timeout: Duration) -> Self {
        Self { runtime, sender, buffer: Vec::with_capacity(CHUNK), stall_timeout, is_closed: false }
    }

    fn send(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        let part = Bytes::from(std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK)));
        let sending = async { tokio::time::timeout(self.stall_timeout, self.sender.send(part)).await };
        let sent = self.runtime.block_on(sending);
        self.is_closed = !matches!(sent, Ok(Ok(())));
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Write for PartSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.send()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_cut_off() {
        let (sender, parts) = mpsc::channel(1);
        let mut sink = PartSink::new(Handle::current(), sender, Duration::from_millis(50));
        let written = tokio::task::spawn_blocking(move || {
            let mut write = || sink.write(&vec![0; CHUNK]).map_err(|error| error.kind());
            [write(), write(), write()]
        });
        let cut_off = [Ok(CHUNK), Err(io::ErrorKind::TimedOut), Err(io::ErrorKind::BrokenPipe)];
        assert_eq!(written.await.unwrap(), cut_off);
        drop(parts);
    }

    #[tokio::test]
    async fn an_incomplete_archive_ends_with_an_error() {
        for is_complete in [true, false] {
            let (sender, parts) = mpsc::channel(4);
            sender.send(Bytes::from_static(b"part")).await.unwrap();
            drop(sender);
            let stream = ArchiveStream { parts, is_complete: Arc::new(AtomicBool::new(is_complete)) };
            let items: Vec<_> = stream.into_stream().collect().await;
            assert_eq!(items.len(), if is_complete { 1 } else { 2 });
            assert_eq!(items.last().unwrap().is_ok(), is_complete);
        }
    }
}
