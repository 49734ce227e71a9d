//! The REST client behind every command: over HTTP to a running server, else to the same router in this process.

mod connect;
mod request;
mod transport;

pub(crate) use connect::{connect, find_server, open, pipe_client, server};
pub(crate) use request::{Body, Request, segment};
pub(crate) use transport::{Client, read_answer};
