//! haft as an MCP server: which tools a client sees, and how a call and its outcome travel.

mod batch;
mod calls;
mod changes;
mod compact;
mod content;
pub mod fixtures;
mod handler;
mod http;
mod lines;
mod listing;
mod peek;
mod pipe;
mod plain;
mod seat;
mod sessions;
mod watcher;

pub use handler::{McpServer, Settings};
pub use http::HttpService;
pub use pipe::stdio;
pub use seat::{ClientContext, View};
