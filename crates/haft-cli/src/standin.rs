//! A server without routes, until the real one is there.
#![expect(clippy::unused_self, clippy::unused_async, reason = "the signatures of the real one")]

use haft_core::secret::Secret;
use haft_server::settings::Settings;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
pub(crate) struct App;
impl App {
    pub(crate) async fn open(_: Settings) -> Result<Arc<App>, std::io::Error> {
        Ok(Arc::new(App))
    }
    pub(crate) fn router(self: &Arc<Self>) -> axum::Router {
        axum::Router::new()
    }
    pub(crate) fn local_token(&self) -> Secret {
        Secret::new(String::new())
    }
    pub(crate) fn login_link(&self, addr: SocketAddr) -> String {
        format!("http://{addr}/")
    }
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: tokio::net::TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        axum::serve(listener, self.router()).with_graceful_shutdown(stop).await
    }
    pub(crate) async fn reindex(&self) -> Result<serde_json::Value, std::io::Error> {
        Ok(serde_json::Value::Null)
    }
    pub(crate) async fn close(&self) {}
}
