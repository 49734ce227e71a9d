//! Tests of haft-core through its public surface.

mod control_lines;
mod fuzz;
mod github;
mod roundtrip;
mod strategy;
