//! A program that takes long to start, as one that is downloaded first: rmcp asks it by the new protocol, gives up after
//! ten seconds and asks by the older one; the answer to the first question, which comes late, must not be taken for one
//! to the second.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport that leaves out the answer to a question which was given up.
pub(super) struct Patient<T> {
    inner: T,
    /// The first question.
    asked: Option<RequestId>,
    /// The same, once another was asked instead.
    given_up: Option<RequestId>,
}

impl<T> Patient<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, asked: None, given_up: None }
    }

    fn is_late(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        id.is_some() && id == self.given_up.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Patient<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => self.asked = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.given_up = self.asked.take(),
                _ => {}
            }
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_late(&message) {
                return Some(message);
            }
            tracing::debug!("an MCP server answered a question that was given up");
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
    async fn a_late_answer_is_left_out() {
        let (mut server, ours) = tokio::io::duplex(10_000);
        let (read, write) = tokio::io::split(ours);
        let mut patient = Patient::new(AsyncRwTransport::new_client(read, write));
        let message = |value: Value| serde_json::from_value(value).unwrap();
        let discover = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}});
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        patient.send(message(discover)).await.unwrap();
        patient.send(message(initialize)).await.unwrap();
        for id in [0, 1] {
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "what?"}});
            server.write_all(format!("{error}\n").as_bytes()).await.unwrap();
        }
        let Some(JsonRpcMessage::Error(error)) = patient.receive().await else { panic!("no error came") };
        assert_eq!(error.id, Some(RequestId::Number(1)));
    }
}
