//! Tells a client what its call does while it runs.
#![expect(deprecated, reason = "older clients still ask for log lines")]

use std::sync::Arc;

use haft_core::executor::{CallEvent, EventSink};
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many events may wait for a slow client; more are left out, as progress is not worth waiting for.
const WAITING: usize = 64;

struct Sink(mpsc::Sender<CallEvent>);

impl EventSink for Sink {
    fn emit(&self, event: CallEvent) {
        drop(self.0.try_send(event));
    }
}

/// What a client wants to hear of a call.
#[derive(Clone)]
struct Wanted {
    progress: Option<ProgressToken>,
    lines: bool,
}

/// Forwards the events of one call until that is over. Dropping it forgets those that wait.
pub(super) struct Watcher {
    events: mpsc::Receiver<CallEvent>,
    peer: Peer<RoleServer>,
    wanted: Wanted,
    tool: String,
    told: Option<f64>,
    gone: CancellationToken,
}

impl Watcher {
    /// Makes one where the client asked for progress or log lines. Nothing is told any more once the client is `gone`.
    pub(super) fn of(
        context: &RequestContext<RoleServer>,
        lines: bool,
        tool: &str,
        gone: &CancellationToken,
    ) -> Option<(Self, Arc<dyn EventSink>)> {
        let wanted = Wanted { progress: context.meta.get_progress_token(), lines };
        if wanted.progress.is_none() && !wanted.lines {
            return None;
        }
        let (sender, events) = mpsc::channel(WAITING);
        let (peer, tool, gone) = (context.peer.clone(), tool.to_owned(), gone.clone());
        let watcher = Self { events, peer, wanted, tool, told: None, gone };
        Some((watcher, Arc::new(Sink(sender))))
    }

    /// Forwards what comes while the call runs, then what came before it was over.
    pub(super) async fn during<T>(mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => self.tell(event).await,
                answer = &mut call => {
                    while let Ok(event) = self.events.try_recv() {
                        self.tell(event).await;
                    }
                    return answer;
                }
            }
        }
    }

    async fn tell(&mut self, event: CallEvent) {
        let gone = self.gone.clone();
        tokio::select! {
            biased;
            // Nobody would take it, and the call would wait for that.
            () = gone.cancelled() => {}
            () = self.notify(event) => {}
        }
    }

    async fn notify(&mut self, event: CallEvent) {
        // A client that is gone learns nothing; the call itself finds out.
        match event {
            CallEvent::Progress(done, word) => {
                let Some(token) = self.wanted.progress.clone() else { return };
                // The protocol wants it to grow.
                if self.told.is_some_and(|told| done <= told) {
                    return;
                }
                self.told = Some(done);
                let mut param = ProgressNotificationParam::new(token, done).with_total(1.0);
                if !word.is_empty() {
                    param = param.with_message(word);
                }
                drop(self.peer.notify_progress(param).await);
            }
            CallEvent::Output(line) if self.wanted.lines => self.log(line).await,
            CallEvent::Output(_) => {}
        }
    }

    async fn log(&self, line: String) {
        let param =
            rmcp::model::LoggingMessageNotificationParam::new(LoggingLevel::Info, Value::String(line))
                .with_logger(self.tool.clone());
        drop(self.peer.notify_logging_message(param).await);
    }
}
