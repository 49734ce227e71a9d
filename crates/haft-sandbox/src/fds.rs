//! File descriptors that a child inherits.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Makes an anonymous file with this content, to be read from its start.
pub(crate) fn file_of(name: &CStr, content: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC)?;
    let mut file = File::from(fd);
    file.write_all(content)?;
    let fd = OwnedFd::from(file);
    seek(&fd, SeekFrom::Start(0))?;
    Ok(fd)
}

/// Creates a pipe: read end, write end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Lets a child inherit a descriptor. Only the spawner does this, immediately before it starts a child, so no other child
/// can inherit it.
pub(crate) fn inherit(fd: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfd(fd, FdFlags::empty())?)
}

/// Watches a descriptor for input.
#[expect(unsafe_code, reason = "the runtime cannot know that a descriptor stays the same")]
pub(crate) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, and the same descriptor, for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// Returns the number of a descriptor.
pub(crate) fn number(fd: &OwnedFd) -> String {
    fd.as_raw_fd().to_string()
}

/// Marks all descriptors except the standard ones as close-on-exec, so that descriptors which the server inherited or a
/// library opened do not reach a sandbox.
#[expect(unsafe_code, reason = "descriptors are known by number only; setting a flag on one is harmless")]
pub(crate) fn close_others_on_exec() {
    const FIRST: u32 = 3;
    // SAFETY: numbers only. What this process has open stays open.
    let marked =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0;
    if marked {
        return;
    }
    // Before Linux 5.11, one by one.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for number in numbers.filter(|number| *number >= FIRST).collect::<Vec<_>>() {
        // SAFETY: a call with a number that is closed meanwhile fails with EBADF and changes nothing.
        unsafe { libc::fcntl(number.cast_signed(), libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
