//! Real processes in a real sandbox, in every engine that this machine can run.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod basics;
mod containers;
mod escape;
mod leftovers;
mod mounts;
mod rig;
mod tree;
mod unprivileged;
mod visible;
