//! Tests of haft-core through its public surface.

mod fuzz;
mod roundtrip;
mod strategy;
