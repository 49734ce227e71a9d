//! The configuration, from four layers: defaults, `haft.toml`, environment, options.
//!
//! One table (`keys`) defines all keys; the sample file and the errors are generated from it, and
//! `docs/configuration.md` is tested against it.

#[cfg(test)]
mod config_tests;
mod effective;
mod error;
mod file;
mod keys;
mod readers;
mod resolve;
mod resolved;
mod sample;
#[cfg(test)]
mod schema;
mod value;

pub(crate) use error::ConfigError;
pub(crate) use readers::parse_log_filter;
pub(crate) use resolve::{Flags, home, resolve};
pub(crate) use resolved::{LogFormat, LogSettings, Resolved};
pub(crate) use sample::sample;
pub(crate) use value::parse_addr;
