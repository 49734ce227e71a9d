//! The server inside this process: the only file that touches it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use haft_core::secret::Secret;
use haft_server::settings::Settings;
use haft_server::{App, StdioClient, UnknownBundle};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::error::CliError;

/// An opened home folder.
pub(crate) struct Engine {
    app: Arc<App>,
}

impl Engine {
    /// Opens the home folder and everything in it.
    pub(crate) async fn open(settings: Settings) -> Result<Self, CliError> {
        let home = settings.home.clone();
        let app = App::open(settings).await;
        Ok(Self { app: app.map_err(|error| CliError::Open { home, source: error.into() })? })
    }

    /// Returns the whole HTTP surface, with every definition looked at.
    pub(crate) async fn router(&self) -> Router {
        self.app.verify().await;
        self.app.router()
    }

    /// Returns a token for requests of this process.
    pub(crate) fn token(&self) -> Secret {
        self.app.local_token()
    }

    /// Returns the link that logs a browser in.
    pub(crate) fn login_link(&self, addr: SocketAddr) -> String {
        self.app.login_link(addr)
    }

    /// Answers requests until `stop`, then lets running calls end and closes the home folder.
    pub(crate) async fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> std::io::Result<()> {
        Arc::clone(&self.app).serve(listener, stop).await
    }

    /// Serves the MCP client at the standard input and output until it goes away or `stop`, then closes the home folder.
    pub(crate) async fn serve_stdio(
        &self,
        client: StdioClient,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), UnknownBundle> {
        Arc::clone(&self.app).serve_stdio(client, stop).await
    }

    /// Builds the index anew from the files.
    pub(crate) async fn reindex(&self) -> Result<Value, CliError> {
        let report = self.app.reindex().await.map_err(|error| CliError::Open {
            home: self.app.settings().home.clone(),
            source: error.into(),
        })?;
        Ok(json!({
            "bundles": report.bundles,
            "tools": report.tools,
            "unreadable": report.unreadable,
            "changed": report.changed,
        }))
    }

    /// Writes out what is pending and lets go of the home folder.
    pub(crate) async fn close(&self) {
        self.app.close().await;
    }
}
