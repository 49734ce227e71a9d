//! The REST API of haft over the pipeline and the store.
//!
//! The only crate that knows axum. [`App`] is an opened installation; [`App::router`] is its whole HTTP
//! surface, and [`App::serve`] listens.

mod app;
mod body;
mod definition;
mod docs;
mod error;
mod identity;
mod local_token;
mod metrics;
mod params;
mod reply;
mod request_id;
mod router;
mod routes;
mod secrets;
mod serve;
pub mod settings;
mod view;

pub use app::{App, Extensions, StartError};
pub use haft_runtime::function::Functions;
pub use local_token::LocalTokenError;
