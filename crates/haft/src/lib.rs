//! Tools for LLM agents, embedded in a Rust program.
//!
//! [`Tools`] holds functions of the program ([`ToolDef`]) and definitions from files, calls them by name with checked
//! arguments, and lists them in the form of every model's API. Everything works without a server, a database or a
//! home folder.

mod agree;
mod answer;
mod args;
mod builder;
mod call;
mod def;
mod error;
mod files;
mod function;
#[cfg(doctest)]
mod guides;
mod load;
pub mod middleware;
mod mock;
mod params;
mod properties;
mod report;
mod resources;
mod schema;
mod secrets;
#[cfg(feature = "server")]
pub mod server;
mod set;
mod tools;
mod watch;

pub use answer::{Answer, Failure, Json};
pub use args::Args;
pub use builder::Builder;
pub use call::{Call, Reply};
pub use def::ToolDef;
pub use error::{BuildError, FilterError, Reason, RegisterError};
pub use haft_core::BoxFuture;
pub use haft_core::catalog::FileForm;
pub use haft_core::executor::{CallContext as Context, CallEvent};
pub use haft_core::name::TenantId;
pub use haft_core::outcome::{CallError, ErrorCode};
pub use haft_core::problem::Problem;
pub use haft_core::secret::{Secret, SecretError, SecretSource};
pub use haft_definition::export::{Definition, Format};
pub use mock::{Expectation, Fails, Matches, MockTools};
pub use params::{Param, Params};
pub use report::{Fault, LoadError, LoadReport, Loaded};
pub use tools::Tools;
pub use watch::Watch;

/// Makes a tool of a function: its name, its description and its parameters are those of the function.
///
/// The function stays what it is. Beside it there is `tool()` under its name, which [`Tools::register`] takes:
///
/// ```
/// use haft::{Tools, tool};
/// use serde_json::json;
///
/// /// Greets someone by name.
/// #[tool]
/// fn greet(
///     /// Whom to greet
///     name: &str,
///     /// How often
///     #[arg(default = 1, range = 1..=5)]
///     times: usize,
/// ) -> String {
///     vec![format!("Hello, {name}!"); times].join(" ")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tools = Tools::new();
/// tools.register(greet::tool())?;
/// let args = json!({"name": "Ada", "times": 2});
/// assert_eq!(tools.execute("greet", args).await?, "Hello, Ada! Hello, Ada!");
/// assert_eq!(greet("Ada", 1), "Hello, Ada!");
/// # Ok(())
/// # }
/// ```
///
/// - The description is the first paragraph of the doc comment; those of the parameters are theirs.
/// - An `async fn` runs where it is called; any other function may block, and runs on threads of its own.
/// - A parameter is whatever derives [`serde::Deserialize`] and [`schemars::JsonSchema`], or a reference to
///   it. `Option` makes it optional. `#[arg(default = …)]`, `#[arg(range = 1..=50)]`, `#[arg(one_of("a", "b"))]` and
///   `#[arg(rename = "…")]` say more. Arguments that are no parameter are refused.
/// - [`Args`]`<T>` takes all arguments as one type; `&`[`Context`] or `Context` is the context of the call.
/// - It returns anything that is [`serde::Serialize`], or a `Result` of that with any error that can be displayed;
///   [`Failure`] says also whether a repetition may help.
/// - `#[tool(name = "…", description = "…", pure, timeout = "30s", retry(attempts = 3, backoff = "1s"),
///   max_parallel = 4, elevated, crate = path)]`: each as the method of [`ToolDef`] of that name; `crate` says where
///   haft is, in a program that has it under another name.
pub use haft_macros::tool;

/// What the code that `#[tool]` writes needs; not for anyone else.
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde_json::Value;

    pub use crate::answer::{Failing, FailingKind, Plain, PlainKind, Returned};
    pub use crate::args::{Args, Given, asynchronous, blocking};
    pub use crate::properties::{Properties, Property, Sample, Sampled, Unsampled};
}
