//! What happens in a run on this node, for those who watch it here.
//!
//! A feed keeps the latest events for watchers that join late, within bounds. A watcher that is too slow misses the oldest
//! ones; it never holds the run up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_agent::run::{RunEvent, events_of};
use haft_core::run::RunStep;
use tokio::sync::watch;

/// How many events are kept.
const MAX_EVENTS: usize = 8192;
/// How many bytes of text are kept, roughly.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The events of one run on this node.
pub(super) struct Feed {
    state: Mutex<State>,
    /// Changes with every event, and when the feed is closed.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    events: VecDeque<FeedEvent>,
    bytes: usize,
    /// The number of the newest event.
    last: u64,
    /// The number of the newest step that is stored.
    last_step: u32,
    closed: bool,
}

/// One event of a feed.
#[derive(Clone)]
pub(super) struct FeedEvent {
    /// Its number, from 1.
    pub(super) number: u64,
    /// The stored step that it follows from, and whether it is the last event of that step.
    pub(super) step: Option<(u32, bool)>,
    /// The event.
    pub(super) event: Arc<RunEvent>,
    bytes: usize,
}

/// What a watcher reads at once.
pub(super) struct Batch {
    pub(super) events: Vec<FeedEvent>,
    /// Whether no more events follow.
    pub(super) closed: bool,
    /// The number of the newest stored step.
    pub(super) last_step: u32,
}

impl Default for Feed {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(()) }
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
    }

    fn add(&self, event: RunEvent, step: Option<(u32, bool)>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.last += 1;
        let bytes = size(&event);
        let event = FeedEvent { number: state.last, step, event: Arc::new(event), bytes };
        state.bytes += bytes;
        state.events.push_back(event);
        while state.events.len() > MAX_EVENTS || (state.bytes > MAX_BYTES && state.events.len() > 1) {
            let dropped = state.events.pop_front().map_or(0, |event| event.bytes);
            state.bytes -= dropped;
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Notes that steps up to this one are stored.
    pub(super) fn stored(&self, step: u32) {
        let mut state = self.lock();
        state.last_step = state.last_step.max(step);
    }

    /// Ends the feed.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.send_replace(());
    }

    /// Returns the events after a number. A watcher that starts gets no deltas of answers that are complete.
    pub(super) fn after(&self, number: u64) -> Batch {
        let state = self.lock();
        let mut events: Vec<_> = state.events.iter().filter(|event| event.number > number).cloned().collect();
        if number == 0 {
            let answer = events.iter().rposition(|event| matches!(*event.event, RunEvent::Answer { .. }));
            let mut index = 0;
            events.retain(|event| {
                index += 1;
                answer.is_none_or(|answer| index > answer || !is_delta(&event.event))
            });
        }
        Batch { events, closed: state.closed, last_step: state.last_step }
    }

    /// Returns a receiver that changes with every event.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Completes when the feed has ended.
    pub(super) async fn closed(&self) {
        let mut changed = self.subscribe();
        while !self.lock().closed {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn late_watchers_get_complete_answers_and_the_deltas_after_them() {
        let feed = Feed::default();
        for event in [delta("a"), delta("b"), answer("ab"), delta("c")] {
            feed.push(event);
        }
        assert_eq!(texts(&feed.after(0)), ["ab", "c"]);
        assert_eq!(texts(&feed.after(1)), ["b", "ab", "c"]);
        feed.close();
        feed.push(delta("d"));
        assert_eq!(texts(&feed.after(3)), ["c"]);
        assert!(feed.after(4).closed);
    }

    #[test]
    fn a_feed_is_bounded() {
        let feed = Feed::default();
        for _ in 0..20_000 {
            feed.push(delta(&"x".repeat(1000)));
        }
        let state = feed.lock();
        assert!(state.events.len() <= MAX_EVENTS && state.bytes <= MAX_BYTES, "{}", state.bytes);
        assert_eq!(state.last, 20_000);
    }
}
