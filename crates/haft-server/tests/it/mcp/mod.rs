//! `/mcp` from outside, message by message, in both eras of the protocol.

mod access;
mod approvals;
mod apps;
pub(crate) mod client;
mod edge;
mod modern;
mod pipe;
mod sessions;
mod skills;
