//! A bounded log of numbered events in memory, which any number of readers follow at their own pace.
//!
//! Numbers start at 1 and are consecutive, so that a reader can continue after the last event it has seen. If the next
//! event is no longer kept, or the number was never assigned, the next batch has `missed` set. Nothing is stored: readers
//! recover missed events themselves.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The limits of a log. The newest event is always kept.
#[derive(Debug, Clone, Copy)]
pub struct LogLimits {
    /// The number of events.
    pub events: usize,
    /// The sum of the sizes that are passed to [`EventLog::push_sized`].
    pub bytes: usize,
}

impl LogLimits {
    /// Limits only the number of events.
    pub const fn events(events: usize) -> Self {
        Self { events, bytes: usize::MAX }
    }
}

/// The latest events, and the signal for new ones.
#[derive(Debug)]
pub struct EventLog<T> {
    limits: LogLimits,
    state: Mutex<State<T>>,
    /// Changes with every event, and when the log is closed.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct State<T> {
    /// The events and their sizes; the numbers are consecutive and end with `last`.
    events: VecDeque<(T, usize)>,
    bytes: usize,
    /// The number of the newest event.
    last: u64,
    closed: bool,
}

/// An event and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry<T> {
    /// The number, from 1.
    pub number: u64,
    /// The event.
    pub event: T,
}

/// The result of one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBatch<T> {
    /// Whether events are missing before the first one here.
    pub missed: bool,
    /// The events, oldest first.
    pub entries: Vec<LogEntry<T>>,
    /// Whether no event follows these.
    pub closed: bool,
}

/// Follows a log.
#[derive(Debug)]
pub struct LogReader<T> {
    log: Arc<EventLog<T>>,
    changed: watch::Receiver<()>,
    after: u64,
}

impl<T: Clone> EventLog<T> {
    /// Creates an empty log.
    pub fn new(limits: LogLimits) -> Self {
        let state = State { events: VecDeque::new(), bytes: 0, last: 0, closed: false };
        Self { limits, state: Mutex::new(state), changed: watch::Sender::new(()) }
    }

    /// Adds an event. A closed log drops it.
    pub fn push(&self, event: T) {
        self.push_sized(event, 0);
    }

    /// Adds an event that counts with its size. A closed log drops it.
    pub fn push_sized(&self, event: T, bytes: usize) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.last += 1;
        state.bytes = state.bytes.saturating_add(bytes);
        state.events.push_back((event, bytes));
        while state.events.len() > self.limits.events.max(1)
            || (state.bytes > self.limits.bytes && state.events.len() > 1)
        {
            let dropped = state.events.pop_front().map_or(0, |(_, bytes)| bytes);
            state.bytes -= dropped;
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Drops all events and skips a number, so that the next batch of every reader has `missed` set.
    pub fn reset(&self) {
        let mut state = self.lock();
        state.last += 1;
        state.bytes = 0;
        state.events.clear();
        drop(state);
        self.changed.send_replace(());
    }

    /// Ends the log: no events follow.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.send_replace(());
    }

    /// Waits until the log is closed.
    pub async fn closed(&self) {
        let mut changed = self.changed.subscribe();
        while !self.lock().closed && changed.changed().await.is_ok() {}
    }

    /// Returns the number of the newest event.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Returns at most `max` events after a number.
    pub fn after(&self, number: u64, max: usize) -> LogBatch<T> {
        let state = self.lock();
        let lost = state.lost();
        let missed = number < lost || number > state.last;
        let start = if missed { lost } else { number };
        let skipped = usize::try_from(start - lost).unwrap_or(usize::MAX);
        let events = state.events.iter().skip(skipped).take(max);
        let entries: Vec<_> = (start + 1..)
            .zip(events)
            .map(|(number, (event, _))| LogEntry { number, event: event.clone() })
            .collect();
        let read = entries.last().map_or(start, |entry| entry.number);
        LogBatch { missed, entries, closed: state.closed && read == state.last }
    }

    /// Returns a reader that continues after a number.
    pub fn reader(self: &Arc<Self>, after: u64) -> LogReader<T> {
        LogReader { log: Arc::clone(self), changed: self.changed.subscribe(), after }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Returns the number of the newest event that is no longer kept.
    fn lost(&self) -> u64 {
        self.last.saturating_sub(self.events.len() as u64)
    }
}

impl<T: Clone> LogReader<T> {
    /// Waits for events and returns at most `max` of them, or none if events were missed or the log is closed.
    pub async fn read(&mut self, max: usize) -> LogBatch<T> {
        loop {
            // Marked before the log is read, so that no event between the two is lost.
            self.changed.mark_unchanged();
            let batch = self.log.after(self.after, max);
            if let Some(last) = batch.entries.last() {
                self.after = last.number;
            } else if batch.missed {
                self.after = self.log.lock().lost();
            }
            if batch.missed || batch.closed || !batch.entries.is_empty() {
                return batch;
            }
            if self.changed.changed().await.is_err() {
                return LogBatch { closed: true, ..batch };
            }
        }
    }

    /// Returns the number of the last event that was read.
    pub fn position(&self) -> u64 {
        self.after
    }

    /// Skips all current events.
    pub fn skip_to_end(&mut self) {
        self.after = self.log.last();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(limits: LogLimits, count: u64) -> Arc<EventLog<u64>> {
        let log = Arc::new(EventLog::new(limits));
        (1..=count).for_each(|number| log.push(number));
        log
    }

    fn numbers(batch: &LogBatch<u64>) -> Vec<u64> {
        batch.entries.iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn a_number_that_is_kept_continues_and_every_other_one_has_missed_events() {
        let log = log(LogLimits::events(3), 5);
        for (after, missed, expected) in [
            (0, true, vec![3, 4, 5]),
            (1, true, vec![3, 4, 5]),
            (2, false, vec![3, 4, 5]),
            (4, false, vec![5]),
            (5, false, vec![]),
            (6, true, vec![3, 4, 5]),
            (u64::MAX, true, vec![3, 4, 5]),
        ] {
            let batch = log.after(after, usize::MAX);
            assert_eq!((batch.missed, numbers(&batch)), (missed, expected), "{after}");
            assert!(batch.entries.iter().all(|entry| entry.number == entry.event));
        }
        assert_eq!(numbers(&log.after(2, 2)), [3, 4]);
    }

    #[test]
    fn sizes_are_limited_but_the_newest_event_is_kept() {
        let log = EventLog::new(LogLimits { events: 10, bytes: 100 });
        for number in 1..=5 {
            log.push_sized(number, 40);
        }
        assert_eq!(numbers(&log.after(3, usize::MAX)), [4, 5]);
        log.push_sized(6, 1000);
        assert_eq!(numbers(&log.after(5, usize::MAX)), [6]);
        assert!(log.after(4, usize::MAX).missed);
    }

    #[tokio::test]
    async fn a_reader_gets_every_event_once_and_the_end_after_the_last_one() {
        let log = log(LogLimits::events(3), 1);
        let mut reader = log.reader(0);
        assert_eq!(numbers(&reader.read(10).await), [1]);
        let waiting = tokio::spawn(async move { (reader.read(10).await, reader) });
        tokio::task::yield_now().await;
        log.push(2);
        let (batch, mut reader) = waiting.await.unwrap();
        assert_eq!((numbers(&batch), batch.closed), (vec![2], false));
        log.push(3);
        log.push(4);
        log.close();
        log.push(5);
        let batch = reader.read(1).await;
        assert_eq!((numbers(&batch), batch.closed), (vec![3], false));
        let batch = reader.read(1).await;
        assert_eq!((numbers(&batch), batch.closed), (vec![4], true));
        assert!(reader.read(1).await.closed);
        log.closed().await;
    }

    #[tokio::test]
    async fn a_reader_is_told_once_that_it_missed_events() {
        let log = log(LogLimits::events(2), 1);
        let mut reader = log.reader(1);
        (2..=4).for_each(|number| log.push(number));
        let batch = reader.read(1).await;
        assert_eq!((batch.missed, numbers(&batch)), (true, vec![3]));
        let batch = reader.read(1).await;
        assert_eq!((batch.missed, numbers(&batch)), (false, vec![4]));
        log.reset();
        assert_eq!(reader.read(1).await, LogBatch { missed: true, entries: vec![], closed: false });
        log.push(6);
        log.push(7);
        assert!(!reader.read(1).await.missed);
        reader.skip_to_end();
        assert_eq!(reader.position(), 7);
    }

    #[tokio::test]
    async fn an_unknown_number_has_missed_events_also_in_an_empty_log() {
        let log = log(LogLimits::events(2), 0);
        let mut reader = log.reader(7);
        assert!(reader.read(1).await.missed);
        log.push(1);
        assert_eq!(numbers(&reader.read(1).await), [1]);
    }
}
