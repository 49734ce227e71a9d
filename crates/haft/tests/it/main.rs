//! The library as a program uses it.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod execute;
mod macros;
mod macros_lints;
mod macros_schema;
