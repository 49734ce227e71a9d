//! haft as an MCP client: the servers that are configured, kept connected, and called as tools.

mod addresses;
mod clients;
mod connection;
mod executor;
mod filled;
mod handler;
mod http;
mod patient;
mod stderr;
mod stdio;
mod value;

pub use clients::{ClientParts, McpClients, McpHome};
pub use executor::McpExecutor;
