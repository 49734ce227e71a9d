//! The API client of every command: over HTTP to a running server, otherwise to the same router in this process.

mod connect;
mod events;
mod live;
mod request;
mod suggest;
mod transport;

pub(crate) use connect::{connect, find_server, open, pipe_client, server};
pub(crate) use events::{EventStream, ServerEvent};
pub(crate) use live::{LiveClient, connect_live};
pub(crate) use request::{Body, Request, segment};
pub(crate) use suggest::explain;
pub(crate) use transport::{Client, read_response};
