//! A connection for commands that watch runs: to a running server, otherwise to one in this process.
//!
//! A run that waits for a person goes on in the background tasks of a server, so opening the home folder is not enough.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use url::Url;

use super::connect::{http_client, open, server};
use super::transport::Client;
use crate::context::Context;
use crate::error::CliError;

/// How long the server in this process may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A client, and the server in this process if there is no other.
pub(crate) struct LiveClient {
    /// The client.
    pub(crate) client: Client,
    server: Option<LocalServer>,
}

struct LocalServer {
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

/// Connects to the configured or running server, otherwise starts one in this process, on an address of its own.
pub(crate) async fn connect_live(context: &Context) -> Result<LiveClient, CliError> {
    if let Some((base, token)) = server(context).await? {
        return Ok(LiveClient { client: Client::http(http_client(&base)?, base, token), server: None });
    }
    let engine = open(context).await?;
    let listening = CliError::io("listen on a local address");
    let bound = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        std::io::Result::Ok((listener, address))
    };
    let (listener, address) = bound.await.map_err(listening)?;
    let base = Url::parse(&format!("http://{address}"))
        .map_err(|error| CliError::LocalRequest { source: error.into() })?;
    let token = engine.token();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        let stopped = async move {
            let _ = stopped.await;
        };
        engine.serve(listener, stopped).await
    });
    let client = Client::http(http_client(&base)?, base, token);
    Ok(LiveClient { client, server: Some(LocalServer { stop, task }) })
}

impl LiveClient {
    /// Stops the server in this process, if there is one, and closes the home folder.
    pub(crate) async fn close(self) {
        self.client.close().await;
        if let Some(LocalServer { stop, task }) = self.server {
            let _ = stop.send(());
            let _ = tokio::time::timeout(STOP_TIMEOUT, task).await;
        }
    }
}
