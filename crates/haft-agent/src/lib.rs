//! The model side of haft: model providers behind one trait, and the loop that runs an agent.
//!
//! This crate knows no HTTP server, no SQL and no environment: settings and credentials are passed in.

#[cfg(doctest)]
mod guides;
pub mod model;
pub mod run;
