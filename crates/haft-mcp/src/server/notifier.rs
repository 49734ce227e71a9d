//! Sends the progress and the log messages of a running call to its client.
#![expect(deprecated, reason = "clients of older versions request log messages with `logging/setLevel`")]

use std::sync::Arc;

use haft_core::executor::{CallEvent, EventSink};
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many events queue for a slow client; further ones are dropped.
const QUEUE_LENGTH: usize = 64;

struct Sink(mpsc::Sender<CallEvent>);

impl EventSink for Sink {
    fn emit(&self, event: CallEvent) {
        drop(self.0.try_send(event));
    }
}

/// Forwards the events of one call to its client. Dropping it discards queued events.
pub(super) struct CallNotifier {
    events: mpsc::Receiver<CallEvent>,
    peer: Peer<RoleServer>,
    progress_token: Option<ProgressToken>,
    sends_logs: bool,
    tool: String,
    last_progress: Option<f64>,
    input_closed: CancellationToken,
}

impl CallNotifier {
    /// Creates a notifier if the client requested progress or log messages. It sends nothing after `input_closed`.
    pub(super) fn new(
        context: &RequestContext<RoleServer>,
        sends_logs: bool,
        tool: &str,
        input_closed: &CancellationToken,
    ) -> Option<(Self, Arc<dyn EventSink>)> {
        let progress_token = context.meta.get_progress_token();
        if progress_token.is_none() && !sends_logs {
            return None;
        }
        let (sender, events) = mpsc::channel(QUEUE_LENGTH);
        let notifier = Self {
            events,
            peer: context.peer.clone(),
            progress_token,
            sends_logs,
            tool: tool.to_owned(),
            last_progress: None,
            input_closed: input_closed.clone(),
        };
        Some((notifier, Arc::new(Sink(sender))))
    }

    /// Forwards events while the call runs, then those still queued.
    pub(super) async fn during<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => self.forward(event).await,
                response = &mut call => {
                    while let Ok(event) = self.events.try_recv() {
                        self.forward(event).await;
                    }
                    return response;
                }
            }
        }
    }

    async fn forward(&mut self, event: CallEvent) {
        let input_closed = self.input_closed.clone();
        tokio::select! {
            biased;
            // A client that is gone does not read, and the call would wait for it.
            () = input_closed.cancelled() => {}
            () = self.notify(event) => {}
        }
    }

    // Errors are ignored: the call itself notices a client that is gone.
    async fn notify(&mut self, event: CallEvent) {
        match event {
            CallEvent::Progress(done, message) => {
                let Some(token) = self.progress_token.clone() else { return };
                // The protocol requires progress to increase.
                if self.last_progress.is_some_and(|last| done <= last) {
                    return;
                }
                self.last_progress = Some(done);
                let mut param = ProgressNotificationParam::new(token, done).with_total(1.0);
                if !message.is_empty() {
                    param = param.with_message(message);
                }
                drop(self.peer.notify_progress(param).await);
            }
            CallEvent::Output(line) | CallEvent::Printed(line) if self.sends_logs => {
                let param = LoggingMessageNotificationParam::new(LoggingLevel::Info, Value::String(line))
                    .with_logger(self.tool.clone());
                drop(self.peer.notify_logging_message(param).await);
            }
            // The result contains the value.
            CallEvent::Output(_) | CallEvent::Printed(_) | CallEvent::Value(_) => {}
        }
    }
}
