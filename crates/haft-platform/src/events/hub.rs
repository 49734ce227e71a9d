//! The feeds of all tenants.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use haft_core::name::TenantId;
use haft_runtime::event_log::{EventLog, LogLimits, LogReader};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::event::LiveEvent;

/// How many events of a tenant can be read again.
const LIMITS: LogLimits = LogLimits::events(1024);
/// How many streams a tenant may have.
const MAX_STREAMS: usize = 1000;
/// How long a feed is kept after its last stream has ended, so that a client that connects again misses nothing.
const LINGER: Duration = Duration::from_mins(1);

/// The feeds of the tenants that have listeners.
#[derive(Default)]
pub struct EventHub {
    /// The number of feeds: nothing is published while it is zero.
    active: AtomicUsize,
    feeds: RwLock<HashMap<TenantId, Arc<Feed>>>,
    stopping: CancellationToken,
}

/// The latest events of one tenant.
struct Feed {
    /// Tells the ids of this feed from those of an earlier one.
    epoch: String,
    log: Arc<EventLog<Arc<LiveEvent>>>,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    open: usize,
    /// Counts the times that the last stream ended, so that only the newest linger removes the feed.
    idle: u64,
}

/// One stream of a feed.
pub struct Subscription {
    hub: Arc<EventHub>,
    tenant: TenantId,
    feed: Arc<Feed>,
    reader: LogReader<Arc<LiveEvent>>,
}

impl EventHub {
    /// Returns whether anybody listens. One load, for every call.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }

    /// Publishes an event in a tenant; an event of the global scope reaches every tenant.
    pub fn publish(&self, tenant: &TenantId, event: Option<LiveEvent>) {
        let Some(event) = event.map(Arc::new) else { return };
        for feed in self.feeds_of(tenant) {
            feed.log.push(Arc::clone(&event));
        }
    }

    /// Tells every stream that events may be missing.
    pub fn reset_all(&self) {
        for feed in self.feeds_of(&TenantId::global()) {
            feed.log.reset();
        }
    }

    /// Opens a stream, which continues after an event id if given; `None` above the limit of streams.
    pub fn subscribe(self: &Arc<Self>, tenant: &TenantId, last: Option<&str>) -> Option<Subscription> {
        let mut feeds = self.feeds.write().unwrap_or_else(PoisonError::into_inner);
        let feed = Arc::clone(feeds.entry(tenant.clone()).or_insert_with(|| Arc::new(Feed::new())));
        self.active.store(feeds.len(), Ordering::Release);
        // Under the lock, so that the feed is not removed before it has this stream.
        {
            let mut streams = feed.streams();
            if streams.open >= MAX_STREAMS {
                return None;
            }
            streams.open += 1;
        }
        drop(feeds);
        // The id of another feed maps to a number that was never assigned: the reader has missed events.
        let after = last.map_or_else(|| feed.log.last(), |id| feed.number(id).unwrap_or(u64::MAX));
        let reader = feed.log.reader(after);
        Some(Subscription { hub: Arc::clone(self), tenant: tenant.clone(), feed, reader })
    }

    /// Ends all streams.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Returns a token that is cancelled when streams have to end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    fn feeds_of(&self, tenant: &TenantId) -> Vec<Arc<Feed>> {
        let feeds = self.feeds.read().unwrap_or_else(PoisonError::into_inner);
        if tenant.is_global() {
            return feeds.values().cloned().collect();
        }
        feeds.get(tenant).cloned().into_iter().collect()
    }

    /// Removes a feed that has had no stream since it became idle.
    fn remove_idle(&self, tenant: &TenantId, idle: u64) {
        let mut feeds = self.feeds.write().unwrap_or_else(PoisonError::into_inner);
        let is_idle = feeds.get(tenant).is_some_and(|feed| {
            let streams = feed.streams();
            streams.open == 0 && streams.idle == idle
        });
        if is_idle {
            feeds.remove(tenant);
        }
        self.active.store(feeds.len(), Ordering::Release);
    }
}

impl Feed {
    fn new() -> Self {
        let epoch = Uuid::new_v4().simple().to_string();
        Self {
            epoch: epoch.get(..12).unwrap_or(&epoch).to_owned(),
            log: Arc::new(EventLog::new(LIMITS)),
            streams: Mutex::default(),
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number in an event id of this feed.
    fn number(&self, id: &str) -> Option<u64> {
        let (epoch, number) = id.split_once('-')?;
        if epoch == self.epoch { number.parse().ok() } else { None }
    }
}

impl Subscription {
    /// Returns the id of the last event that was read.
    pub fn last_id(&self) -> String {
        format!("{}-{}", self.feed.epoch, self.reader.position())
    }

    /// Waits for the next event; `None` means that events are missing and the stream continues with new ones.
    pub async fn next(&mut self) -> Option<Arc<LiveEvent>> {
        let batch = self.reader.read(1).await;
        if batch.missed {
            self.reader.skip_to_end();
            return None;
        }
        batch.entries.into_iter().next().map(|entry| entry.event)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut streams = self.feed.streams();
        streams.open -= 1;
        if streams.open > 0 {
            return;
        }
        streams.idle += 1;
        let idle = streams.idle;
        drop(streams);
        let (hub, tenant) = (Arc::clone(&self.hub), self.tenant.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return hub.remove_idle(&tenant, idle);
        };
        runtime.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(LINGER) => {}
                () = hub.stopping.cancelled() => {}
            }
            hub.remove_idle(&tenant, idle);
        });
    }
}

#[cfg(test)]
mod tests {
    use haft_core::mcp::ServerState;

    use super::*;

    fn event() -> Option<LiveEvent> {
        LiveEvent::of_server(&"server".parse().unwrap(), &ServerState::disconnected())
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    #[tokio::test]
    async fn a_stream_continues_after_the_last_event() {
        let hub = Arc::new(EventHub::default());
        assert!(!hub.is_active());
        hub.publish(&tenant("a"), event());
        let mut first = hub.subscribe(&tenant("a"), None).unwrap();
        assert!(hub.is_active());
        for _ in 0..3 {
            hub.publish(&tenant("a"), event());
        }
        hub.publish(&tenant("b"), event());
        assert!(first.next().await.is_some());
        let id = first.last_id();
        drop(first);
        let mut second = hub.subscribe(&tenant("a"), Some(&id)).unwrap();
        assert!(second.next().await.is_some());
        assert!(second.next().await.is_some());
        let waiting = tokio::time::timeout(Duration::from_millis(20), second.next()).await;
        assert!(waiting.is_err(), "the event of another tenant");
        hub.publish(&TenantId::global(), event());
        assert!(second.next().await.is_some(), "everybody sees what is global");
    }

    #[tokio::test]
    async fn a_stream_that_missed_events_is_reset() {
        let hub = Arc::new(EventHub::default());
        let mut slow = hub.subscribe(&tenant("a"), None).unwrap();
        let id = slow.last_id();
        for _ in 0..=LIMITS.events {
            hub.publish(&tenant("a"), event());
        }
        assert!(slow.next().await.is_none(), "the log no longer has the first event");
        hub.publish(&tenant("a"), event());
        assert!(slow.next().await.is_some(), "it continues after the reset");
        for old in [id.as_str(), "0123456789ab-1", "nonsense", "-", "0123456789ab-99999999999999999999"] {
            let mut stream = hub.subscribe(&tenant("a"), Some(old)).unwrap();
            assert!(stream.next().await.is_none(), "{old}");
        }
        hub.reset_all();
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn an_unknown_id_resets_an_empty_feed() {
        let hub = Arc::new(EventHub::default());
        let mut stream = hub.subscribe(&tenant("a"), Some("0123456789ab-7")).unwrap();
        let id = stream.last_id();
        assert!(stream.next().await.is_none());
        hub.publish(&tenant("a"), event());
        assert!(stream.next().await.is_some());
        let mut again = hub.subscribe(&tenant("a"), Some(&id)).unwrap();
        assert!(again.next().await.is_none(), "the client came back before it read the reset");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_streams_is_limited_and_idle_feeds_are_removed() {
        let hub = Arc::new(EventHub::default());
        let streams: Vec<_> = (0..MAX_STREAMS).map(|_| hub.subscribe(&tenant("a"), None).unwrap()).collect();
        assert!(hub.subscribe(&tenant("a"), None).is_none());
        assert!(hub.subscribe(&tenant("b"), None).is_some(), "another tenant has its own limit");
        drop(streams);
        assert!(hub.is_active(), "a client may come back");
        tokio::time::sleep(LINGER * 2).await;
        assert!(!hub.is_active());
    }
}
