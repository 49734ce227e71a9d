//! The integration tests of haft-runtime.

mod files;
mod http;
mod python;
mod stages;
