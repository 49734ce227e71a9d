//! Python: scripts and the functions of toolsets, forked from warm interpreters inside the sandbox.
//!
//! A call costs a fork, not the start of an interpreter. One warm sandbox serves one tenant and one script or
//! toolset, one call at a time; `server.py` is what runs in it. Where a sandbox has no processes of its own,
//! each call starts an interpreter, with the same rules.

mod interpreters;
mod pool;
mod recipe;
mod request;
mod server;
mod wire;

pub use interpreters::Interpreters;

#[cfg(test)]
mod server_tests;
