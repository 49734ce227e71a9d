//! The integration tests of haft-import.

mod github;
