//! Large responses to requests in a session, as JSON.
//!
//! rmcp responds to a request in a session with a stream of events. Clients limit the size of an event (the official
//! Python client to 1 MiB), but not that of a JSON response.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;

/// How long the beginning of a stream is held back. Shorter than the usual timeouts of clients and proxies: a response
/// that takes longer is an event, whatever its size.
const HOLD_TIMEOUT: Duration = Duration::from_secs(20);
/// The size of a response from which on it is JSON.
const MIN_DIRECT_BYTES: usize = 64 << 10;

tokio::task_local! {
    /// The response to the request that this task handles, once it is known to be sent as JSON.
    static DIRECT: Arc<Mutex<Option<String>>>;
}

/// Handles a request; also returns the response that replaces its stream.
pub(super) async fn collect<F: Future>(handling: F) -> (F::Output, Option<String>) {
    let direct = Arc::<Mutex<Option<String>>>::default();
    let output = DIRECT.scope(Arc::clone(&direct), handling).await;
    let message = direct.lock().unwrap_or_else(PoisonError::into_inner).take();
    (output, message)
}

/// Holds back a stream until its first message; if that is a large response, it is passed to [`collect`] instead.
pub(super) async fn divert(
    messages: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    let mut messages = Box::pin(messages);
    let mut held = Vec::new();
    let hold = async {
        while let Some(message) = messages.next().await {
            let is_empty = message.message.is_none();
            held.push(message);
            if !is_empty {
                return;
            }
        }
    };
    let is_complete = tokio::time::timeout(HOLD_TIMEOUT, hold).await.is_ok();
    let response = held.last().filter(|_| is_complete).and_then(large_response);
    if let Some(response) = response
        && let Ok(()) = DIRECT.try_with(|direct| {
            *direct.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
        })
    {
        held.clear();
    }
    stream::iter(held).chain(messages)
}

fn large_response(message: &ServerSseMessage) -> Option<String> {
    let message = message.message.as_ref()?;
    if !matches!(**message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)) {
        return None;
    }
    serde_json::to_string(&**message).ok().filter(|text| text.len() >= MIN_DIRECT_BYTES)
}
