//! MCP for haft: its tools served to any MCP client, and the tools of any MCP server called by it.
//!
//! The only crate that knows rmcp. Every call runs through the one pipeline of haft-runtime.

mod blocks;
pub mod client;
pub mod server;
