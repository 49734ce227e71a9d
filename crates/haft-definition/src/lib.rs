//! Reading and writing definitions of tools, and of the agents, pipelines and artifacts beside them.
//!
//! Every input form becomes one [`ToolSpec`](haft_core::spec::ToolSpec) here, and every output form is written from one. No
//! I/O except in [`folder`], which reads and watches definition files: everywhere else callers pass text and receive
//! values.

pub mod agent;
pub mod check;
pub mod code_artifact;
mod credential;
pub mod defaults;
pub mod dialect;
pub mod editor_schema;
pub mod export;
pub mod folder;
pub mod mcp_import;
pub mod pipeline;
pub mod policy;
pub mod scan;
pub mod steps;
