//! How many calls stand within one another on a thread: a tool that calls itself must not use up the stack, which would
//! end the whole program.

use std::cell::Cell;

use haft_core::outcome::{CallError, ErrorCode};

/// How many calls may stand within one another. In a build that is not optimised a level takes 48 KB of stack, and 61 KB
/// with seven layers around it: together half of the 2 MiB that threads have, which leaves the other half to the tools.
pub(crate) const MAX_DEPTH: u32 = 16;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Returns how many calls are at work around this place.
pub(crate) fn current() -> u32 {
    DEPTH.get()
}

/// Refuses a call of what has this name where too many are at work around it.
pub(crate) fn check(name: &str) -> Result<(), CallError> {
    if current() < MAX_DEPTH {
        return Ok(());
    }
    let message = format!(
        "`{name}` was not run: {MAX_DEPTH} calls stand within one another already, which is the most; a tool that calls \
         itself, directly or by way of others, has to come to an end"
    );
    Err(CallError::new(ErrorCode::TooDeep, message))
}

/// Says how deep the work is that is done until the guard is dropped. Only while it is polled: between two polls the
/// thread does other things.
#[must_use = "it holds until it is dropped"]
pub(crate) fn at(depth: u32) -> At {
    At(DEPTH.replace(depth))
}

/// Brings back the earlier depth when it is dropped.
pub(crate) struct At(u32);

impl Drop for At {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}
