//! haft as an MCP server: which tools a client sees, and how requests, calls and results travel.

mod approvals;
mod batch;
mod calls;
mod changes;
mod client_context;
mod compact;
mod content;
mod direct_response;
mod envelope;
mod extension;
mod handler;
mod http;
mod lines;
mod listing;
mod notifier;
mod sessions;
mod stateless;

pub use approvals::{ApprovalDesk, ElicitedDecision};
pub use client_context::{ClientContext, View};
pub use extension::{ExtensionClient, ExtensionError, ExtensionRequest, ExtensionResult, ProtocolExtension};
pub use handler::{McpServer, Settings};
pub use http::HttpService;
pub use lines::{serve_lines, stdio};
