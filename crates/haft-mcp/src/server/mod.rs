//! haft as an MCP server: which tools, skills and pages a client sees, and how requests, calls and results travel.

mod approvals;
mod apps;
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
mod media_type;
mod notifier;
mod packages;
mod page_assets;
mod paging;
mod resources;
mod sessions;
mod skills;
mod stateless;

pub use approvals::{ApprovalDesk, ElicitedDecision};
pub use client_context::{ClientContext, View};
pub use extension::{ExtensionClient, ExtensionError, ExtensionRequest, ExtensionResult, ProtocolExtension};
pub use handler::{McpServer, Settings};
pub use http::HttpService;
pub use lines::{serve_lines, stdio};
pub use packages::{PackageSource, Skill, SkillFile};
