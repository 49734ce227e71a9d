//! Turns descriptions that other programs write into definitions of tools and MCP servers.
//!
//! No I/O: callers pass text and receive values. Everything read is bounded, because it comes from outside.

pub mod api;
pub mod bruno;
pub mod curl;
pub mod graphql;
pub mod mcp_client_config;
pub mod openapi;
pub mod postman;
mod requests;
