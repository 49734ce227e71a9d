//! The integration tests of haft-executors.

mod exec;
mod files;
mod http;
mod python;
mod secret_sources;
