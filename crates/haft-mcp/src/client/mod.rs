//! haft as an MCP client: the servers that are configured, kept connected, and called as tools.

mod addresses;
mod clients;
mod connection;
mod direct;
mod executor;
mod filled;
mod handler;
mod http;
mod listing;
mod logins;
mod oauth;
mod opening;
mod overlong;
mod pace;
mod patient;
mod stderr;
mod stdio;
mod value;
mod words;

pub use clients::{ClientParts, McpClients, McpServerStore};
pub use executor::McpExecutor;
pub use oauth::{Callback, LoginResult, OAuthError};

/// The newest version of the protocol that is spoken.
const NEWEST_PROTOCOL: &str = "2026-07-28";
