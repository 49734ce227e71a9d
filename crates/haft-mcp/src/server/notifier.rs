//! Sends the progress and the log messages of a running call to its client.
#![expect(deprecated, reason = "clients of older versions request log messages with `logging/setLevel`")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haft_core::executor::{CallEvent, EventSink};
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// How many events queue for a slow client; further ones are dropped.
const QUEUE_LENGTH: usize = 64;

/// The interval of progress notifications for calls that report no progress themselves.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The increase of the progress per heartbeat: the protocol requires one, and it is small because it measures nothing.
const HEARTBEAT_STEP: f64 = 1e-6;

struct Sink {
    events: mpsc::Sender<CallEvent>,
    /// Counts the lines of output, including dropped ones.
    lines: Arc<AtomicU64>,
}

impl EventSink for Sink {
    fn emit(&self, event: CallEvent) {
        if let CallEvent::Output(_) | CallEvent::Printed(_) = event {
            self.lines.fetch_add(1, Ordering::Relaxed);
        }
        drop(self.events.try_send(event));
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
    /// The last progress message of the tool.
    last_message: String,
    /// Whether the tool reported progress since the last heartbeat.
    has_reported: bool,
    started: Instant,
    lines: Arc<AtomicU64>,
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
        let lines = Arc::<AtomicU64>::default();
        let notifier = Self {
            events,
            peer: context.peer.clone(),
            progress_token,
            sends_logs,
            tool: tool.to_owned(),
            last_progress: None,
            last_message: String::new(),
            has_reported: false,
            started: Instant::now(),
            lines: Arc::clone(&lines),
            input_closed: input_closed.clone(),
        };
        Some((notifier, Arc::new(Sink { events: sender, lines })))
    }

    /// Forwards events while the call runs, then those still queued.
    pub(super) async fn during<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        let mut heartbeats = tokio::time::interval_at(self.started + HEARTBEAT, HEARTBEAT);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => self.forward(Notice::Event(event)).await,
                response = &mut call => {
                    while let Ok(event) = self.events.try_recv() {
                        self.forward(Notice::Event(event)).await;
                    }
                    return response;
                }
                _ = heartbeats.tick(), if self.progress_token.is_some() => {
                    if !std::mem::take(&mut self.has_reported) {
                        self.forward(Notice::Heartbeat).await;
                    }
                }
            }
        }
    }

    async fn forward(&mut self, notice: Notice) {
        let input_closed = self.input_closed.clone();
        tokio::select! {
            biased;
            // A client that is gone does not read, and the call would wait for it.
            () = input_closed.cancelled() => {}
            () = async {
                match notice {
                    Notice::Event(event) => self.notify(event).await,
                    Notice::Heartbeat => self.heartbeat().await,
                }
            } => {}
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
                self.has_reported = true;
                let mut param = ProgressNotificationParam::new(token, done).with_total(1.0);
                if !message.is_empty() {
                    param = param.with_message(message.clone());
                }
                self.last_message = message;
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

    /// Tells the client that the call is still running.
    async fn heartbeat(&mut self) {
        let Some(token) = self.progress_token.clone() else { return };
        let progress = self.last_progress.map_or(HEARTBEAT_STEP, |last| last + HEARTBEAT_STEP);
        if progress >= 1.0 {
            return;
        }
        self.last_progress = Some(progress);
        let text = heartbeat_text(
            &self.last_message,
            self.started.elapsed().as_secs(),
            self.lines.load(Ordering::Relaxed),
        );
        let param = ProgressNotificationParam::new(token, progress).with_total(1.0).with_message(text);
        drop(self.peer.notify_progress(param).await);
    }
}

/// The notifications for the client.
enum Notice {
    Event(CallEvent),
    Heartbeat,
}

/// Returns the message of a heartbeat: the last progress message, the elapsed seconds and the number of output lines.
fn heartbeat_text(last: &str, seconds: u64, lines: u64) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !last.is_empty() {
        parts.push(last.to_owned());
    }
    parts.push(format!("running for {seconds} s"));
    match lines {
        0 => {}
        1 => parts.push("1 line of output".to_owned()),
        _ => parts.push(format!("{lines} lines of output")),
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_says_how_long_and_how_much() {
        for (last, seconds, lines, expected) in [
            ("", 1, 0, "running for 1 s"),
            ("", 2, 1, "running for 2 s, 1 line of output"),
            ("page 3", 75, 340, "page 3, running for 75 s, 340 lines of output"),
        ] {
            assert_eq!(heartbeat_text(last, seconds, lines), expected);
        }
    }
}
