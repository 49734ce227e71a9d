//! The library as a program uses it.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod execute;
