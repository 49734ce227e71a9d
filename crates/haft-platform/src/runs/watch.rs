//! A run as a stream of events, from whatever node runs it.
//!
//! On the node that runs it, events arrive as they happen. On another node they follow from the stored steps, several
//! times a second and without the deltas of answers.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use haft_agent::run::{RunEvent, events_of};
use haft_core::id::RunId;
use haft_core::name::TenantId;
use haft_core::run::{Run, RunStatus, StepError};

use super::engine::{POLL_INTERVAL, RunEngine};
use super::feed::{FeedEvent, FeedReader};

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
    runs: &Arc<RunEngine>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = RunEvent> + Send + 'static + use<> {
    watch_numbered(runs, tenant, run).map(|numbered| numbered.event)
}

/// Streams the events of a run like [`watch()`], with the numbers of steps.
pub fn watch_numbered(
    runs: &Arc<RunEngine>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = NumberedEvent> + Send + 'static + use<> {
    events(Watcher::new(runs, tenant, run, Until::Pause))
}

/// Streams the events of a run like [`watch()`], also while it waits for people, until it has ended.
pub fn follow(
    runs: &Arc<RunEngine>,
    tenant: &TenantId,
    run: RunId,
) -> impl Stream<Item = RunEvent> + Send + 'static + use<> {
    follow_after(runs, tenant, run, 0).map(|numbered| numbered.event)
}

/// Streams the events of a run like [`follow()`], with the numbers of steps, and only what follows a step.
pub fn follow_after(
    runs: &Arc<RunEngine>,
    tenant: &TenantId,
    run: RunId,
    step: u32,
) -> impl Stream<Item = NumberedEvent> + Send + 'static + use<> {
    let mut watcher = Watcher::new(runs, tenant, run, Until::End);
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
    runs: Arc<RunEngine>,
    tenant: TenantId,
    run: RunId,
    until: Until,
    ready: VecDeque<NumberedEvent>,
    live: Option<FeedReader>,
    /// The number of the last step whose events were returned.
    last_step: u32,
    started: bool,
    /// Whether it was said that the run waits.
    announced: bool,
    ended: bool,
}

impl Watcher {
    fn new(runs: &Arc<RunEngine>, tenant: &TenantId, run: RunId, until: Until) -> Self {
        Self {
            runs: Arc::clone(runs),
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
        if let Some(feed) = self.runs.feed(&self.tenant, self.run) {
            self.announced = false;
            self.live = Some(feed.reader());
            return Some(());
        }
        self.read_stored().await
    }

    async fn read_live(&mut self) {
        let Some(live) = &mut self.live else { return };
        let batch = live.read().await;
        let stored = live.last_step();
        if batch.closed {
            self.live = None;
        }
        if let Some(step) = batch.missed_up_to {
            self.read_missed(step).await;
        }
        // A run that continues repeats what this watcher has seen before, and so does one that is watched again.
        let last_step = self.last_step;
        let is_seen = |event: &FeedEvent| event.step.is_some_and(|(step, _)| step <= last_step);
        let seen = batch.events.iter().rposition(is_seen).map_or(0, |position| position + 1);
        for event in batch.events.into_iter().skip(seen) {
            self.announced |= matches!(*event.event, RunEvent::End { .. });
            let step = event.step.filter(|(_, is_last)| *is_last).map(|(step, _)| step);
            self.last_step = self.last_step.max(step.unwrap_or(0));
            self.ready.push_back(NumberedEvent { event: Arc::unwrap_or_clone(event.event), step });
        }
        if batch.closed {
            self.last_step = self.last_step.max(stored);
        }
    }

    /// Reads the events that the feed no longer has: the first event, and those of the stored steps up to a number.
    async fn read_missed(&mut self, up_to: u32) {
        if !self.started
            && let Ok(Some(run)) = self.runs.context().store().runs().get(&self.tenant, self.run).await
        {
            self.ready.push_back(unnumbered(RunEvent::start(run.id, &run.definition)));
        }
        while self.last_step < up_to && self.read_steps(PAGE.min(up_to - self.last_step)).await > 0 {}
    }

    /// Reads the stored steps after the last one whose events were returned; returns how many these are.
    async fn read_steps(&mut self, limit: u32) -> u32 {
        let steps = match self
            .runs
            .context()
            .store()
            .runs()
            .steps(&self.tenant, self.run, self.last_step, limit)
            .await
        {
            Ok(steps) => steps,
            Err(error) => {
                tracing::warn!(run = %self.run, error = &error as &dyn std::error::Error, "cannot read the steps of a run");
                return 0;
            }
        };
        for step in &steps {
            self.last_step = step.number;
            self.ready.extend(events_of(step).into_iter().map(unnumbered));
            if let Some(last) = self.ready.back_mut() {
                last.step = Some(step.number);
            }
        }
        u32::try_from(steps.len()).unwrap_or(limit)
    }

    async fn read_stored(&mut self) -> Option<()> {
        // The status is read first: what was stored before it changed is then read, too.
        let run = match self.runs.context().store().runs().get(&self.tenant, self.run).await {
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
        let read = self.read_steps(PAGE).await;
        let pauses = run.status.is_final() || run.status == RunStatus::AwaitingApproval;
        if read > 0 || !pauses {
            self.announced = false;
        }
        if read < PAGE && pauses && !self.announced {
            self.announced = true;
            self.ready.push_back(unnumbered(end_of(&run)));
        }
        if self.ready.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Some(())
    }
}
