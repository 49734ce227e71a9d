//! Drops the late response of a program that starts slowly.
//!
//! rmcp first sends `server/discover`, and after ten seconds without a response `initialize`. A late response to the first
//! request must not be read as one to the second.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport that drops the response to an abandoned request.
pub(super) struct StaleResponseFilter<T> {
    inner: T,
    /// The `server/discover` request.
    discover: Option<RequestId>,
    /// The same, once `initialize` was sent instead.
    abandoned: Option<RequestId>,
}

impl<T> StaleResponseFilter<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, discover: None, abandoned: None }
    }

    fn is_stale(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        id.is_some() && id == self.abandoned.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for StaleResponseFilter<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => self.discover = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.abandoned = self.discover.take(),
                _ => {}
            }
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_stale(&message) {
                return Some(message);
            }
            tracing::debug!("dropped a late response of an MCP server");
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::async_rw::AsyncRwTransport;
    use serde_json::{Value, json};
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_late_response_is_dropped() {
        let (mut server, ours) = tokio::io::duplex(10_000);
        let (read, write) = tokio::io::split(ours);
        let mut transport = StaleResponseFilter::new(AsyncRwTransport::new_client(read, write));
        let message = |value: Value| serde_json::from_value(value).unwrap();
        let discover = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}});
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        transport.send(message(discover)).await.unwrap();
        transport.send(message(initialize)).await.unwrap();
        for id in [0, 1] {
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what?"}});
            server.write_all(format!("{error}\n").as_bytes()).await.unwrap();
        }
        let Some(JsonRpcMessage::Error(error)) = transport.receive().await else {
            panic!("no error received")
        };
        assert_eq!(error.id, Some(RequestId::Number(1)));
    }
}
