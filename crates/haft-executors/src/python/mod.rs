//! Python: scripts and the functions of toolsets, forked from warm interpreters inside the sandbox.
//!
//! A call costs a fork, not the start of an interpreter. One warm sandbox serves one tenant and one script or
//! toolset, one call at a time, with the program `server.py`. If a sandbox has no processes of its own, each call
//! starts an interpreter, with the same rules. Packages that a tool declares are in an `environment` of its own.

mod check;
mod environment;
mod executor;
mod interpreters;
mod pool;
mod recipe;
mod request;
mod script;
mod server;
mod toolset;
mod wire;

pub(crate) use environment::Dependencies;
pub use environment::{CollectedEnvironments, EnvironmentKey, PythonEnvironments, PythonSettings};
pub use executor::PythonExecutor;
pub use interpreters::PythonPool;
pub(crate) use script::PythonScript;
