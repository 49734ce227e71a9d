//! A run as a stream of events, from whatever node runs it.
//!
//! On the node that runs it, events arrive as they happen. On another node they follow from the stored steps, several
//! times a second and without the deltas of answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use haft_agent::run::{RunEvent, events_of};
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::run::{Run, RunStatus, StepError};
use tokio::sync::watch::Receiver;

use super::feed::Feed;
use crate::app::App;

/// How often a run that does not run on this node is looked at.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How many steps are read at once.
const PAGE: u32 = 200;

/// How long a watcher stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Until the run has ended or waits for people.
    Pause,
    /// Until the run has ended.
    End,
}

/// Streams the events of a run, from its first one on; ends after [`RunEvent::End`], also if the run waits for people.
pub(crate) fn watch(
    app: &Arc<App>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = RunEvent> + Send + 'static + use<> {
    events(Arc::clone(app), tenant.clone(), run, Until::Pause)
}

/// Streams the events of a run like [`watch()`], also while it waits for people, until it has ended.
pub(crate) fn follow(
    app: &Arc<App>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = RunEvent> + Send + 'static + use<> {
    events(Arc::clone(app), tenant.clone(), run, Until::End)
}

/// Streams the events of a run; the last one is [`RunEvent::End`]. Ends without it if the run is gone.
fn events(
    app: Arc<App>,
    tenant: TenantId,
    run: RunId,
    until: Until,
) -> impl Stream<Item = RunEvent> + Send + 'static {
    let watcher = Watcher {
        app,
        tenant,
        run,
        until,
        ready: VecDeque::new(),
        live: None,
        last_step: 0,
        started: false,
        announced: false,
        ended: false,
    };
    stream::unfold(watcher, async |mut watcher| watcher.next().await.map(|event| (event, watcher)))
}

/// Returns the last event of a run as it is now.
pub(super) fn end_of(run: &Run) -> RunEvent {
    RunEvent::End {
        run_id: run.id,
        status: run.status,
        output: run.output.clone(),
        error: run
            .error
            .as_ref()
            .map(|error| StepError { code: error.code.as_str().to_owned(), message: error.message.clone() }),
        usage: run.usage.clone(),
    }
}

struct Watcher {
    app: Arc<App>,
    tenant: TenantId,
    run: RunId,
    until: Until,
    ready: VecDeque<RunEvent>,
    live: Option<Live>,
    /// The number of the last step whose events were returned.
    last_step: u32,
    started: bool,
    /// Whether it was said that the run waits.
    announced: bool,
    ended: bool,
}

struct Live {
    feed: Arc<Feed>,
    changed: Receiver<()>,
    position: u64,
}

impl Watcher {
    async fn next(&mut self) -> Option<RunEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                match &event {
                    RunEvent::Start { .. } if self.started => continue,
                    RunEvent::Start { .. } => self.started = true,
                    RunEvent::End { status, .. } if status.is_final() || self.until == Until::Pause => {
                        self.ended = true;
                    }
                    _ => {}
                }
                return Some(event);
            }
            if self.ended {
                return None;
            }
            self.wait().await?;
        }
    }

    /// Waits for further events; `None` if the run is gone.
    async fn wait(&mut self) -> Option<()> {
        if self.live.is_some() {
            self.read_live().await;
            return Some(());
        }
        if let Some(feed) = self.app.runs().feed(&self.tenant, self.run) {
            self.announced = false;
            let changed = feed.subscribe();
            self.live = Some(Live { feed, changed, position: 0 });
            return Some(());
        }
        self.read_stored().await
    }

    async fn read_live(&mut self) {
        let Some(live) = &mut self.live else { return };
        // Marked before reading, so that an event in between is noticed.
        live.changed.mark_unchanged();
        let batch = live.feed.after(live.position);
        if batch.events.is_empty() {
            if batch.closed {
                self.last_step = self.last_step.max(batch.last_step);
                self.live = None;
            } else if live.changed.changed().await.is_err() {
                self.live = None;
            }
            return;
        }
        for event in batch.events {
            live.position = event.number;
            // A run that continues repeats what this watcher has seen before.
            if event.step.is_some_and(|step| step <= self.last_step) {
                continue;
            }
            self.announced |= matches!(*event.event, RunEvent::End { .. });
            self.ready.push_back(Arc::unwrap_or_clone(event.event));
        }
    }

    async fn read_stored(&mut self) -> Option<()> {
        // The status is read first: what was stored before it changed is then read, too.
        let run = match self.app.store().run_by_id(&self.tenant, self.run).await {
            Ok(run) => run?,
            Err(error) => {
                tracing::warn!(run = %self.run, error = &error as &dyn std::error::Error, "cannot read a run");
                tokio::time::sleep(POLL_INTERVAL).await;
                return Some(());
            }
        };
        if !self.started {
            self.ready.push_back(RunEvent::start(run.id, &run.definition));
        }
        let steps = self.app.store().run_steps(&self.tenant, self.run, self.last_step, PAGE).await;
        let steps = steps.unwrap_or_default();
        let is_last_page = u32::try_from(steps.len()).is_ok_and(|count| count < PAGE);
        for step in &steps {
            self.last_step = step.number;
            self.ready.extend(events_of(step));
        }
        let pauses = run.status.is_final() || run.status == RunStatus::AwaitingApproval;
        if !steps.is_empty() || !pauses {
            self.announced = false;
        }
        if is_last_page && pauses && !self.announced {
            self.announced = true;
            self.ready.push_back(end_of(&run));
        }
        if self.ready.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Some(())
    }
}
