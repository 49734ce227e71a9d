//! The executor with real modules, written in the text format.
#![expect(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod bad_modules;
mod cache;
mod commands;
mod files;
mod functions;
mod grants;
mod harness;
mod limits;
mod values;
