//! Packages from the outside: hostile archives, folders, examples, and properties.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod archives;
mod editor_schema;
mod examples;
mod folders;
mod fuzz;
mod raw_zip;
mod roundtrip;
mod skeleton;
mod skills;
#[path = "../../../haft-definition/tests/it/strategy.rs"]
mod strategy;
