//! The built-in tools of the server: those of haft-builtins, and those that work on the catalog itself.
//!
//! What changes the catalog goes through the same code as the routes, as whoever calls the tool.

mod create_tool;
mod delete_tool;
mod function_call;
mod install;
mod late;
mod mcp_call;
mod search_tools;
mod through;

pub(crate) use install::{Installed, install};
pub(crate) use late::Late;
