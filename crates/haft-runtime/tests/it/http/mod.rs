//! The http executor against real servers on loopback.

mod answers;
mod auth;
mod definitions;
mod egress;
mod harness;
mod oauth;
mod requests;
mod retries;
