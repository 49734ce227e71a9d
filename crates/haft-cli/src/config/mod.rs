//! Settings from four layers: built-in defaults, then `haft.toml`, then the environment, then flags.
//!
//! One table of keys (`keys`) says what can be set; the sample file, the
//! reference in `docs/configuration.md` and every error come from it.

#[cfg(test)]
mod config_tests;
mod error;
mod file;
mod keys;
mod resolve;
mod sample;
mod value;

pub(crate) use error::ConfigError;
pub(crate) use keys::{LogFormat, LogSettings, Resolved};
pub(crate) use resolve::{Flags, home, resolve};
pub(crate) use sample::sample;
pub(crate) use value::parse_addr;
