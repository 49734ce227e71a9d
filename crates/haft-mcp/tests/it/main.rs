//! MCP with real processes at the other end.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod client;
mod sessions;
mod stateless;
