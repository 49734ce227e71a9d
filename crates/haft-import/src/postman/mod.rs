//! Reads Postman collections, formats 2.0 and 2.1.

#[cfg(test)]
mod postman_tests;
mod read;

pub use read::read;
