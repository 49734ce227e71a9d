//! The events of a run on this node, for its watchers on this node.
//!
//! A feed keeps a bounded number of recent events for watchers that join late, and never blocks the run. A watcher that
//! missed events reads the stored steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haft_agent::run::{RunEvent, events_of};
use haft_core::run::RunStep;
use haft_runtime::event_log::{EventLog, LogLimits, LogReader};

/// The number of events, and the approximate number of bytes of text.
const LIMITS: LogLimits = LogLimits { events: 8192, bytes: 4 * 1024 * 1024 };

/// The events of one run on this node.
pub(super) struct Feed {
    log: Arc<EventLog<FeedEvent>>,
    /// The number of the newest step that is stored.
    last_step: AtomicU32,
    /// The number of the newest step whose events are in the feed.
    pushed_step: AtomicU32,
}

/// One event of a feed.
#[derive(Clone)]
pub(super) struct FeedEvent {
    /// The stored step that it follows from, and whether it is the last event of that step.
    pub(super) step: Option<(u32, bool)>,
    /// The event.
    pub(super) event: Arc<RunEvent>,
    /// The newest step before this event.
    after_step: u32,
}

/// The result of one read.
pub(super) struct Batch {
    pub(super) events: Vec<FeedEvent>,
    /// Set if earlier events are no longer in the feed: they can be rebuilt from the stored steps up to this one.
    pub(super) missed_up_to: Option<u32>,
    /// Whether no more events follow.
    pub(super) closed: bool,
}

/// The position of a watcher in a feed.
pub(super) struct FeedReader {
    feed: Arc<Feed>,
    reader: LogReader<FeedEvent>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            log: Arc::new(EventLog::new(LIMITS)),
            last_step: AtomicU32::new(0),
            pushed_step: AtomicU32::new(0),
        }
    }
}

impl Feed {
    /// Adds an event that follows from no step.
    pub(super) fn push(&self, event: RunEvent) {
        self.add(event, None);
    }

    /// Adds the events of a stored step.
    pub(super) fn push_step(&self, step: &RunStep) {
        let mut events = events_of(step).into_iter().peekable();
        while let Some(event) = events.next() {
            self.add(event, Some((step.number, events.peek().is_none())));
        }
        self.pushed_step.fetch_max(step.number, Ordering::AcqRel);
    }

    fn add(&self, event: RunEvent, step: Option<(u32, bool)>) {
        let bytes = size(&event);
        let after_step = self.pushed_step.load(Ordering::Acquire);
        self.log.push_sized(FeedEvent { step, event: Arc::new(event), after_step }, bytes);
    }

    /// Notes that steps up to this one are stored.
    pub(super) fn stored(&self, step: u32) {
        self.last_step.fetch_max(step, Ordering::AcqRel);
    }

    /// Returns the number of the newest step that is stored.
    pub(super) fn last_step(&self) -> u32 {
        self.last_step.load(Ordering::Acquire)
    }

    /// Ends the feed.
    pub(super) fn close(&self) {
        self.log.close();
    }

    /// Completes when the feed has ended.
    pub(super) async fn closed(&self) {
        self.log.closed().await;
    }

    /// Returns a reader of all events that are kept, and those that follow.
    pub(super) fn reader(self: &Arc<Self>) -> FeedReader {
        FeedReader { feed: Arc::clone(self), reader: self.log.reader(0) }
    }
}

impl FeedReader {
    /// Waits for events. A watcher that starts gets no deltas of answers that are complete.
    pub(super) async fn read(&mut self) -> Batch {
        let starts = self.reader.position() == 0;
        let batch = self.reader.read(usize::MAX).await;
        let mut events: Vec<_> = batch.entries.into_iter().map(|entry| entry.event).collect();
        // The step of the first kept event may have earlier events.
        let up_to = |first: &FeedEvent| first.step.map_or(first.after_step, |(step, _)| step);
        let missed_up_to = events.first().filter(|_| batch.missed).map(up_to);
        if starts {
            let answer = events.iter().rposition(|event| matches!(*event.event, RunEvent::Answer { .. }));
            let mut index = 0;
            events.retain(|event| {
                index += 1;
                answer.is_none_or(|answer| index > answer || !is_delta(&event.event))
            });
        }
        Batch { events, missed_up_to, closed: batch.closed }
    }

    /// Returns the number of the newest step that is stored.
    pub(super) fn last_step(&self) -> u32 {
        self.feed.last_step()
    }
}

fn is_delta(event: &RunEvent) -> bool {
    matches!(event, RunEvent::TextDelta { .. } | RunEvent::ReasoningDelta { .. })
}

/// Returns the size of an event, roughly.
fn size(event: &RunEvent) -> usize {
    let texts = match event {
        RunEvent::TextDelta { text } | RunEvent::ReasoningDelta { text } | RunEvent::Correction { text } => {
            text.len()
        }
        RunEvent::Answer { text, reasoning, .. } => text.len() + reasoning.len(),
        RunEvent::ToolUse { args, output, .. } => {
            args.to_string().len() + output.as_ref().map_or(0, |output| output.to_string().len())
        }
        RunEvent::ApprovalRequest { args, .. } => args.to_string().len(),
        RunEvent::End { output, .. } => output.as_ref().map_or(0, |output| output.to_string().len()),
        RunEvent::Start { .. } | RunEvent::ApprovalDecided { .. } | RunEvent::Shortened { .. } => 0,
    };
    texts + 100
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(text: &str) -> RunEvent {
        RunEvent::TextDelta { text: text.to_owned() }
    }

    fn answer(text: &str) -> RunEvent {
        RunEvent::Answer {
            step: 1,
            model: "m".to_owned(),
            text: text.to_owned(),
            reasoning: String::new(),
            usage: haft_core::run::RunUsage::default(),
        }
    }

    fn texts(batch: &Batch) -> Vec<String> {
        let text = |event: &FeedEvent| match &*event.event {
            RunEvent::TextDelta { text } | RunEvent::Answer { text, .. } => text.clone(),
            _ => String::new(),
        };
        batch.events.iter().map(text).collect()
    }

    #[tokio::test]
    async fn late_watchers_get_complete_answers_and_the_deltas_after_them() {
        let feed = Arc::new(Feed::default());
        let mut early = feed.reader();
        feed.push(delta("a"));
        assert_eq!(texts(&early.read().await), ["a"]);
        for event in [delta("b"), answer("ab"), delta("c")] {
            feed.push(event);
        }
        assert_eq!(texts(&feed.reader().read().await), ["ab", "c"]);
        assert_eq!(texts(&early.read().await), ["b", "ab", "c"]);
        feed.close();
        feed.push(delta("d"));
        let end = early.read().await;
        assert!(end.events.is_empty() && end.closed);
    }

    #[tokio::test]
    async fn a_feed_is_bounded() {
        let feed = Arc::new(Feed::default());
        for _ in 0..20_000 {
            feed.push(delta(&"x".repeat(1000)));
        }
        let batch = feed.reader().read().await;
        assert_eq!(batch.missed_up_to, Some(0));
        let bytes: usize = batch.events.iter().map(|event| size(&event.event)).sum();
        assert!(batch.events.len() <= LIMITS.events && bytes <= LIMITS.bytes, "{bytes}");
    }
}
