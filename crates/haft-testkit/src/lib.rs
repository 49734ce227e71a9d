//! What haft's tests share: a PostgreSQL of their own, upstream HTTP servers, temporary homes.

pub mod postgres;
pub mod prerequisite;
pub mod smtp;
pub mod soak;
pub mod upstream;
