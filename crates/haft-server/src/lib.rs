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

mod actor_view;
mod agent_view;
mod app;
mod audit_layer;
mod authentication;
mod body;
mod browser;
mod call_events;
mod docs;
mod document;
mod edge;
mod error;
mod event_stream;
mod html_page;
mod import_request;
mod mcp;
mod oauth_answer;
mod open_stream;
mod openai;
mod package_view;
mod page_text;
mod params;
mod query;
mod reply;
mod report_view;
mod request_headers;
mod resource_view;
mod router;
mod routes;
mod run_stream;
mod run_view;
mod schemas;
mod serve;
mod socket;
mod sse;
mod step_up;
mod ui;
mod view;

pub use app::{App, Extensions};
pub use haft_mcp::server::{
    ExtensionClient, ExtensionError, ExtensionRequest, ExtensionResult, ProtocolExtension,
};
pub use haft_platform::local_token::LocalTokenError;
pub use haft_platform::{StartError, settings};
pub use haft_runtime::function::Functions;
pub use mcp::{StdioClient, UnknownBundle};
pub use report_view::check_home;
