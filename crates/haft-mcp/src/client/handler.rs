//! What a server may tell by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::executor::{CallEvent, EventSink};
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

/// Listens to one server. It offers nothing in return: no sampling, no roots, no questions to people.
#[derive(Clone, Default)]
pub(super) struct Listener {
    /// Told when the list of tools is another one.
    pub(super) list_changed: Arc<Notify>,
    watched: Arc<Mutex<HashMap<ProgressToken, Arc<dyn EventSink>>>>,
}

impl Listener {
    /// Tells the progress of a request to someone, until what is returned is dropped.
    pub(super) fn watch(&self, token: ProgressToken, sink: Arc<dyn EventSink>) -> Watched {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), sink);
        Watched { listener: self.clone(), token }
    }
}

/// One request that is watched.
pub(super) struct Watched {
    listener: Listener,
    token: ProgressToken,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.listener.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        described()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = watched.get(&progress.progress_token) {
            sink.emit(event(progress));
        }
    }
}

/// What every server is told of this client.
pub(super) fn described() -> ClientConfig {
    let implementation = Implementation::new("haft", env!("CARGO_PKG_VERSION")).with_title("haft");
    ClientConfig::new(ClientCapabilities::default(), implementation)
}

/// Progress, as whoever watches a call hears it.
pub(super) fn event(progress: ProgressNotificationParam) -> CallEvent {
    let done = match progress.total {
        Some(total) if total > 0.0 => (progress.progress / total).clamp(0.0, 1.0),
        // Without an end it only goes on, ever slower.
        _ => (progress.progress / (progress.progress + 10.0)).clamp(0.0, 1.0),
    };
    CallEvent::Progress(done, progress.message.unwrap_or_default())
}
