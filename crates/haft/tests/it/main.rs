//! The library as a program uses it.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[cfg(feature = "builtins")]
mod built_ins;
mod calls;
mod definitions;
#[cfg(all(feature = "server", feature = "builtins"))]
mod examples;
mod execute;
mod filter;
mod layers;
mod load;
mod macros;
mod macros_lints;
mod macros_schema;
mod macros_ui;
mod register;
mod sandbox;
mod search;
#[cfg(feature = "server")]
mod server;
mod support;
mod watch;
