//! Turns descriptions that other programs write into definitions of tools and MCP servers.
//!
//! No I/O: callers pass text and receive values. Everything read is bounded, because it comes from outside.

pub mod curl;
pub mod mcp_client_config;
pub mod openapi;
