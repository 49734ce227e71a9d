//! The depth of nested calls on a thread. Without a limit, a tool that calls itself would overflow the stack and abort
//! the whole program.
//!
//! Calls that are made through [`haft_core::executor::CallContext::invoke`] carry their depth with them. This one also
//! counts the calls that a function makes on its own thread through a handle of the program.

use std::cell::Cell;

use haft_core::outcome::{CallError, ErrorCode};

/// The maximum depth of nested calls. An unoptimised build uses 48 KB of stack per level, and 61 KB with seven layers:
/// together half of the 2 MiB that threads have, which leaves the other half to the tools.
pub(crate) const MAX_DEPTH: u32 = 16;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Returns the depth of the call that runs on this thread.
pub(crate) fn current() -> u32 {
    DEPTH.get()
}

/// Rejects a call of this tool at a depth beyond the limit.
pub(crate) fn check(tool: &str, depth: u32) -> Result<(), CallError> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    let message = format!(
        "call depth limit ({MAX_DEPTH}) exceeded: `{tool}` was not run; check whether the tools call each other in a loop"
    );
    Err(CallError::new(ErrorCode::TooDeep, message))
}

/// Sets the depth of this thread until the guard is dropped. It holds for one poll only: between two polls the thread
/// runs other tasks.
#[must_use = "the depth holds until the guard is dropped"]
pub(crate) fn enter(depth: u32) -> DepthGuard {
    DepthGuard { outer: DEPTH.replace(depth) }
}

/// Restores the outer depth when dropped.
pub(crate) struct DepthGuard {
    outer: u32,
}

impl Drop for DepthGuard {
    fn drop(&mut self) {
        DEPTH.set(self.outer);
    }
}
