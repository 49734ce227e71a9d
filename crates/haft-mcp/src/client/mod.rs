//! haft as an MCP client: connects to MCP servers, keeps the connections alive, and calls their tools.

mod ad_hoc;
mod call_timer;
mod clients;
mod config;
mod connection;
mod endpoint;
mod errors;
mod executor;
mod handler;
mod http;
mod line_limit;
mod listing;
mod message_limit;
mod oauth;
mod personal;
mod probe;
mod rate_limit;
mod stateless;
mod stderr;
mod stdio;
mod value;
mod workspace_program;

pub use clients::{ClientParts, McpClients, McpServerStore};
pub use executor::McpExecutor;
pub use oauth::{
    BegunDeviceLogin, BegunLogin, Callback, DevicePoll, OAuthError, ProviderClient, ProviderEndpoints,
    ProviderLogin, finish_login, poll_device_login,
};

/// The newest supported protocol version.
const NEWEST_PROTOCOL: &str = "2026-07-28";
