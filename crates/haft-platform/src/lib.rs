//! An installation of haft without HTTP: one module per capability, over the pipeline and the store.
//!
//! [`Installation`] is an open installation: it builds the [`Context`] that the capabilities share, and the services above
//! it. Every surface (REST, MCP, WebSocket, the endpoint for OpenAI clients, built-in tools)
//! calls the same functions: they check roles and rules, change the store, and note the change for the audit log.
//! Nothing here knows a web framework, and handlers of haft-server know nothing of the store's transactions.

#![expect(
    missing_docs,
    reason = "for crates of this workspace only: fields whose names say it all have no comment"
)]

pub mod access;
pub mod access_records;
mod account_exchange;
mod account_source;
pub mod accounts;
pub mod agents;
pub mod answers;
pub mod applications;
pub mod applying;
pub mod approvals;
pub mod artifact_host;
pub mod artifacts;
pub mod attempt_limit;
pub mod audit;
pub mod bearer;
pub mod built_ins;
pub mod bundles;
pub mod chats;
pub mod client_documents;
pub mod context;
pub mod credential_references;
pub mod credentials;
pub mod definition;
pub mod device_logins;
pub mod doctor;
pub mod error;
pub mod events;
pub mod execution_resources;
pub mod field_changes;
pub mod home;
pub mod identity;
pub mod importing;
pub mod in_service;
mod installation;
pub mod issuers;
pub mod known_agents;
mod known_members;
pub mod known_names;
pub mod late;
pub mod local_token;
pub mod login;
pub mod maintenance;
pub mod mcp_approvals;
pub mod mcp_connections;
pub mod mcp_definition;
pub mod mcp_resources;
pub mod mcp_servers;
pub mod metrics;
pub mod models;
pub mod multipart;
pub mod open_sessions;
pub mod people;
pub mod permissions;
pub mod pipelines;
pub mod planned_references;
pub mod policy;
pub mod policy_explanation;
pub mod python_packages;
mod random;
pub mod rate_text;
pub mod rendering;
pub mod request_id;
pub mod resource_kind;
pub mod resource_usage;
pub mod resources;
pub mod results;
pub mod retrieval;
mod rights;
pub mod runs;
pub mod scim;
pub mod search;
pub mod secret_command;
pub mod secrets;
pub mod sent_text;
pub mod settings;
mod shard_map;
pub mod sign_on;
mod start_error;
mod stored_login;
pub mod stream_limit;
pub mod supervisor;
pub mod tenant_files;
pub mod tenants;
pub mod tokens;
pub mod tools;
pub mod toolsets;
mod verified_tokens;
pub mod viewer;
pub mod warnings;
pub mod webhooks;
pub mod workspaces;

pub use context::Context;
pub use installation::{Extensions, Installation};
pub use start_error::StartError;
