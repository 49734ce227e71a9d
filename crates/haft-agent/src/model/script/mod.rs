//! Scripted models: a YAML file of turns instead of a provider, for demos, tests and trials without a network.
//!
//! A script has no state: which turn answers follows from the request alone, so that a conversation goes on after a
//! restart.

mod choose;
mod parse;
mod play;
mod script_file;

#[cfg(test)]
mod script_tests;

pub use play::Scripted;
pub use script_file::{Script, ScriptError};
