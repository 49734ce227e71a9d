//! The wire types of the REST API and their schemas. The server writes them; clients such as the command line read them.
//!
//! Clients ignore fields that these types do not have, because the server may be newer. A missing field, or a field of
//! another type, is an error that names the field.
//!
//! Responses use plain data types of haft-core directly. This crate converts other types of haft-core (`From`, `new`);
//! haft-server converts the types of all other crates.

#![expect(
    missing_docs,
    reason = "fields whose names say what they are have no description in the API document either"
)]

pub mod account;
pub mod agent;
pub mod application;
pub mod apply;
pub mod approval;
pub mod artifact;
pub mod audit;
pub mod bundle;
pub mod call;
pub mod chat;
pub mod credential;
pub mod error;
pub mod event;
pub mod import;
pub mod installation;
pub mod limit;
pub mod mcp_server;
pub mod model;
pub mod people;
pub mod pipeline;
pub mod policy;
pub mod read;
pub mod reply;
pub mod resource;
pub mod revision;
pub mod run;
pub mod run_event;
pub mod search;
pub mod session;
pub mod sign_on;
pub mod tenant;
pub mod token;
pub mod tool;
pub mod tool_summary;
pub mod toolset;
pub mod trial;
pub mod usage;
pub mod validation;
pub mod webhook;
pub mod workspace;
