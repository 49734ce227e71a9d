//! Handles the notifications of a server.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::executor::{CallEvent, EventSink};
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

/// The newest version with `initialize`.
pub(super) const NEWEST_INITIALIZED: ProtocolVersion = ProtocolVersion::V_2025_11_25;

/// Handles the notifications of one server. It offers no sampling, roots or elicitation.
#[derive(Clone, Default)]
pub(super) struct NotificationHandler {
    /// Notified when the list of tools has changed.
    pub(super) list_changed: Arc<Notify>,
    /// Notified when a failed call raises doubts about the server.
    pub(super) check: Arc<Notify>,
    /// Whether the server cannot announce changes of its list, which is then polled.
    pub(super) is_silent: Arc<AtomicBool>,
    progress_sinks: Arc<Mutex<HashMap<ProgressToken, Arc<dyn EventSink>>>>,
}

impl NotificationHandler {
    /// Forwards the progress of a request to `sink` until the subscription is dropped.
    pub(super) fn subscribe(&self, token: ProgressToken, sink: Arc<dyn EventSink>) -> ProgressSubscription {
        self.progress_sinks.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), sink);
        ProgressSubscription { handler: self.clone(), token }
    }
}

/// A subscription to the progress of one request.
pub(super) struct ProgressSubscription {
    handler: NotificationHandler,
    token: ProgressToken,
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        self.handler.progress_sinks.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        client_config()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let sinks = self.progress_sinks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = sinks.get(&progress.progress_token) {
            sink.emit(progress_event(progress));
        }
    }
}

/// Describes this client to servers.
pub(super) fn client_config() -> ClientConfig {
    let implementation = Implementation::new("haft", env!("CARGO_PKG_VERSION")).with_title("haft");
    let mut config = ClientConfig::new(ClientCapabilities::default(), implementation);
    config.protocol_version = NEWEST_INITIALIZED;
    config
}

/// Converts progress to a call event.
pub(super) fn progress_event(progress: ProgressNotificationParam) -> CallEvent {
    let done = match progress.total {
        Some(total) if total > 0.0 => (progress.progress / total).clamp(0.0, 1.0),
        // Without a total, progress approaches 1 ever more slowly.
        _ => (progress.progress / (progress.progress + 10.0)).clamp(0.0, 1.0),
    };
    CallEvent::Progress(done, progress.message.unwrap_or_default())
}
