//! The built-in tools, called as the pipeline calls them, against real servers on loopback.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod definitions;
mod fetching;
mod files;
mod harness;
mod mail;
mod requests;
mod searching;
mod whatsapp;
