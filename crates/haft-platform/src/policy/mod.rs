//! The policy rules of the installation: loading, checking and reloading them, and explaining what they do to a call.

mod explain;
mod state;

pub use explain::{CallExplanation, Considered, ExplainedCaller, explain};
pub use state::{LoadPolicyError, PolicyState, check};
