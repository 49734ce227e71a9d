//! One command per file.

pub(crate) mod apply;
pub(crate) mod approval;
pub(crate) mod audit;
pub(crate) mod bundle;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod import;
mod import_registry;
pub(crate) mod init;
pub(crate) mod key;
pub(crate) mod limits;
pub(crate) mod login_link;
pub(crate) mod mcp;
mod mcp_import;
pub(crate) mod mcp_server;
pub(crate) mod policy;
pub(crate) mod reindex;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod tool;
pub(crate) mod toolset;
pub(crate) mod webhook;
pub(crate) mod workspace;
