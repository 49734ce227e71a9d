//! The binary as people and programs use it.

mod agents;
mod apply;
mod built_ins;
mod client;
mod crash;
mod crash_of_runs;
mod crash_of_waiting_calls;
mod crash_of_workspaces;
mod harness;
mod help;
mod home;
mod import;
mod mcp;
mod mcp_auth;
mod mcp_peers;
mod mcp_real;
mod mcp_server;
mod policy;
mod serve;
mod tenants;
mod tools;
mod tour;
mod upstream;
mod usage;
