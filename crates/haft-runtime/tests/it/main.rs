//! The integration tests of haft-runtime.

mod stages;
