//! The MCP clients whose configuration `haft connect` writes: where it is, what an entry looks like, and how it is changed
//! without touching anything else in it.

mod client;
mod endpoint;
mod json;
mod settings_file;
mod toml;
mod yaml;

pub(crate) use client::McpClient;
pub(crate) use endpoint::{Endpoint, url_of_entry};
pub(crate) use settings_file::{SettingsError, SettingsFile};
