//! The http executor against real servers on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot be set up fails"
)]

mod auth;
mod definitions;
mod egress;
mod harness;
mod oauth;
mod requests;
mod responses;
mod retries;
