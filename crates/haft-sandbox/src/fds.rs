//! File descriptors that a child inherits.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

/// Makes an anonymous file with this content, to be read from its start.
pub(crate) fn file_of(name: &CStr, content: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC)?;
    let mut file = File::from(fd);
    file.write_all(content)?;
    let fd = OwnedFd::from(file);
    seek(&fd, SeekFrom::Start(0))?;
    Ok(fd)
}

/// Makes a pipe: the end that is read, the end that is written.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Lets a child inherit the descriptor. Only the spawner does this, just before it starts a child and closes
/// its own copy: no other child can inherit it, because no other thread of this crate starts any.
pub(crate) fn inherit(fd: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfd(fd, FdFlags::empty())?)
}

/// Returns the number by which a child knows the descriptor.
pub(crate) fn number(fd: &OwnedFd) -> String {
    fd.as_raw_fd().to_string()
}

/// Marks every descriptor beyond the standard ones as closed on exec. What the server itself was started with
/// (a shell's open files, a supervisor's pipes) must not reach a sandbox.
#[expect(unsafe_code, reason = "descriptors are known by number only; setting a flag on one is harmless")]
pub(crate) fn close_inherited_on_exec() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2).collect::<Vec<_>>() {
        // SAFETY: a call with a number that is closed meanwhile fails with EBADF and changes nothing.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
