//! Tools for LLM agents, embedded in a Rust program.
//!
//! [`Tools`] holds functions of the program ([`ToolDef`]) and definitions loaded from files. It validates arguments,
//! calls tools by name, and exports their schemas in the format of each model API. It needs no server, database or
//! home folder.

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
mod outcome;
mod params;
mod report;
mod resources;
mod schema;
mod schema_match;
mod search;
mod secrets;
#[cfg(feature = "server")]
pub mod server;
mod set;
mod tools;
mod watch;

pub use args::Args;
pub use builder::Builder;
pub use call::{CallBuilder, CallResponse};
pub use def::ToolDef;
pub use error::{BuildError, FilterError, RegisterError, RegisterErrorKind};
pub use haft_core::BoxFuture;
pub use haft_core::catalog::FileForm;
pub use haft_core::executor::{CallContext as Context, CallEvent};
pub use haft_core::name::TenantId;
pub use haft_core::outcome::{CallError, ErrorCode};
pub use haft_core::problem::Problem;
pub use haft_core::secret::{Secret, SecretError, SecretSource};
pub use haft_definition::export::{Definition, Format};
pub use mock::{Expectation, IntoArgsMatcher, IntoCallError, MockTools};
pub use outcome::{Failure, IntoOutcome, Json};
pub use params::{Param, Params};
pub use report::{LoadError, LoadReport, Loaded, NotReady};
pub use search::SearchHit;
pub use tools::Tools;
pub use watch::WatchGuard;

/// Turns a function into a tool that takes its name, description and parameters from the function.
///
/// The function itself does not change. The macro adds `tool()` under the function's name; pass its result to
/// [`Tools::register`]:
///
/// ```
/// use haft::{Tools, tool};
/// use serde_json::json;
///
/// /// Greets someone by name.
/// #[tool]
/// fn greet(
///     /// The person to greet
///     name: &str,
///     /// The number of repetitions
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
/// - The tool's description is the first paragraph of the function's doc comment. The doc comments of the parameters
///   describe the arguments.
/// - An `async fn` runs on the caller's task. Any other function may block and runs on a blocking thread.
/// - A parameter is any type that implements [`serde::Deserialize`] and [`schemars::JsonSchema`], or a reference to
///   one. `Option` makes it optional. `#[arg(default = …)]`, `#[arg(range = 1..=50)]`, `#[arg(one_of("a", "b"))]` and
///   `#[arg(rename = "…")]` refine it. Unknown arguments are rejected.
/// - [`Args`]`<T>` takes all arguments as one type; `&`[`Context`] or `Context` is the context of the call.
/// - The function returns anything that implements [`serde::Serialize`], or a `Result` of it with any error that
///   implements `Display`. [`Failure`] can also mark the error as retryable.
/// - `#[tool(name = "…", description = "…", pure, timeout = "30s", retry(attempts = 3, backoff = "1s"),
///   max_parallel = 4, elevated, crate = path)]`: each option works like the method of [`ToolDef`] with that name;
///   `crate` is the path of haft if the program depends on it under another name.
pub use haft_macros::tool;

/// Support for the code that `#[tool]` generates; not part of the public API.
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde_json::Value;

    pub use crate::args::{Args, CallArgs, async_function, blocking_function};
    pub use crate::outcome::{ResultConverter, ResultKind, ReturnValue, ValueConverter, ValueKind};
    pub use crate::schema::{DefaultValue, OpaqueDefault, Properties, Property, SerializableDefault};
}
