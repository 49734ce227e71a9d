//! The HTTP API of haft, on top of the pipeline and the store.
//!
//! The only crate that uses axum. [`App`] is an open installation; [`App::router`] is its whole HTTP
//! surface, and [`App::serve`] serves it. A program serves its own functions like this:
//!
//! ```no_run
//! use haft_server::settings::Settings;
//! use haft_server::{App, Extensions, Functions};
//! use serde_json::{Value, json};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let functions = Functions::default().with_async("greet", |args| async move {
//!     let name = args.get("name").and_then(Value::as_str).unwrap_or("you");
//!     Ok(json!(format!("Hello, {name}!")))
//! });
//! let settings = Settings::for_home("haft-home".into());
//! let listener = tokio::net::TcpListener::bind(settings.addr).await?;
//! let app = App::open_with(settings, Extensions { functions, ..Extensions::default() }).await?;
//! app.serve(listener, async { drop(tokio::signal::ctrl_c().await) }).await?;
//! # Ok(())
//! # }
//! ```

mod access;
mod agents;
mod app;
mod applying;
mod approvals;
mod artifacts;
mod audit;
mod audit_layer;
mod authentication;
mod body;
mod browser;
mod built_ins;
mod bundles;
mod call_events;
mod chats;
mod credential_references;
mod credentials;
mod definition;
mod docs;
pub mod doctor;
mod document;
mod edge;
mod error;
mod error_response;
mod events;
mod execution_resources;
mod identity;
mod importing;
mod local_token;
mod login;
mod maintenance;
mod mcp;
mod mcp_approvals;
mod mcp_connections;
mod mcp_definition;
mod mcp_resources;
mod mcp_servers;
mod metrics;
mod openai;
mod params;
mod permissions;
mod planned_references;
mod policy;
mod python_packages;
mod query;
mod rendering;
mod reply;
mod request_headers;
mod request_id;
mod resource_view;
mod resources;
mod results;
mod retrieval;
mod router;
mod routes;
mod runs;
mod search;
mod secrets;
mod sent_text;
mod serve;
pub mod settings;
mod socket;
mod tenant_files;
mod tenants;
mod tokens;
mod tools;
mod toolsets;
mod ui;
mod view;
mod viewer;
mod warnings;
mod webhooks;
mod workspaces;

pub use app::{App, Extensions, StartError};
pub use haft_mcp::server::{
    ExtensionClient, ExtensionError, ExtensionRequest, ExtensionResult, ProtocolExtension,
};
pub use haft_runtime::function::Functions;
pub use local_token::LocalTokenError;
pub use mcp::{StdioClient, UnknownBundle};
