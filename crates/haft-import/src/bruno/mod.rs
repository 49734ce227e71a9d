//! Reads Bruno collections: folders of `.bru` files.

mod bru;
#[cfg(test)]
mod bruno_tests;
mod read;

pub use read::read;
