//! The API client of every command: over HTTP to a running server, otherwise to the same router in this process.

mod connect;
mod device_login;
mod events;
mod live;
mod request;
mod suggest;
mod transport;

pub(crate) use connect::{connect, connect_to, connect_to_server, open, pipe_client, running_server, server};
pub(crate) use device_login::{DeviceLogin, DeviceLoginError};
pub(crate) use events::{EventStream, ServerEvent};
pub(crate) use live::{LiveClient, connect_live};
pub(crate) use request::{Body, Request, segment, tool_segment};
pub(crate) use suggest::explain;
pub(crate) use transport::{Client, read_response};
