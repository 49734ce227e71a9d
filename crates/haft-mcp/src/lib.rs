//! MCP for haft: its tools served to any MCP client.
//!
//! The only crate that knows rmcp. Every call runs through the one pipeline of haft-runtime.

pub mod server;
