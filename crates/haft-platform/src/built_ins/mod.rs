//! The built-in tools of the server: those of haft-builtins, and tools that manage the catalog.
//!
//! Tools that change the catalog run the same code as the routes, with the rights of their caller.

mod create_tool;
mod delete_tool;
mod describe_tool;
mod function_call;
mod install;
mod mcp_call;
mod nested_call;
mod read_skill;
mod retrieval_pipeline;
mod search_tools;

pub use install::{LateServices, install};
