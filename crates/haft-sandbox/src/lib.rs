//! Runs one process confined: in a namespace of its own, without network, with limits, and gone at the end.
//!
//! The only crate that starts processes. It knows nothing of tools: a
//! [`Command`] says what runs and how it is confined, [`Sandbox::run`] tells what happened.
//!
//! What it does not do: choose the confinement (its caller does), or run anything unconfined. Where an engine
//! cannot give what was asked for, the answer is an error.

mod capture;
mod cgroup;
mod command;
mod ending;
mod engine;
mod error;
mod fds;
mod owner;
mod running;
mod sandbox;
mod seccomp;
mod self_test;
mod settings;
mod spawner;
mod verdicts;

pub use capture::{Capture, CaptureEnd, CapturedOutput, Stream};
pub use command::{Bind, Command, File, Input, Level, Limits, SandboxLayout};
pub use ending::{ExitReason, Limit, ProcessResult};
pub use error::SandboxError;
pub use running::{Running, StdinHandle};
pub use sandbox::Sandbox;
pub use self_test::{Probe, ProbeReport};
pub use settings::{EngineName, Settings};
