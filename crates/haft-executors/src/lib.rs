//! The executors of haft: one module per kind of implementation, except `function` and `steps`, which only call functions
//! and other tools and are in haft-runtime.
//!
//! Every outgoing connection of a tool goes through [`egress`], every file through [`files`], every process through
//! [`process`]. [`secret_sources`] reads secrets from where the administrator says.

pub mod artifact;
pub mod egress;
pub mod exec;
pub mod files;
pub mod http;
pub mod jsonpath;
mod preview;
pub mod process;
pub mod python;
pub mod retrieval;
pub mod script;
pub mod secret_sources;
