//! Helpers shared by haft's tests: PostgreSQL databases, SMTP and HTTP servers, prerequisites.

pub mod postgres;
pub mod prerequisite;
pub mod smtp;
pub mod soak;
pub mod upstream;
