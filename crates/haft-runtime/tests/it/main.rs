//! The integration tests of haft-runtime.

mod http;
