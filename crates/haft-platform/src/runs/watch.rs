//! A run as a stream of events, from whatever node runs it.
//!
//! On the node that runs it, events arrive as they happen. On another node they follow from the stored steps, several
//! times a second and without the deltas of answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use haft_agent::run::{RunEvent, events_of};
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::run::{Run, RunStatus, StepError};
use tokio::sync::watch::Receiver;

use super::feed::{Feed, FeedEvent};
use crate::installation::Installation;

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

/// An event of a run.
pub struct NumberedEvent {
    pub event: RunEvent,
    /// The step that is complete with this event: a watcher that comes back continues after it.
    pub step: Option<u32>,
}

/// Streams the events of a run, from its first one on; ends after [`RunEvent::End`], also if the run waits for people.
pub fn watch(
    app: &Arc<Installation>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = RunEvent> + Send + 'static + use<> {
    watch_numbered(app, tenant, run).map(|numbered| numbered.event)
}

/// Streams the events of a run like [`watch()`], with the numbers of steps.
pub fn watch_numbered(
    app: &Arc<Installation>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = NumberedEvent> + Send + 'static + use<> {
    events(Watcher::new(app, tenant, run, Until::Pause))
}

/// Streams the events of a run like [`watch()`], also while it waits for people, until it has ended.
pub fn follow(
    app: &Arc<Installation>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = RunEvent> + Send + 'static + use<> {
    follow_after(app, tenant, run, 0).map(|numbered| numbered.event)
}

/// Streams the events of a run like [`follow()`], with the numbers of steps, and only what follows a step.
pub fn follow_after(
    app: &Arc<Installation>,
    tenant: &TenantId,
    run: RunId,
    step: u32,
) -> impl Stream<Item = NumberedEvent> + Send + 'static + use<> {
    let mut watcher = Watcher::new(app, tenant, run, Until::End);
    watcher.last_step = step;
    watcher.started = step > 0;
    events(watcher)
}

/// Streams the events of a run; the last one is [`RunEvent::End`]. Ends without it if the run is gone.
fn events(watcher: Watcher) -> impl Stream<Item = NumberedEvent> + Send + 'static {
    stream::unfold(watcher, async |mut watcher| watcher.next().await.map(|event| (event, watcher)))
}

fn unnumbered(event: RunEvent) -> NumberedEvent {
    NumberedEvent { event, step: None }
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
    app: Arc<Installation>,
    tenant: TenantId,
    run: RunId,
    until: Until,
    ready: VecDeque<NumberedEvent>,
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
    fn new(app: &Arc<Installation>, tenant: &TenantId, run: RunId, until: Until) -> Self {
        Self {
            app: Arc::clone(app),
            tenant: tenant.clone(),
            run,
            until,
            ready: VecDeque::new(),
            live: None,
            last_step: 0,
            started: false,
            announced: false,
            ended: false,
        }
    }

    async fn next(&mut self) -> Option<NumberedEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                match &event.event {
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
        // A run that continues repeats what this watcher has seen before, and so does one that is watched again.
        let last_step = self.last_step;
        let is_seen = |event: &FeedEvent| event.step.is_some_and(|(step, _)| step <= last_step);
        let seen = batch.events.iter().rposition(is_seen).map_or(0, |position| position + 1);
        live.position = batch.events.last().map_or(live.position, |event| event.number);
        for event in batch.events.into_iter().skip(seen) {
            self.announced |= matches!(*event.event, RunEvent::End { .. });
            let step = event.step.filter(|(_, is_last)| *is_last).map(|(step, _)| step);
            self.last_step = self.last_step.max(step.unwrap_or(0));
            self.ready.push_back(NumberedEvent { event: Arc::unwrap_or_clone(event.event), step });
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
            self.ready.push_back(unnumbered(RunEvent::start(run.id, &run.definition)));
        }
        let steps = self.app.store().run_steps(&self.tenant, self.run, self.last_step, PAGE).await;
        let steps = steps.unwrap_or_default();
        let is_last_page = u32::try_from(steps.len()).is_ok_and(|count| count < PAGE);
        for step in &steps {
            self.last_step = step.number;
            self.ready.extend(events_of(step).into_iter().map(unnumbered));
            if let Some(last) = self.ready.back_mut() {
                last.step = Some(step.number);
            }
        }
        let pauses = run.status.is_final() || run.status == RunStatus::AwaitingApproval;
        if !steps.is_empty() || !pauses {
            self.announced = false;
        }
        if is_last_page && pauses && !self.announced {
            self.announced = true;
            self.ready.push_back(unnumbered(end_of(&run)));
        }
        if self.ready.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Some(())
    }
}
