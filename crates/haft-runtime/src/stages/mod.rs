//! What stands around the execution of a call: one stage per module, each an async function of what is next.

mod execute;
mod next;
mod output;

pub use next::{Next, Stage};
pub use output::Output;
