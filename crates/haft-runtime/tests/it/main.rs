//! The integration tests of haft-runtime.

mod exec;
mod files;
mod http;
mod python;
mod stages;
