//! The child of the engine `landlock` between fork and exec.
//!
//! The child of a multi-threaded program may only make system calls until it executes its own program, because another
//! thread may have held any lock during the fork. So this module does not allocate or lock, and uses only thin wrappers
//! of libc.
#![expect(unsafe_code, reason = "system calls that no safe library offers between fork and exec")]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::ptr;

use libc::{c_int, c_long, c_ulong, pid_t};
use rustix::process::Resource;
use seccompiler::BpfProgram;

/// Everything the child needs, created before the fork.
pub(crate) struct Confinement {
    /// Closed by the server to kill the tree, and by the kernel when the server ends.
    pub(crate) lifeline: OwnedFd,
    /// The control groups; a process joins by writing `0`.
    pub(crate) join_files: Vec<OwnedFd>,
    /// The limits of each process: soft, hard.
    pub(crate) limits: Vec<(Resource, u64, u64)>,
    /// The Landlock rules.
    pub(crate) rules: OwnedFd,
    /// The system call filters.
    pub(crate) filters: Vec<BpfProgram>,
}

/// Returns the Landlock version of the kernel; less than 1 if unsupported.
pub(crate) fn landlock_version() -> i32 {
    const ASK_VERSION: c_ulong = 1;
    // SAFETY: queries a number; the pointer is null, as this query requires.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<libc::c_void>(), 0_usize, ASK_VERSION)
    };
    i32::try_from(version).unwrap_or(0)
}

impl Confinement {
    /// Forks into a supervisor, which never returns, and the process that executes the program.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // SAFETY: system calls on descriptors and memory that this value owns.
        unsafe {
            check(libc::setsid())?;
            // Orphans of the tree become children of the supervisor, which waits for them.
            check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))?;
            let supervisor = libc::getpid();
            // Not `fork`, which would run handlers of libraries.
            let pid = libc::syscall(libc::SYS_clone, c_long::from(libc::SIGCHLD), 0, 0, 0, 0);
            if pid < 0 {
                return Err(io::Error::last_os_error());
            }
            #[expect(clippy::cast_possible_truncation, reason = "a process number has 32 bits")]
            let pid = pid as pid_t;
            if pid > 0 {
                supervise(pid, self.lifeline.as_raw_fd());
            }
            check(libc::setpgid(0, 0))?;
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
            if libc::getppid() != supervisor {
                libc::_exit(128 + libc::SIGKILL);
            }
            self.confine()
        }
    }

    unsafe fn confine(&self) -> io::Result<()> {
        for file in &self.join_files {
            // SAFETY: one byte of a constant.
            if unsafe { libc::write(file.as_raw_fd(), b"0".as_ptr().cast(), 1) } != 1 {
                return Err(io::Error::last_os_error());
            }
        }
        for (resource, soft, hard) in &self.limits {
            let limit = libc::rlimit { rlim_cur: *soft, rlim_max: *hard };
            // SAFETY: the structure lives through the call.
            check(unsafe { libc::setrlimit(*resource as _, &raw const limit) })?;
        }
        // SAFETY: numbers only; rules and filters live in this value.
        unsafe {
            drop_capabilities()?;
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            if libc::syscall(libc::SYS_landlock_restrict_self, self.rules.as_raw_fd(), 0) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        for filter in &self.filters {
            let length =
                u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
            let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut().cast() };
            // SAFETY: the kernel copies the program, whose steps have the layout of `sock_filter`.
            let loaded = unsafe {
                libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
            };
            if loaded != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

/// Drops all capabilities.
unsafe fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [0_u32; 6];
    // SAFETY: numbers, and two structures of the kernel's layout that live through the call.
    unsafe {
        // Errors are harmless: `no_new_privs` prevents gaining capabilities.
        for capability in 0..64 {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Waits for the process, kills its group, reaps all remaining children, and exits with the code of the process.
unsafe fn supervise(process: pid_t, lifeline: RawFd) -> ! {
    // SAFETY: system calls on numbers, and on structures that live through them.
    unsafe {
        // Closes the output streams, so that their readers see the end.
        close_all_but(lifeline);
        libc::setpgid(process, process);
        #[expect(clippy::cast_possible_truncation, reason = "a descriptor has 32 bits")]
        let handle = libc::syscall(libc::SYS_pidfd_open, process, 0) as RawFd;
        let watch = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut watched = [watch(lifeline), watch(handle)];
        loop {
            libc::poll(watched.as_mut_ptr(), 2, -1);
            let [line, end] = &mut watched;
            if line.revents != 0 {
                libc::kill(-process, libc::SIGKILL);
                libc::kill(process, libc::SIGKILL);
                // A closed pipe stays readable; without this the loop would spin.
                line.fd = -1;
            }
            if end.revents != 0 {
                break;
            }
        }
        // The group id is not reused before its leader is reaped.
        libc::kill(-process, libc::SIGKILL);
        let mut status = 0;
        libc::waitpid(process, &raw mut status, 0);
        while libc::waitpid(-1, ptr::null_mut(), 0) > 0 || *libc::__errno_location() == libc::EINTR {}
        let code =
            if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
        libc::_exit(code)
    }
}

unsafe fn close_all_but(kept: RawFd) {
    let kept = kept.unsigned_abs();
    // SAFETY: closes descriptors that nothing uses any more in this process.
    unsafe {
        if kept > 0 {
            libc::syscall(libc::SYS_close_range, 0, kept - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, kept + 1, u32::MAX, 0);
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
