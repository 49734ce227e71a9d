//! `/mcp` from outside, message by message, in both eras of the protocol.

mod access;
mod approvals;
pub(crate) mod client;
mod edge;
mod modern;
mod pipe;
mod sessions;
