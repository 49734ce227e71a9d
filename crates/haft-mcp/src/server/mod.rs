//! haft as an MCP server: which tools a client sees, and how a call and its outcome travel.

mod compact;
mod content;
mod handler;
mod http;
mod listing;
mod seat;
mod watcher;

pub use handler::{McpServer, Settings};
pub use http::{HttpService, HttpSettings};
pub use seat::{Seat, View};
