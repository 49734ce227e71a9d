//! Runs one process in a sandbox: in its own namespaces, without network, with resource limits.
//!
//! The only crate that starts processes. It knows nothing about tools: a [`Command`] describes the process and its
//! confinement, and [`Sandbox::run`] returns the result.
//!
//! The caller chooses the confinement. If an engine cannot provide it, the call fails; nothing runs unconfined.

mod capture;
mod cgroup;
mod command;
mod ending;
mod engine;
mod error;
mod fds;
mod owner;
mod probe_cache;
mod running;
mod sandbox;
mod seccomp;
mod self_test;
mod settings;
mod spawner;

pub use capture::{Capture, CaptureEnd, CapturedOutput, Stream};
pub use command::{Bind, Command, File, Input, Level, Limits, SandboxLayout};
pub use ending::{ExitReason, Limit, ProcessResult};
pub use error::SandboxError;
pub use running::{ChildHandle, Running, StdinHandle};
pub use sandbox::Sandbox;
pub use self_test::{Probe, ProbeReport};
pub use settings::{EngineName, Settings};
