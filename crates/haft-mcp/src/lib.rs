//! MCP for haft: serves haft's tools to MCP clients, and calls the tools of MCP servers.
//!
//! The only crate that depends on rmcp. Every call runs through the pipeline of haft-runtime.

mod blocks;
pub mod client;
pub mod server;
