//! Detects the protocol version of a program, independent of its start time.
//!
//! rmcp sends `server/discover` and, after ten seconds without a response, `initialize`. A program that takes longer to
//! start reads both, and may reject the second. haft therefore probes the version before it initializes the connection.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, DiscoverRequest, DiscoverRequestParams, ErrorCode, JsonRpcMessage, PingRequest,
    ProtocolVersion, RequestId, RequestMetaObject,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, RxJsonRpcMessage, TxJsonRpcMessage,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport;

use super::handler::{NotificationHandler, client_config};

/// After this time without a response, a ping distinguishes a slow start from a program that ignores unknown requests.
const PING_AFTER: Duration = Duration::from_secs(5);
const DISCOVER_ID: &str = "haft-discover";
const PING_ID: &str = "haft-ping";

/// Connects to a program that may still be starting.
pub(super) async fn serve<T: Transport<RoleClient> + 'static>(
    handler: NotificationHandler,
    mut transport: T,
) -> Result<RunningService<RoleClient, NotificationHandler>, ClientInitializeError> {
    let mode = probe(&mut transport).await?;
    serve_client_with_lifecycle(handler, ProbeFilter(transport), mode).await
}

/// Waits for the first response of a program.
async fn probe<T: Transport<RoleClient> + 'static>(
    transport: &mut T,
) -> Result<ClientLifecycleMode, ClientInitializeError> {
    send(transport, discover(), DISCOVER_ID).await?;
    let mut ping_at = Some(tokio::time::Instant::now() + PING_AFTER);
    loop {
        let received = match ping_at {
            None => transport.receive().await,
            Some(at) => {
                if let Ok(received) = tokio::time::timeout_at(at, transport.receive()).await {
                    received
                } else {
                    ping_at = None;
                    send(transport, ClientRequest::PingRequest(PingRequest::default()), PING_ID).await?;
                    continue;
                }
            }
        };
        let closed = || ClientInitializeError::ConnectionClosed("discover response".to_owned());
        if let Some(mode) = lifecycle(&received.ok_or_else(closed)?) {
            return Ok(mode);
        }
    }
}

async fn send<T: Transport<RoleClient> + 'static>(
    transport: &mut T,
    request: ClientRequest,
    id: &str,
) -> Result<(), ClientInitializeError> {
    let message = TxJsonRpcMessage::<RoleClient>::request(request, RequestId::String(id.into()));
    let sent = transport.send(message).await;
    sent.map_err(|error| ClientInitializeError::transport::<T>(error, "send discover request"))
}

fn discover() -> ClientRequest {
    let client = client_config();
    let version = ProtocolVersion::V_2026_07_28;
    let meta = RequestMetaObject::with_client_context(version, client.client_info, client.capabilities);
    let mut request = DiscoverRequest::new(DiscoverRequestParams {});
    request.extensions.insert(meta);
    ClientRequest::DiscoverRequest(request)
}

/// Returns how to initialize a program that sent this message; `None` if the message does not determine it.
fn lifecycle(message: &RxJsonRpcMessage<RoleClient>) -> Option<ClientLifecycleMode> {
    let newest = || ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    match message {
        JsonRpcMessage::Response(response) if is(&response.id, DISCOVER_ID) => Some(newest()),
        JsonRpcMessage::Response(response) if is(&response.id, PING_ID) => {
            Some(ClientLifecycleMode::Initialize)
        }
        JsonRpcMessage::Error(error) => {
            let is_newer = [
                ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
                ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
                ErrorCode::HEADER_MISMATCH,
            ]
            .contains(&error.error.code);
            Some(if is_newer { newest() } else { ClientLifecycleMode::Initialize })
        }
        JsonRpcMessage::Response(_) | JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

fn is(id: &RequestId, own: &str) -> bool {
    matches!(id, RequestId::String(text) if **text == *own)
}

/// Drops late responses to the probe, which rmcp does not know.
struct ProbeFilter<T>(T);

impl<T: Transport<RoleClient>> Transport<RoleClient> for ProbeFilter<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.0.receive().await?;
            let id = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            if !id.is_some_and(|id| is(id, DISCOVER_ID) || is(id, PING_ID)) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::async_rw::AsyncRwTransport;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;

    /// Runs the probe against a program that reads `reads` lines and then writes these messages.
    async fn probed(reads: usize, written: &[Value]) -> Result<ClientLifecycleMode, ClientInitializeError> {
        let (server, ours) = tokio::io::duplex(10_000);
        let (read, write) = tokio::io::split(ours);
        let mut transport = AsyncRwTransport::new_client(read, write);
        let program = async {
            let (read, mut write) = tokio::io::split(server);
            let mut lines = BufReader::new(read).lines();
            for _ in 0..reads {
                lines.next_line().await.unwrap().unwrap();
            }
            for message in written {
                write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
            (lines, write)
        };
        tokio::join!(probe(&mut transport), program).0
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_response_decides() {
        let newest =
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let answer = |id: &str, key: &str, value: Value| json!({"jsonrpc": "2.0", "id": id, key: value});
        let unknown = json!({"code": -32601, "message": "what?"});
        let other = json!({"code": -32022, "message": "unsupported version"});
        let noise = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
        for (reads, written, expected) in [
            (1, vec![noise, answer(DISCOVER_ID, "error", unknown.clone())], &ClientLifecycleMode::Initialize),
            (1, vec![answer(DISCOVER_ID, "result", json!({"supportedVersions": []}))], &newest),
            (1, vec![answer(DISCOVER_ID, "error", other)], &newest),
            // A program that starts slowly reads the ping, too, and responds in order.
            (2, vec![answer(DISCOVER_ID, "error", unknown)], &ClientLifecycleMode::Initialize),
            // A program that ignores unknown requests.
            (2, vec![answer(PING_ID, "result", json!({}))], &ClientLifecycleMode::Initialize),
        ] {
            assert_eq!(probed(reads, &written).await.as_ref().ok(), Some(expected), "{written:?}");
        }
    }
}
