//! The API from outside: a real server on loopback, a real store, real requests.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may fail loudly")]

mod access;
mod audit;
mod author;
mod built_ins;
mod bundles;
mod calls;
mod crowd;
mod definitions;
mod deliveries;
mod document;
mod events;
mod examples;
mod files;
mod full_disk;
mod harness;
mod hostile;
mod import;
mod isolation;
mod life_cycle;
mod login;
mod mcp;
mod mcp_login;
mod mcp_servers;
mod oauth;
mod operation;
mod policy;
mod postgres;
mod robustness;
mod scopes;
mod scripts;
mod search;
#[cfg(feature = "embedding")]
mod search_reference;
mod seeds;
mod tenants;
mod tokens;
mod tools;
mod waiting;
mod warnings;
mod wasm;
