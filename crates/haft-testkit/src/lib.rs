//! Helpers shared by haft's tests: PostgreSQL databases, links to cut, SMTP and HTTP servers, prerequisites.

pub mod link;
pub mod postgres;
pub mod prerequisite;
pub mod smtp;
pub mod soak;
pub mod upstream;
