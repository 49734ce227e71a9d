//! `/mcp` from outside, message by message, in both eras of the protocol.

mod access;
mod client;
mod modern;
mod pipe;
mod sessions;
