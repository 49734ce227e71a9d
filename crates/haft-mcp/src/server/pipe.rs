//! The transport of lines: standard input and output, or anything else that carries bytes both ways.

use rmcp::service::{QuitReason, ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::handler::McpServer;
use super::lines::Lines;
use super::seat::ClientContext;

/// Returns what this process reads from and writes to.
pub fn stdio() -> (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static) {
    rmcp::transport::stdio_pipes()
}

impl McpServer {
    /// Serves one client until it goes away, or `ended`. A message may have so many bytes; longer ones are
    /// refused.
    pub async fn serve_pipe<R, W>(
        &self,
        seat: ClientContext,
        (read, write): (R, W),
        max_bytes: usize,
        ended: CancellationToken,
    ) where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let server = self.seated(seat);
        let transport = Lines::new(read, write, max_bytes, server.gone.clone());
        let running = match serve_server_with_ct(server, transport, ended).await {
            Ok(running) => running,
            // Whoever leaves before saying anything has done no harm.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return,
            Err(error) => {
                tracing::warn!(error = %error, "an MCP client did not begin as the protocol says");
                return;
            }
        };
        match running.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => {
                tracing::error!(error = %error, "an MCP connection broke");
            }
            Ok(_) => {}
        }
    }
}
