//! Tools for LLM agents, embedded in a Rust program.

mod answer;
mod def;
mod error;
mod function;
mod params;
mod schema;
mod tools;
mod unrecorded;

pub use answer::{Answer, Failure, Json};
pub use def::ToolDef;
pub use error::{Reason, RegisterError};
pub use haft_core::executor::CallContext as Context;
pub use haft_core::outcome::{CallError, ErrorCode};
pub use haft_core::problem::Problem;
pub use haft_core::secret::Secret;
pub use params::{Param, Params};
pub use tools::Tools;

/// What the code that `#[tool]` writes needs; not for anyone else.
#[doc(hidden)]
pub mod __private {
    pub use haft_core::Work;
    pub use haft_core::outcome::Outcome;
    pub use schemars;
    pub use serde;
    pub use serde_json;

    pub use crate::answer::{FromFailing, FromPlain, Returned};
    pub use crate::function::{Typed, TypedBlocking};
}
