//! The socket between haft and a warm interpreter: lines of JSON, and file descriptors.

use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// The number of file descriptors of a call.
const DESCRIPTORS: usize = 4;
/// The maximum length of a line from an interpreter.
const MAX_LINE: usize = 64 * 1024;

/// The socket.
#[derive(Debug)]
pub(super) struct Wire {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Wire {
    pub(super) fn new(stream: StdStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream: UnixStream::from_std(stream)?, read: Vec::new() })
    }

    /// Returns the next line; `None` at the end.
    pub(super) async fn line(&mut self) -> io::Result<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if self.read.len() > MAX_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "line too long"));
            }
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Sends the descriptors of a call with a single byte, so that a reader gets them all at once.
    pub(super) async fn send(&self, descriptors: &Descriptors) -> io::Result<()> {
        let numbers = descriptors.borrowed();
        let sent = self.stream.async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            if !beside.push(SendAncillaryMessage::ScmRights(&numbers)) {
                return Err(io::Error::other("no space for the descriptors"));
            }
            Ok(sendmsg(&self.stream, &[IoSlice::new(b"c")], &mut beside, SendFlags::NOSIGNAL)?)
        });
        if sent.await? == 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

/// The descriptors that an interpreter gets for one call.
pub(super) struct Descriptors {
    call: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    result: OwnedFd,
}

/// The ends of the pipes that haft reads.
pub(super) struct ReadEnds {
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
    pub(super) result: pipe::Receiver,
}

impl Descriptors {
    /// Creates the descriptors of a call. Its JSON is in an anonymous file, which only the process of the call reads.
    pub(super) fn new(call: &[u8]) -> io::Result<(Self, ReadEnds)> {
        let mut file = std::fs::File::from(memfd_create(c"call", MemfdFlags::CLOEXEC)?);
        file.write_all(call)?;
        let (stdout, out) = pipe()?;
        let (stderr, err) = pipe()?;
        let (result, result_write) = pipe()?;
        let theirs = Self { call: file.into(), stdout: out, stderr: err, result: result_write };
        Ok((theirs, ReadEnds { stdout, stderr, result }))
    }

    fn borrowed(&self) -> [BorrowedFd<'_>; DESCRIPTORS] {
        [self.call.as_fd(), self.stdout.as_fd(), self.stderr.as_fd(), self.result.as_fd()]
    }
}

fn pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((pipe::Receiver::from_owned_fd(read)?, write))
}
