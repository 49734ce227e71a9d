//! Tests of haft-core through its public surface.

mod control_lines;
mod fuzz;
mod roundtrip;
mod strategy;
