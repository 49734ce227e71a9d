//! `/ws`: a conversation with an agent over one WebSocket.
//!
//! A socket only shows runs: it starts them like a message of a chat, and a run goes on if its socket closes.

mod client_frame;
mod connection;
mod requests;
mod route;
mod server_frame;

pub(crate) use route::router;
