//! The server in this process; other modules use it only through this one.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use haft_core::catalog::{StorageFailure, StoreError};
use haft_core::secret::Secret;
pub(crate) use haft_server::check_home;
use haft_server::settings::Settings;
use haft_server::{App, StartError, StdioClient, UnknownBundle};
use serde::Serialize;
use tokio::net::TcpListener;
use url::Url;

use crate::error::CliError;

/// How often a start on a full disk checks for free space.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The result of rebuilding the index.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct ReindexReport {
    pub(crate) bundles: usize,
    pub(crate) tools: usize,
    pub(crate) unreadable: usize,
    pub(crate) changed: usize,
}

/// An open home folder.
pub(crate) struct Engine {
    app: Arc<App>,
}

impl Engine {
    /// Opens the home folder.
    pub(crate) async fn open(settings: Settings) -> Result<Self, CliError> {
        let home = settings.home.clone();
        let database = settings.database_url.clone();
        let app = Box::pin(App::open(settings)).await.map_err(|error| match (error, database) {
            (StartError::Store(StoreError::Unavailable { source, .. }), Some(url)) => {
                CliError::Database { address: address(&url), source }
            }
            (error, _) => CliError::Open { home, source: error.into() },
        })?;
        Ok(Self { app })
    }

    /// Opens the home folder; while the disk has no space for that, waits and retries.
    pub(crate) async fn open_with_free_space(settings: Settings) -> Result<Self, CliError> {
        let mut has_warned = false;
        loop {
            match Self::open(settings.clone()).await {
                Err(error) if is_disk_full(&error) => {
                    if !has_warned {
                        let home = settings.home.display();
                        tracing::error!(
                            %home,
                            "the disk is full, and nothing is reserved: haft starts as soon as there is room (1 MiB)"
                        );
                        has_warned = true;
                    }
                    tokio::time::sleep(ROOM_CHECK_INTERVAL).await;
                }
                opened => return opened,
            }
        }
    }

    /// Returns the HTTP API, with every definition compiled.
    pub(crate) async fn router(&self) -> Router {
        self.app.verify().await;
        self.app.router()
    }

    /// Returns the local admin token.
    pub(crate) fn token(&self) -> Secret {
        self.app.local_token()
    }

    /// Returns a login link for a browser; it works once.
    pub(crate) async fn login_link(&self, addr: SocketAddr) -> Result<Secret, CliError> {
        self.app
            .login_link(addr)
            .await
            .map_err(|error| CliError::Open { home: self.app.settings().home.clone(), source: error.into() })
    }

    /// Serves HTTP until `stop`, then waits for running calls and closes the home folder.
    pub(crate) async fn serve(
        &self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> std::io::Result<()> {
        Arc::clone(&self.app).serve(listener, stop).await
    }

    /// Serves an MCP client over standard input and output until it disconnects or `stop`, then closes the home folder.
    pub(crate) async fn serve_stdio(
        &self,
        client: StdioClient,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), UnknownBundle> {
        Arc::clone(&self.app).serve_stdio(client, stop).await
    }

    /// Rebuilds the index from the files.
    pub(crate) async fn reindex(&self) -> Result<ReindexReport, CliError> {
        let report = self.app.reindex().await.map_err(|error| CliError::Open {
            home: self.app.settings().home.clone(),
            source: error.into(),
        })?;
        Ok(ReindexReport {
            bundles: report.bundles,
            tools: report.tools,
            unreadable: report.unreadable,
            changed: report.changed,
        })
    }

    /// Writes pending data and closes the home folder.
    pub(crate) async fn close(&self) {
        self.app.close().await;
    }
}

/// Tells whether the home folder cannot be opened because its disk is full.
fn is_disk_full(error: &CliError) -> bool {
    let CliError::Open { source, .. } = error else { return false };
    let failed = source.downcast_ref::<StartError>();
    matches!(
        failed,
        Some(StartError::Store(StoreError::Unavailable { failure: StorageFailure::DiskFull, .. }))
    )
}

/// Returns host and port of a database URL, without credentials.
fn address(url: &Secret) -> String {
    let Ok(url) = Url::parse(url.expose()) else { return "an invalid URL".to_owned() };
    format!("{}:{}", url.host_str().unwrap_or("localhost"), url.port().unwrap_or(5432))
}
