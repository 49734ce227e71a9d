//! The streamable HTTP transport.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::handler::McpServer;

/// Answers HTTP requests. Whoever calls it has put a [`Seat`](super::Seat) into the request's extensions.
pub type HttpService = StreamableHttpService<McpServer, LocalSessionManager>;

/// What the transport has to know.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Hosts that a request may name, against DNS rebinding; empty means that all may.
    pub allowed_hosts: Vec<String>,
    /// Origins that a browser may come from.
    pub allowed_origins: Vec<String>,
    /// The most bytes of a message.
    pub max_body_bytes: usize,
    /// Ends every stream.
    pub stopping: CancellationToken,
}

impl McpServer {
    /// Returns the service of this server.
    pub fn http(&self, settings: HttpSettings) -> HttpService {
        let server = self.clone();
        let mut config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(settings.max_body_bytes)
            .with_cancellation_token(settings.stopping);
        config = if settings.allowed_hosts.is_empty() {
            config.disable_allowed_hosts()
        } else {
            config.with_allowed_hosts(settings.allowed_hosts)
        };
        config = config.with_allowed_origins(settings.allowed_origins).enforce_origin_validation();
        let sessions = Arc::new(LocalSessionManager::default());
        StreamableHttpService::new(move || Ok(server.connection()), sessions, config)
    }
}
